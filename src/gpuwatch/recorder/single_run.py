"""Records one run of a study, from the preparation of its environment to its end."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from gpuwatch import runners
from gpuwatch.core import paths
from gpuwatch.core.errors import REFUSED, ExitCode, GpuwatchError, StorageError
from gpuwatch.core.models import JOINED_JOB, JSON, LaunchSpec
from gpuwatch.hook import archive as hook_archive
from gpuwatch.recorder import programs, run_folder
from gpuwatch.recorder.allocation import joined_gpus
from gpuwatch.recorder.control import Stop, conclude, run_to_end
from gpuwatch.recorder.observer import Observer
from gpuwatch.recorder.recording import Launch, Recording, begin
from gpuwatch.recorder.request import ResolvedPlan, with_files
from gpuwatch.recorder.sources import DCGM_HOST, Opening, Sources
from gpuwatch.session.study.plan import PlannedRun, Settings
from gpuwatch.session.writing.store import Durability
from gpuwatch.session.writing.write_hints import write_hint
from gpuwatch.telemetry.nvml.selection import is_part
from gpuwatch.workloads import archive

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)
_SPARE_THREADS = 5
"""Threads for the writer, for what is told meanwhile, and for driver calls that hang."""
_OPENING_THREADS = 2
"""Threads for telemetry that opens, and for the driver's first call."""
_TELL_SECONDS = 60.0


def record_one(
    resolved: ResolvedPlan, planned: PlannedRun, folder: Path, stop: Stop, observer: Observer
) -> ExitCode:
    """Run ``planned`` and record it to its session in ``folder``; returns its exit code.

    Raises:
        StorageError: the session or the run's folder cannot be written.
        GpuwatchError: the run could not be started; its session, if any, says why.
        Stopped: a stop was requested during the preparation.
    """
    request, path = resolved.request, folder / planned.file
    settings = request.plan.settings
    run_id = uuid.uuid4().hex[:12]
    machine = planned.workload.kind == "machine"
    runner = None if machine else runners.load(planned.environment.kind)
    run_folder.sweep()
    run_path: Path | None = None
    opening: Opening | None = None
    run_lock = contextlib.ExitStack()
    try:
        spec = launch = None
        facts: dict[str, JSON] = {}
        described: dict[str, JSON] = {}
        if settings.dcgm is not None:
            facts[DCGM_HOST] = settings.dcgm
        if runner is not None:
            run_path = paths.new_run_folder(run_id)
            run_lock.enter_context(run_folder.held(run_path))
            # From here on the run can be stopped by name, however long an image pull takes.
            run_folder.note_session(run_path, path)
            spec = with_files(resolved.launches[planned.index], run_path, settings.hook)
            if spec.archive is not None:
                facts["gpuwatch.workloads.sha256"] = archive.build(Path(spec.archive))
            if planned.workload.kind == "command":
                found = programs.digests(planned.workload.arguments, Path.cwd())
                facts["gpuwatch.program.sha256"] = programs.text(found)
            if (hooked := _hook(spec)) is not None:
                described["hook"] = hooked
        job = planned.workload.parameters.get(JOINED_JOB)
        watched = settings.gpus or (None if job is None else joined_gpus(os.environ))
        if watched is None and spec is not None and any(map(is_part, spec.gpus)):
            watched = spec.gpus  # the whole GPU's values are not those of the run's part
        _check_threads(_OPENING_THREADS)
        opening = Opening(
            partial(
                Sources.open,
                watched,
                workload=not machine,
                contained=bool(runner and runner.contained),
                interval=settings.interval_seconds,
                dcgm=settings.dcgm,
                job=None if job is None else str(job),
            )
        )
        if runner is not None and spec is not None and run_path is not None:
            with stop.preparing(), runners.guarded(planned.environment.kind):
                prepared = runner.prepare(spec, observer.message_once)
            launch = Launch(runner, spec, prepared, run_path)
        # Who asked for GPUs or DCGM is told that they are not there before anything starts.
        asked_for = machine or watched is not None or settings.dcgm is not None
        sources = opening.result() if asked_for else opening
        _check_threads(_SPARE_THREADS)
        recording = begin(
            path,
            {**described, **_described(planned, run_id, folder, settings, launch)},
            facts,
            sources,
            launch,
            on_trouble=observer.message,
            safety=_safety(machine, throw_away=request.while_pid is not None),
        )
        for notice in (opening.result().notice, resolved.notice):
            if notice is not None and settings.gpus != ():
                observer.message_once(notice)
    except BaseException as error:
        if opening is not None:
            opening.close()
        if run_path is not None:
            paths.remove_run_folder(run_path)
        run_lock.close()
        if isinstance(error, OSError):
            raise refused(error, run_path) from error
        raise
    with run_lock:
        observer.session_created(path)
        with _telling(recording, observer):
            outcome = run_to_end(recording, stop, settings.duration_seconds, request.while_pid)
        return conclude(outcome, observer.message)


def _described(
    planned: PlannedRun, run_id: str, folder: Path, settings: Settings, launch: Launch | None
) -> dict[str, JSON]:
    """What a session says of its run before the start."""
    case, where = planned.workload, planned.environment
    environment: dict[str, JSON] = {"kind": where.kind, "label": where.label, "image": where.image}
    if where.variables:
        environment["variables"] = dict(where.variables)
    if launch is not None:
        engine, gpus = runners.engine(where.kind, launch.runner), list(launch.spec.gpus)
        environment |= {"engine": engine, **launch.prepared.facts, "gpus": gpus}
    workload: dict[str, JSON] = {
        "name": case.name,
        "kind": case.kind,
        "arguments": list(case.arguments),
        "parameters": dict(case.parameters),
    }
    if case.label is not None:
        workload["label"] = case.label
    return {
        "session": {
            "id": run_id,
            "label": f"{case.label or case.name} ({where.label})",
            "study": folder.name,
            "index": planned.index,
        },
        "interval_seconds": settings.interval_seconds,
        "workload": workload,
        "environment": environment,
    }


@contextlib.contextmanager
def _telling(recording: Recording, observer: Observer) -> Iterator[None]:
    """Tell every minute how far the run is, within the block."""
    over = threading.Event()

    def tell() -> None:
        while not over.wait(_TELL_SECONDS):
            observer.reached(recording.reached)

    threading.Thread(target=tell, name="gpuwatch-tell", daemon=True).start()
    try:
        yield
    finally:
        over.set()


def refused(error: OSError, folder: Path | None) -> GpuwatchError:
    """The error for a refused start: no room in the run's ``folder``, or another cause."""
    if error.errno in _NO_ROOM and folder is not None:
        return StorageError(
            f"cannot write to {folder.parent}: {error.strerror}",
            f"{write_hint(folder.parent)}, or set XDG_STATE_HOME to another folder",
        )
    file_note = "" if error.filename is None else f": {os.fsdecode(error.filename)}"
    hint = None if error.errno is None else REFUSED.get(error.errno)
    return GpuwatchError(f"cannot start the run: {error.strerror or error}{file_note}", hint)


def _safety(machine: bool, *, throw_away: bool) -> Durability:
    """Lower for a recording of the machine, and lowest if it is deleted with its screen."""
    if not machine:
        return Durability.MACHINE
    return Durability.RECORDER if throw_away else Durability.NEARLY


def _hook(launch: LaunchSpec) -> dict[str, JSON] | None:
    """Make what the processes of a run report through; returns what the session of a command says
    of its hook."""
    hook, digest = launch.hook, None
    if hook is not None:
        Path(hook.channel).mkdir(mode=0o700)
        if hook.archive is not None:
            digest = hook_archive.build(Path(hook.archive))
    if launch.workload.kind != "command":
        return None
    options = [] if hook is None else list(hook.options)
    given: dict[str, JSON] = {"given": hook is not None, "sha256": digest, "options": options}
    return {**given, "processes": 0, "text": None}


def _check_threads(count: int) -> None:
    """Raises ``OSError`` (EAGAIN) unless ``count`` more threads can be started."""
    started: list[threading.Thread] = []
    over = threading.Event()
    try:
        for _ in range(count):
            thread = threading.Thread(target=over.wait, daemon=True)
            thread.start()
            started.append(thread)
    except RuntimeError as error:
        raise OSError(errno.EAGAIN, "no thread can be started") from error
    finally:
        over.set()
        for thread in started:
            thread.join()
