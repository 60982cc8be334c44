"""How a study ended, as an exit code."""

from __future__ import annotations

from pathlib import Path

from gpuwatch.core.errors import ExitCode
from gpuwatch.core.models import mapping
from gpuwatch.recorder.control import exit_code_of
from gpuwatch.session.placement import read as read_placement
from gpuwatch.session.reading.reader import read_meta
from gpuwatch.session.reading.status import State, status
from gpuwatch.session.study.outcomes import GIVEN_UP
from gpuwatch.session.study.study_folder import STUDY_ENDED, not_run, sessions_in


def exit_code(folder: Path) -> int:
    """The exit code of a study: the highest of its runs; one that goes on has none."""
    known = {STUDY_ENDED, *GIVEN_UP}
    missing = [run_ for run_ in not_run(folder) if run_.problems[0].code not in known]
    code = ExitCode.NOT_AVAILABLE if missing else ExitCode.DONE
    placement = read_placement(folder)
    if placement is not None and placement.state.cut_off:  # perhaps between two runs
        code = max(code, ExitCode.RUN_FAILED)
    return max(code, *map(exit_code_of_run, sessions_in(folder)), ExitCode.DONE)


def exit_code_of_run(path: Path) -> int:
    """The exit code of a run; one that goes on has none."""
    meta = read_meta(path)
    state = status(meta, path)
    if state.live or state.state in (State.FINISHED, State.STOPPED):
        return ExitCode.DONE
    failed = mapping(meta.get("result")).get("launcher_failed")
    return ExitCode.NOT_AVAILABLE if failed else exit_code_of(mapping(meta.get("error")))
