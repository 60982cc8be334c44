"""One command of a recorder: a new study, one that is resumed, or one that was sent here."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import stat
import time
from dataclasses import replace
from pathlib import Path

from gpuwatch.core import output, paths
from gpuwatch.core.errors import ExitCode, GpuwatchError, StorageError, UsageError
from gpuwatch.core.processes import start_time
from gpuwatch.core.text import to_paste
from gpuwatch.own_command import NOW_PREFIX
from gpuwatch.recorder.observer import Observer
from gpuwatch.recorder.programs import changed
from gpuwatch.recorder.recover import record_rest
from gpuwatch.recorder.request import Request, ResolvedPlan, resolve_plan
from gpuwatch.recorder.run_folder import IN_THE_MAKING, RecordedElsewhere
from gpuwatch.recorder.sources import check_dcgm
from gpuwatch.recorder.study import StudyRun, unavailable
from gpuwatch.session.reading.status import process_id, takes_over
from gpuwatch.session.study import study_folder
from gpuwatch.session.study.attempts import ATTEMPTS, attempts
from gpuwatch.session.study.estimate import cell
from gpuwatch.session.study.outcomes import done, end_of, given_up, interrupted, meta_of, missing
from gpuwatch.session.study.plan import PLAN, Plan, read
from gpuwatch.session.study.progress import recorder_of, without_recorder
from gpuwatch.session.study.removal import removal, remove
from gpuwatch.session.study.signature import is_own
from gpuwatch.session.writing.write_hints import write_hint


def record(request: Request, observer: Observer) -> ExitCode:
    """Run and record everything requested; returns the exit code of the command.

    Raises:
        NotAvailable: the only environment cannot run, or of those to compare in blocks fewer than
            two can; or requested DCGM is missing.
        StorageError: the study cannot be written.
    """
    if request.resume is not None:
        return _run_missing(request, request.resume, observer)
    resolved = resolve_plan(request)
    if resolved.refused is not None:
        raise resolved.refused
    if resolved.problems and _in_vain(resolved):
        raise unavailable(next(iter(resolved.problems.values())))
    check_dcgm(request.plan.settings.dcgm)
    folder = study_folder.create(request.out, request.plan)
    study_folder.note(folder, resolved.problems)
    if request.out != paths.data_home() and not request.while_pid:
        paths.remember_study(folder.resolve())
    observer.study_created(folder)
    if request.while_pid is not None:
        _sweep_thrown_away(request.out.parent)
    try:
        with study_folder.held(folder):
            code = StudyRun(resolved, folder, observer).execute()
    except StorageError:
        if not study_folder.sessions_in(folder):  # no list would show what is left
            with contextlib.suppress(GpuwatchError):
                remove(removal(folder, None))
        raise
    if request.while_pid is not None and start_time(request.while_pid) is None:  # or a zombie
        with contextlib.suppress(OSError, GpuwatchError):  # only that screen would have read it
            remove(removal(folder, None))
            folder.parent.rmdir()
    return code


def _in_vain(resolved: ResolvedPlan) -> bool:
    """Whether what can run would not answer what was asked, where something cannot: all runs are
    of one kind, or blocks compare environments and fewer than two are left."""
    plan = resolved.request.plan
    if len({(run.part, cell(run)) for run in plan.runs}) == 1:
        return True
    asked = {run.environment.label for run in plan.runs}
    left = {run.environment.label for run in resolved.todo if run.index not in resolved.problems}
    return len(left) < 2 <= len(asked) and all(
        part.blocks and not part.sweep for part in plan.parts
    )


def _sweep_thrown_away(parent: Path) -> None:
    """Remove what screens and their recorders left that were killed together."""
    for folder in parent.glob(f"{NOW_PREFIX}*"):
        with contextlib.suppress(OSError):
            status = folder.lstat()
            own = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
            new = time.time() - status.st_mtime < IN_THE_MAKING
            if own and not new and not any(map(study_folder.is_held, folder.iterdir())):
                shutil.rmtree(folder, ignore_errors=True)


def own_plan(folder: Path, *, trusted: bool) -> Plan:
    """The plan of the study in ``folder``, if its commands can be run here and now.

    ``trusted``: even if somebody else started it.

    Raises:
        NotOwn: this user did not start it, or its plan was changed.
        UsageError: they cannot; with the reason and a hint.
    """
    plan = read(folder)
    if plan is None or not plan.runs:
        what = "is not as gpuwatch wrote it" if (folder / PLAN).exists() else "is missing"
        raise UsageError(
            f"{folder} has no plan that can be read: {PLAN} {what}", "start the study again"
        )
    if any(run.workload.kind not in ("workload", "command") for run in plan.runs):
        raise UsageError(f"{folder} is not a study of a workload", "start it again")
    if not trusted and not is_own(plan):
        raise NotOwn(folder, plan)
    working = plan.settings.working_directory
    if not Path(working).is_dir():
        raise UsageError(
            f"the folder that {folder} was started in is gone: {working}", "create it again"
        )
    return plan


def resumable(folder: Path, *, trusted: bool) -> Plan:
    """As :func:`own_plan`, if something of it is missing and can be recorded.

    Raises:
        NotOwn: this user did not start it, or its plan was changed.
        UsageError: it cannot be resumed; with the reason and a hint.
    """
    recorded = read(folder)
    host = recorded.settings.host if recorded is not None and recorded.runs else ""
    if host and host != socket.gethostname():
        raise UsageError(
            f"{folder} was recorded on {host}; this is {socket.gethostname()}",
            f"resume it there: {to_paste('resume', folder)}",
        )
    plan = own_plan(folder, trusted=trusted)
    if recorder_of(folder) is not None:  # before its first session :func:`study.held` tells
        raise UsageError(f"{folder} is being recorded now", "watch it: gpuwatch attach")
    if names := changed(plan.settings):
        raise UsageError(
            f"{', '.join(names)} {'was' if len(names) == 1 else 'were'} changed since {folder} was "
            "started: its runs would mix different programs",
            f"restore the old files, or start a new study: {to_paste('rerun', folder)}",
        )
    for run in plan.runs:
        path = folder / run.file
        meta = meta_of(path)
        recorder = process_id((meta or {}).get("recorder"))
        if recorder is not None and recorder.alive() is None and "result" not in (meta or {}):
            raise RecordedElsewhere(path, recorder)
    check_recorded(folder)
    rest = missing(folder, plan)
    if not rest:
        raise UsageError(f"{folder} is complete", f"its summary: {to_paste('report', folder)}")
    waiting = {run.index for run in rest}
    ends = {
        run.index: end
        for run in plan.runs
        if run.index not in waiting and (end := end_of(folder / run.file)) is not None
    }
    hopeless = given_up(plan, ends)
    if waiting <= hopeless.keys():
        raise UsageError(
            f"the missing runs of {folder} are not started again: {hopeless[rest[0].index].text}",
            "fix that, and start a new study",
        )
    return plan


def check_recorded(folder: Path) -> None:
    """
    Raises:
        UsageError: a run of the study goes on here without its recorder.
    """
    if (path := without_recorder(folder)) is not None:
        raise UsageError(f"the run of {path} has lost its recorder", takes_over(path))


class NotOwn(UsageError):
    """This user did not start the study, or its plan was changed since."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        super().__init__(
            f"{folder} was not started by you, or its plan was changed since",
            "if you trust what it runs, add --trust",
        )
        self.plan = plan


def _run_missing(request: Request, folder: Path, observer: Observer) -> ExitCode:
    """Execute the missing runs of a study; see :func:`record`.

    A session whose recorder died is completed if its run left enough for that. Other unfinished or
    stopped sessions are set aside, and their runs repeated. An attempt is started once.

    Raises:
        UsageError: it cannot be resumed, or has another recorder.
        StorageError: the study cannot be written.
    """
    if request.attempt in attempts(folder):
        return ExitCode.DONE
    with study_folder.held(folder):
        if request.attempt is None:
            request = replace(request, plan=resumable(folder, trusted=request.trusted))
        else:
            check_recorded(folder)
            _note(folder, request.attempt)
        plan = request.plan
        check_dcgm(plan.settings.dcgm)
        observer.study_created(folder)
        for run in missing(folder, plan):
            if (folder / run.file).exists():
                stopped = _settle(folder / run.file, observer)
                if stopped is not None:
                    return stopped
        resolved = resolve_plan(request)
        if resolved.refused is not None:
            raise resolved.refused
        problems = resolved.problems
        ours = [run for run in plan.runs if request.only is None or run.index in request.only]
        study_folder.note(folder, {run.index: problems.get(run.index, ()) for run in ours})
        return StudyRun(resolved, folder, observer).execute()


def _settle(path: Path, observer: Observer) -> ExitCode | None:
    """Complete a session whose recorder died, or set it aside; returns the exit code of a stop that
    was requested meanwhile, after which nothing begins.

    Raises:
        StorageError: the rest of its run exists, but cannot be saved.
    """
    again = f"{write_hint(path)}, then {to_paste('resume', path.parent.name)}"
    try:
        code, stop = record_rest(path, Observer(observer.message))
    except StorageError as error:
        raise StorageError(error.message, again) from error
    except GpuwatchError:
        pass  # nothing is left of it
    else:
        if stop.unsaved is not None:
            raise StorageError(f"the run of {path.name} is over but still not saved", again)
        if stop.why is not None:
            return ExitCode.INTERRUPTED if stop.number == signal.SIGINT else code
    if done(path):
        return None
    try:
        how = "was stopped" if interrupted(meta_of(path) or {}) else "was cut short"
        observer.message(f"{path.name} {how}; it is kept as {study_folder.set_aside(path).name}")
    except OSError as error:
        raise StorageError(
            f"cannot rename {path}: {error.strerror}", write_hint(path, error)
        ) from error
    return None


def _note(folder: Path, attempt: str) -> None:
    """Note durably that ``attempt`` was started."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    try:
        file = output.private_file(str(folder / ATTEMPTS), flags)
        try:
            os.write(file, f"{attempt}\n".encode())
            os.fsync(file)
        finally:
            os.close(file)
    except OSError as error:
        raise StorageError(
            f"cannot write to {folder}: {error.strerror}", "free some space there"
        ) from error
