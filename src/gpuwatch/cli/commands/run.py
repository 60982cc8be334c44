"""Start a workload and watch it live; without a terminal, record it in the foreground.

The recorder runs in a session of its own: leaving the screen, or losing the connection, does not
affect the run. `gpuwatch attach` returns to it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from gpuwatch.cli.commands import record
from gpuwatch.cli.options import launch, screen_options
from gpuwatch.cli.plan import plan_preview
from gpuwatch.cli.screen import terminal
from gpuwatch.core.errors import ExitCode, UsageError
from gpuwatch.core.models import mapping
from gpuwatch.recorder.control import exit_code_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    launch.add_arguments(parser)
    screen_options.add_arguments(parser)


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    if not (arguments.workload or arguments.commands or command):
        raise UsageError(
            "nothing to run",
            "name a workload, or a program of your own; or just: gpuwatch",
        )
    if not (arguments.plain or terminal.usable()):
        arguments.detach, arguments.quiet, arguments.while_pid = False, False, None
        return record.run(arguments, command)
    request = launch.request(arguments, command)
    if plan_preview.shown(request, arguments):
        return ExitCode.DONE
    plan_preview.announce(request)
    record.report_orphans()
    code, text = record.start_detached(request)
    if code is not ExitCode.DONE:
        return record.report_start(code, text)
    path = Path(text)
    if arguments.plain:
        from gpuwatch.tui.plain import plain

        shown = plain.watch(path, max(plain.INTERVAL_SECONDS, arguments.interval))
    else:
        from gpuwatch.tui.app import run_live

        refresh = max(terminal.REFRESH_SECONDS, arguments.interval)
        shown = run_live(path, refresh=refresh, look=screen_options.look(arguments))
    return _ended(path.parent) if shown == ExitCode.DONE else shown


def _ended(folder: Path) -> int:
    """After the screen: print the summary of a finished study, and return its exit code."""
    from gpuwatch.session.reading.reader import SessionReader
    from gpuwatch.session.reading.status import State, status
    from gpuwatch.session.study.outcomes import GIVEN_UP
    from gpuwatch.session.study.progress import recorder_alive
    from gpuwatch.session.study.study_folder import STUDY_ENDED, not_run, sessions_in

    if recorder_alive(folder):
        return ExitCode.DONE
    known = {STUDY_ENDED, *GIVEN_UP}
    missing = [run_ for run_ in not_run(folder) if run_.problems[0].code not in known]
    code = ExitCode.NOT_AVAILABLE if missing else ExitCode.DONE
    for path in sessions_in(folder):
        with SessionReader(path) as reader:
            meta = reader.meta()
        if status(meta, path).state not in (State.FINISHED, State.STOPPED):
            failed = mapping(meta.get("result")).get("launcher_failed")
            reason = ExitCode.NOT_AVAILABLE if failed else exit_code_of(mapping(meta.get("error")))
            code = max(code, reason)
    record.print_summary(folder)
    return code
