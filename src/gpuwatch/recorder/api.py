"""Records the runs of one command, one after another, into one study."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import time
from pathlib import Path

from gpuwatch.core import paths
from gpuwatch.core.errors import ExitCode, GpuwatchError
from gpuwatch.core.processes import start_time
from gpuwatch.own_command import NOW_PREFIX
from gpuwatch.recorder.observer import Observer
from gpuwatch.recorder.request import Request, resolve_plan
from gpuwatch.recorder.resume import run_missing
from gpuwatch.recorder.sources import check_dcgm
from gpuwatch.recorder.study import StudyRun, unavailable
from gpuwatch.session.study import study_folder
from gpuwatch.session.study.estimate import cell
from gpuwatch.session.study.removal import removal, remove

__all__ = ["Request", "record"]

_IN_THE_MAKING = 60.0
"""Seconds for which a new folder may still lack its recorder."""


def record(request: Request, observer: Observer) -> ExitCode:
    """Run and record everything requested; returns the exit code of the command.

    Raises:
        NotAvailable: the only environment cannot run, or requested DCGM is missing.
        StorageError: the study cannot be written.
    """
    if request.resume is not None:
        return run_missing(request, request.resume, observer)
    resolved = resolve_plan(request)
    if resolved.refused is not None:
        raise resolved.refused
    if resolved.problems and len({(run.part, cell(run)) for run in request.plan.runs}) == 1:
        raise unavailable(resolved.problems[1])
    check_dcgm(request.plan.settings.dcgm)
    folder = study_folder.create(request.out, request.plan)
    study_folder.note(folder, resolved.problems)
    if request.out != paths.data_home() and not request.while_pid:
        paths.remember_study(folder.resolve())
    observer.study_created(folder)
    if request.while_pid is not None:
        _sweep_thrown_away(request.out.parent)
    with study_folder.held(folder):
        code = StudyRun(resolved, folder, observer).execute()
    if request.while_pid is not None and start_time(request.while_pid) is None:  # or a zombie
        _throw_away(folder)
    return code


def _sweep_thrown_away(parent: Path) -> None:
    """Remove what screens and their recorders left that were killed together."""
    for folder in parent.glob(f"{NOW_PREFIX}*"):
        with contextlib.suppress(OSError):
            status = folder.lstat()
            own = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
            new = time.time() - status.st_mtime < _IN_THE_MAKING
            if own and not new and not any(map(study_folder.is_held, folder.iterdir())):
                shutil.rmtree(folder, ignore_errors=True)


def _throw_away(folder: Path) -> None:
    """Remove a recording whose only reader is gone, and the folder created for it."""
    with contextlib.suppress(OSError, GpuwatchError):
        remove(removal(folder, None))
        folder.parent.rmdir()
