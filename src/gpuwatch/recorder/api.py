"""Records the runs of one command, one after another, into one study."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

from gpuwatch.core import paths
from gpuwatch.core.errors import ExitCode, GpuwatchError
from gpuwatch.recorder.programs import with_programs
from gpuwatch.recorder.request import Request, given_to, preflight
from gpuwatch.recorder.resume import go_on
from gpuwatch.recorder.study import StudyRun, unavailable
from gpuwatch.session.study import study_folder
from gpuwatch.session.study.estimate import cell
from gpuwatch.session.study.removal import removal, remove

__all__ = ["Request", "record"]


def record(
    request: Request,
    *,
    say: Callable[[str], None],
    on_session: Callable[[Path], None] = lambda path: None,
    on_study: Callable[[Path], None] = lambda folder: None,
    on_turn: Callable[[str], None] = lambda text: None,
    on_summary: Callable[[str], None] = lambda text: None,
) -> ExitCode:
    """Run and record everything requested; returns the exit code of the command.

    ``say`` gets one-line notices for people, ``on_study`` the study's folder once it exists,
    ``on_session`` the path of each new session, ``on_turn`` a line before each of several runs,
    ``on_summary`` the short form of each new summary.

    Raises:
        NotAvailable: the only environment cannot run, or requested DCGM is missing.
        StorageError: the study cannot be written.
    """
    if request.resume is not None:
        return go_on(request, request.resume, say, on_session, on_study, on_turn, on_summary)
    plan = with_programs(request.plan(), request.build_archive)
    given = given_to(request)
    problems = preflight(request, plan.runs, given)
    if problems and len({(run.part, cell(run)) for run in plan.runs}) == 1:
        raise unavailable(problems[1])
    if request.dcgm is not None:
        request.dcgm.check()
    folder = study_folder.create(request.out, plan)
    study_folder.note(folder, problems)
    if request.out != paths.data_home() and not request.while_pid:
        paths.remember_study(folder.resolve())
    on_study(folder)
    with study_folder.held(folder):
        going = StudyRun(request, plan, folder, given, say, on_session, on_turn, on_summary)
        code = going.through(plan.runs, problems)
    if request.while_pid is not None and not os.path.exists(f"/proc/{request.while_pid}"):
        _throw_away(folder)
    return code


def _throw_away(folder: Path) -> None:
    """Remove a recording whose only reader is gone, and the folder created for it."""
    with contextlib.suppress(OSError, GpuwatchError):
        remove(removal(folder, None))
        folder.parent.rmdir()
