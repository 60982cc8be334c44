"""Recording the runs of one command, one after the other, into one study."""

from __future__ import annotations

import os
import shutil
import signal
import uuid
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from gpuwatch import paths, runners
from gpuwatch.errors import ExitCode, GpuwatchError, NotAvailable, StorageError
from gpuwatch.models import JSON, Environment, LaunchSpec, Problem, Workload
from gpuwatch.recorder.control import Stop, conclude, run_to_end, stopping_signals, summarise
from gpuwatch.recorder.run import Header, begin
from gpuwatch.recorder.sources import DCGM_HOST, Dcgm, Sources
from gpuwatch.session import study


@dataclass(frozen=True)
class Request:
    """What ``gpuwatch --record`` was asked for."""

    workloads: tuple[Workload, ...]
    environments: tuple[Environment, ...]
    out: Path
    interval: float = 0.5
    gpus: tuple[str, ...] | None = None
    """By index or UUID; ``()``: use none; ``None``: all there are."""
    duration: float | None = None
    while_pid: int | None = None
    build_archive: Callable[[Path], str] | None = None
    """Writes ``workloads.pyz`` and returns its SHA-256; needed for workloads of ours."""
    dcgm: Dcgm | None = None
    """Read GPUs through DCGM where GPM cannot; ``None``: do not."""


def record(
    request: Request,
    *,
    say: Callable[[str], None],
    on_session: Callable[[Path], None] = lambda path: None,
    on_study: Callable[[Path], None] = lambda folder: None,
) -> ExitCode:
    """Run and record everything asked for; returns the exit code of the command.

    ``say`` gets one-line notices for people, ``on_study`` the folder of the study once it is
    there, ``on_session`` the path of each new session.

    Raises:
        NotAvailable: there is one environment and it cannot run, or DCGM is asked for and is not
            there.
        StorageError: the study cannot be written.
    """
    planned = study.plan_runs(request.workloads, request.environments)
    gpus = Sources.gpu_uuids(request.gpus or None) if request.gpus != () else ()
    problems = {run.index: _preflight(request, run, gpus) for run in planned}
    if len(planned) == 1 and problems[1]:
        raise _unavailable(problems[1])
    if request.dcgm is not None:
        request.dcgm.check()
    folder = study.create(
        request.out,
        planned,
        {
            "interval_seconds": request.interval,
            "duration_seconds": request.duration,
            "gpus": None if request.gpus is None else list(request.gpus),
            "problems": {
                str(index): [asdict(problem) for problem in found]
                for index, found in problems.items()
                if found
            },
        },
    )
    if request.out != paths.data_home() and not request.while_pid:
        paths.remember_study(folder.resolve())
    on_study(folder)
    code = ExitCode.DONE
    stop = Stop()
    with stopping_signals(stop):
        for run in planned:
            if stop.why is not None:
                break
            found = problems[run.index]
            if not found:
                try:
                    ended = _record_one(request, run, folder, gpus, stop, say, on_session)
                    code = max(code, ended)
                except StorageError:
                    raise
                except GpuwatchError as error:
                    found = [Problem("not-started", error.message, error.mend)]
                    if not (folder / run.file).exists():
                        study.note_problems(folder, run.index, found)
                    if len(planned) == 1:
                        summarise(folder, say)
                        raise
            if found:
                why = _unavailable(found)
                say(f"{study.label(run, planned)}: {why}")
                code = max(code, why.exit_code)
            if run.workload.kind != "machine":
                summarise(folder, say)
    if stop.why is not None and len(planned) > 1:
        text = f"the study was ended before its turn ({stop.why})"
        study.note_rest(folder, Problem(study.STUDY_ENDED, text, "start it again"))
        summarise(folder, say)
    if stop.number == signal.SIGINT:
        return ExitCode.INTERRUPTED
    return code


def _record_one(
    request: Request,
    planned: study.PlannedRun,
    folder: Path,
    gpus: tuple[str, ...],
    stop: Stop,
    say: Callable[[str], None],
    on_session: Callable[[Path], None],
) -> ExitCode:
    path = folder / planned.file
    run_id = uuid.uuid4().hex[:12]
    machine = planned.workload.kind == "machine"
    runner = None if machine else runners.load(planned.environment.kind)
    run_folder: Path | None = None
    sources: Sources | None = None
    try:
        spec = prepared = None
        if runner is not None:
            run_folder = paths.new_run_folder(run_id)
            archive, digest = _archive(request, planned.workload, run_folder)
            spec = _spec(request, planned, archive, gpus)
            with runners.guarded(planned.environment.kind):
                prepared = runner.prepare(spec, say)
        sources = Sources.open(
            request.gpus or None,
            workload=not machine,
            contained=bool(runner and runner.contained),
            interval=request.interval,
            dcgm=request.dcgm,
        )
        if sources.notice is not None and planned.index == 1:
            say(sources.notice)
        facts = dict(sources.host_facts())
        if request.dcgm is not None:
            facts[DCGM_HOST] = request.dcgm.host
        environment: dict[str, JSON] = {
            "kind": planned.environment.kind,
            "label": planned.environment.label,
            "image": planned.environment.image,
        }
        if runner is not None:
            assert run_folder is not None and prepared is not None
            if digest:
                facts["gpuwatch.workloads.sha256"] = digest
            environment |= {"engine": runners.engine(planned.environment.kind), **prepared.facts}
            (run_folder / "session").write_text(str(path.resolve()))
        header = Header(
            session={
                "id": run_id,
                "label": f"{planned.workload.name} ({planned.environment.label})",
                "study": folder.name,
                "index": planned.index,
            },
            interval=request.interval,
            workload={
                "name": planned.workload.name,
                "kind": planned.workload.kind,
                "arguments": list(planned.workload.arguments),
                "parameters": dict(planned.workload.parameters),
            },
            environment=environment,
            facts=facts,
        )
        recording = begin(
            path,
            header,
            sources,
            runner=runner,
            spec=spec,
            prepared=prepared,
            folder=run_folder,
            on_trouble=say,
        )
    except BaseException as error:
        if sources is not None:
            sources.close()
        if run_folder is not None:
            shutil.rmtree(run_folder, ignore_errors=True)
        if isinstance(error, OSError):
            raise StorageError(
                f"cannot write to {paths.runs_home()}: {error.strerror}",
                "free some space, or set XDG_STATE_HOME to another folder",
            ) from error
        raise
    on_session(path)
    return conclude(run_to_end(recording, stop, request.duration, request.while_pid), say)


def _preflight(request: Request, run: study.PlannedRun, gpus: tuple[str, ...]) -> list[Problem]:
    if run.workload.kind == "machine":
        return []
    return runners.check(_spec(request, run, None, gpus))


def _unavailable(problems: Sequence[Problem]) -> NotAvailable:
    first = problems[0]
    return NotAvailable(first.text, first.fix)


def _spec(
    request: Request, run: study.PlannedRun, archive: str | None, gpus: tuple[str, ...]
) -> LaunchSpec:
    on_cpu = run.workload.parameters.get("device") == "cpu"
    return LaunchSpec(
        workload=run.workload,
        environment=run.environment,
        archive=archive,
        working_directory=os.getcwd(),
        variables=dict(os.environ),
        gpus=() if on_cpu else gpus,
        gpus_chosen=request.gpus is not None,
    )


def _archive(request: Request, workload: Workload, folder: Path) -> tuple[str | None, str | None]:
    if workload.kind != "workload":
        return None, None
    assert request.build_archive is not None
    target = folder / "workloads.pyz"
    return str(target), request.build_archive(target)
