"""Watch a saved session on the live screen."""

from __future__ import annotations

import argparse
import re
from math import inf, isinf
from pathlib import Path

from gpuwatch.cli.options import screen_options
from gpuwatch.cli.screen import terminal
from gpuwatch.cli.selection import session_lookup
from gpuwatch.core.errors import UsageError
from gpuwatch.core.models import mapping
from gpuwatch.core.text import to_paste
from gpuwatch.core.units import clock_time

_SLOWEST, _FASTEST = 0.25, 64.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION", nargs="?", default="last")
    parser.add_argument(
        "--at", type=position, metavar="TIME", help="start at this moment: 90, 1:30 or 1:02:03"
    )
    parser.add_argument(
        "--speed",
        type=speed,
        metavar="X",
        help=f"start playing at X times real time: {_SLOWEST:g} to {_FASTEST:g}, or max",
    )
    terminal.add_arguments(parser)
    screen_options.add_arguments(parser)


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    refresh = terminal.refresh(arguments)
    path = session_lookup.session(arguments.session)
    if arguments.plain and (arguments.at is not None or arguments.speed is not None):
        raise UsageError("--at and --speed do not work with --plain", "omit --plain")
    if arguments.plain:
        from gpuwatch.tui.plain import plain

        return plain.replay(path, arguments.interval)
    if arguments.at is not None:
        _within(path, arguments.at)
    terminal.require(to_paste("replay --plain", path))
    from gpuwatch.tui.feed.snapshot import View

    look = screen_options.look(arguments)
    start = View(at=arguments.at)
    if arguments.speed is not None:
        pace = None if isinf(arguments.speed) else arguments.speed
        start = View(at=arguments.at or 0, playing=True, speed=pace)
    from gpuwatch.tui.app import run_live

    return run_live(path, refresh=refresh, look=look, start=start)


def _within(path: Path, at: int) -> None:
    """Refuse a moment ``at``, in ns since the start, after the end of a session.

    Raises:
        UsageError: the session ends before ``at``.
        NotASession, NewerSchema, StorageError: the file cannot be read.
    """
    from gpuwatch.session.reading.reader import SessionReader

    with SessionReader(path) as reader:
        last = reader.last_sample()
        ended = mapping(reader.meta().get("result")).get("t")
    end = max(last or 0, ended if isinstance(ended, int) else 0)
    if 0 < end < at:
        length, moment = clock_time(end / 1e9), clock_time(at / 1e9)
        raise UsageError(
            f"{path} ends at {length}: nothing was recorded at {moment}",
            f"name a time up to {length}",
        )


def position(text: str) -> int:
    """Parse ``90``, ``1:30`` or ``1:02:03`` into ns since the session's start."""
    if not re.fullmatch(r"\d{1,7}(:[0-5]?\d){0,2}(\.\d{1,9})?", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"invalid time {text!r}: expected 90, 1:30 or 1:02:03")
    seconds = 0.0
    for part in text.split(":"):
        seconds = 60 * seconds + float(part)
    return round(seconds * 1e9)


def speed(text: str) -> float:
    """Parse the speed, in session seconds per second; infinite for ``max``."""
    try:
        value = inf if text == "max" else float(text)
    except ValueError:
        value = 0.0
    if _SLOWEST <= value <= _FASTEST or text == "max":
        return value
    expected = f"{_SLOWEST:g} to {_FASTEST:g}, or max"
    raise argparse.ArgumentTypeError(f"invalid speed {text!r}: expected {expected}")
