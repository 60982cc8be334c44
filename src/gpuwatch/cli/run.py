"""Start a workload and watch it live; without a terminal, record it in the foreground.

The recorder runs in a session of its own: leaving the screen, or losing the connection, does
nothing to the run. `gpuwatch attach` comes back to it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gpuwatch.cli import launch, record, screen
from gpuwatch.errors import ExitCode, UsageError
from gpuwatch.recorder.control import exit_code_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    launch.add_arguments(parser)


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    if not arguments.workload and not command:
        raise UsageError(
            "nothing to run",
            "name a workload, or a command of your own behind --; or just: gpuwatch",
        )
    if not screen.usable():
        arguments.detach, arguments.quiet, arguments.while_pid = False, False, None
        return record.run(arguments, command)
    code, text = record.start_detached(launch.request(arguments, command))
    if code is not ExitCode.DONE:
        print(text, file=sys.stderr)
        return code
    from gpuwatch.tui.app import run_live

    path = Path(text)
    shown = run_live(path)
    return _ended(path) if shown == ExitCode.DONE else shown


def _ended(path: Path) -> int:
    """After the screen: the summary of a run that is over, and its exit code."""
    from gpuwatch.session.reader import SessionReader
    from gpuwatch.session.status import State, status

    with SessionReader(path) as reader:
        meta = reader.meta()
    state = status(meta, path)
    if state.live:
        return ExitCode.DONE
    record.print_summary(path.parent)
    good = state.state in (State.FINISHED, State.STOPPED)
    return ExitCode.DONE if good else exit_code_of(meta.get("error") or {})
