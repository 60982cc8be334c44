"""Watch a run that is going on. Without SESSION: the newest one, or a study between two runs.

With --on slurm,job=ID: record a job of yours from within, its processes and GPUs, and watch it.

With --record: become the recorder of a run whose recorder died, until the run ends. A hang-up has
no effect on it; Ctrl-C stops the run. With --detach too, it continues in the background.
"""

from __future__ import annotations

import argparse
import os
import time
from functools import partial
from pathlib import Path

from gpuwatch.cli.options import screen_options
from gpuwatch.cli.say import put, say
from gpuwatch.cli.screen import terminal
from gpuwatch.cli.selection import session_lookup
from gpuwatch.core.errors import ExitCode, UsageError
from gpuwatch.core.text import shell, to_paste
from gpuwatch.places import placements
from gpuwatch.places.placements import Placed
from gpuwatch.session import placement
from gpuwatch.session.placement import JobState
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.reading.status import status
from gpuwatch.session.study.progress import recorder_alive, without_recorder
from gpuwatch.session.study.study_folder import is_held, sessions_in

_LOOK_SECONDS = 0.2
"""Polling interval in s for the first session of a study."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", nargs="?", metavar="SESSION")
    parser.add_argument(
        "--on",
        metavar="slurm,job=ID",
        help="record a job of yours that runs or waits in Slurm, and watch it, until it ends",
    )
    parser.add_argument("--record", action="store_true", help="record a run whose recorder died")
    parser.add_argument("--detach", action="store_true", help="with --record: in the background")
    terminal.add_arguments(parser)
    screen_options.add_arguments(parser)


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    if arguments.on is not None and (arguments.record or arguments.session):
        raise UsageError(
            "--on joins a job, and takes neither SESSION nor --record",
            f"write: {to_paste('attach --on', arguments.on)}",
        )
    if not arguments.record:
        return _watch(arguments, terminal.refresh(arguments))
    from gpuwatch.cli.commands import record

    if (orphaned := _orphaned(arguments.session)) is not None:
        from gpuwatch.cli.place import watching

        placed, told = orphaned
        watching.take_over(placed)
        if arguments.detach:
            put(placed.study)
            return ExitCode.DONE
        code = watching.until_over([placed], told)
        record.print_summary(Path(placed.study))
        return code
    path = _to_take_over(arguments.session) if arguments.session else _running()
    if path is None:
        raise _nothing()
    from gpuwatch.recorder.observer import Observer, detach
    from gpuwatch.recorder.recover import take_over

    if arguments.detach:
        return record.report_start(*detach(partial(take_over, path), say))
    code = take_over(path, Observer(say))
    record.print_summary(path.parent)
    return code


def _orphaned(session: str | None) -> tuple[Placed, str] | None:
    """The study at a place that lost its recorder there, and what is told of that; ``None``: no
    such study is named."""
    if session is None:
        return None
    placed = placements.named(session) or placements.of_study(_to_take_over(session).parent)
    known = None if placed is None else placement.read(Path(placed.study))
    if placed is None or known is None or known.state is not JobState.ORPHANED:
        return None
    return placed, known.text


def _to_take_over(session: str) -> Path:
    """Of a study the run that lost its recorder here."""
    alone = without_recorder(Path(session)) if os.path.isdir(session) else None
    return alone or session_lookup.session(session)


def _watch(arguments: argparse.Namespace, refresh: float) -> int:
    session: str | None = arguments.session
    placed = _at_a_place(session) if arguments.on is None else _joined(arguments)
    if placed is not None:
        from gpuwatch.cli.place import watching

        if not arguments.plain and watching.waits(placed):
            terminal.require(to_paste("attach --plain", Path(placed.study).name))
            return watching.on_screen(placed, screen_options.look(arguments), refresh)
    path = _first(placed, session)
    follow = session is None and arguments.on is None
    if not arguments.plain:
        terminal.require(to_paste("attach --plain", path))
    goes_on = recorder_alive(path.parent)
    shown = screen_options.watch(arguments, path, refresh, follow=follow)
    from gpuwatch.cli.commands import record
    from gpuwatch.cli.study_result import exit_code, exit_code_of_run

    if shown != ExitCode.DONE or recorder_alive(path.parent):
        return shown
    if goes_on and not arguments.plain:
        record.print_summary(path.parent)
    return exit_code(path.parent) if follow or placed else exit_code_of_run(path)


def watched(session: str | None) -> Path:
    """The session to watch, of a study the last (at a place the first); ``None``: the newest run
    that goes on. Waits for a session if there is none yet.

    Raises:
        UsageError: there is nothing to watch.
        GpuwatchError: its place cannot be reached, or its job was cut off or could not start.
    """
    return _first(_at_a_place(session), session)


def _first(placed: Placed | None, session: str | None) -> Path:
    if placed is not None:
        from gpuwatch.cli.place import watching

        path = watching.first_session(placed)
        if path is None:
            raise _nothing()
        return path
    path = session_lookup.last_run(session) if session else _running() or _between_runs()
    if session is not None:
        _followed(placements.of_study(path.parent))
    return path


def _joined(arguments: argparse.Namespace) -> Placed:
    """The recording of a job that is there already, which begins now.

    Raises:
        UsageError: its number is none, or the place is another one.
        NotAvailable: it cannot be joined.
    """
    if not arguments.plain:
        terminal.require(f"gpuwatch attach --plain --on {shell(arguments.on)}")
    from gpuwatch.cli.options import joining
    from gpuwatch.cli.place import sending

    (placed,) = sending.send(joining.request(arguments.on))
    return placed


def _at_a_place(session: str | None) -> Placed | None:
    """The study to watch that goes on at a place, which is followed from now on; ``None``: no such
    study is meant.

    Raises:
        NotAvailable: the place cannot be reached.
    """
    if session is not None:
        return _followed(placements.named(session))
    return None if _running() is not None else _followed(placements.newest())


def _followed(placed: Placed | None) -> Placed | None:
    """``placed``, which somebody follows from now on; ``None``: it is over, or runs here.

    Raises:
        NotAvailable: the place cannot be reached.
    """
    if placed is None or placed.done:
        return None
    from gpuwatch.cli.place import watching

    watching.have_followed(placed)
    return placed


def _nothing() -> UsageError:
    return UsageError("nothing is running", "see `gpuwatch sessions`, or `gpuwatch replay last`")


def _running() -> Path | None:
    """The newest session of a live run."""
    for path in reversed(session_lookup.live_sessions()):
        with SessionReader(path) as reader:
            if status(reader.meta(), path).live:
                return path
    return None


def _between_runs() -> Path:
    """The latest session of the newest running study; waits for the first one if necessary."""
    going = session_lookup.studies_going_on()
    if not going:
        raise _nothing()
    folder = going[-1]
    if not sessions_in(folder):
        say(f"{folder.name} is preparing its first run …")
    while not (sessions := sessions_in(folder)):
        if not is_held(folder):
            raise _nothing()
        time.sleep(_LOOK_SECONDS)
    return max(sessions, key=lambda path: path.stat().st_mtime)
