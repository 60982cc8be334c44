"""Watch a run that goes on. Without SESSION: the newest one.

With --record: become the recorder of a run whose recorder died, until the run ends. A hang-up does
nothing to it; Ctrl-C stops the run. With --detach as well it goes on in the background.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from gpuwatch.cli import find, record, screen
from gpuwatch.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", nargs="?", metavar="SESSION")
    parser.add_argument("--record", action="store_true", help="take up the recording of a lost run")
    parser.add_argument("--detach", action="store_true", help="with --record: in the background")


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    path = find.session(arguments.session) if arguments.session else _newest()
    if not arguments.record:
        screen.require(f"gpuwatch show {path}")
        from gpuwatch.tui.app import run_live

        return run_live(path)
    from gpuwatch.recorder.detach import detach
    from gpuwatch.recorder.takeup import take_up

    if arguments.detach:
        return record.tell(
            *detach(lambda on_session: take_up(path, say=record.say, on_session=on_session))
        )
    code = take_up(path, say=record.say)
    record.print_summary(path.parent)
    return code


def _newest() -> Path:
    from gpuwatch.session.reader import SessionReader
    from gpuwatch.session.status import status

    for path in reversed(find.live_sessions()):
        with SessionReader(path) as reader:
            if status(reader.meta(), path).live:
                return path
    raise UsageError("nothing is running", "see `gpuwatch sessions`, or `gpuwatch replay last`")
