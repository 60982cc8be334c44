"""Compare sessions and studies with the first: a verdict if there are enough runs, and its reasons.

A study's folder or a tag stands for all its sessions. A single study is compared within its own
blocks. Sessions saved at different times, and several studies, are compared as unpaired groups, so
that any drift between them is part of the difference.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from pathlib import Path

from gpuwatch.cli.options import screen_options
from gpuwatch.cli.options.launch import margin
from gpuwatch.cli.rendering import FORMATS, render
from gpuwatch.cli.screen import terminal
from gpuwatch.cli.selection import session_lookup
from gpuwatch.core import output
from gpuwatch.core.errors import StorageError, UsageError
from gpuwatch.core.text import to_paste
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.study import study_folder
from gpuwatch.session.writing.write_hints import write_hint


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", nargs="+", metavar="SESSION")
    parser.add_argument(
        "--across-devices",
        action="store_true",
        help="give a verdict also for runs on different GPUs or processors",
    )
    parser.add_argument(
        "--across-commands",
        action="store_true",
        help="give a verdict also for runs of different commands, and list what differs",
    )
    parser.add_argument(
        "--margin",
        type=margin,
        metavar="PERCENT",
        help="largest change of the step time that does not matter, such as 0.5%% (default: the "
        "study's, or 1%%)",
    )
    parser.add_argument(
        "--price",
        action="append",
        type=_price,
        default=[],
        metavar="SESSION=EUR",
        help="what an hour costs of the machine that these sessions ran on, repeatable: adds the "
        "cost of a million samples (with --format)",
    )
    screen_options.add_arguments(parser)
    parser.add_argument("--format", choices=FORMATS, help="instead of the screen")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="with --format: write to a new file; an existing one is not overwritten",
    )


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    sessions = list(
        dict.fromkeys(path for text in arguments.session for path in session_lookup.sessions(text))
    )
    if len(sessions) < 2:
        for path in sessions:
            SessionReader(path).close()  # raises if the file is not a session
        what = f"{sessions[0]} is one session" if sessions else "there is no session"
        raise UsageError(
            f"{what}; a comparison takes two or more",
            f"its figures: {to_paste('show', sessions[0])}",
        )
    out: Path | None = arguments.out
    if out is not None and arguments.format is None:
        raise UsageError("--out needs --format", "add --format html")
    if out is not None and os.path.lexists(out):
        raise _taken(out)
    if arguments.price and arguments.format is None:
        raise UsageError("--price needs --format", "add --format table")
    options = {
        "across_devices": arguments.across_devices,
        "across_commands": arguments.across_commands,
        "margin": arguments.margin,
    }
    if arguments.format is None and terminal.usable() and not arguments.plain:
        from gpuwatch.tui.app import run_compare

        return run_compare(sessions, **options, look=screen_options.look(arguments))
    from gpuwatch.analysis.study.read import read_sessions, read_study

    folder = _whole_study(arguments.session, sessions)
    if folder is None:
        result = read_sessions(sessions, **options)
    else:
        result = read_study(folder, **options)
    if arguments.price:
        from gpuwatch.analysis.study.cost import Price, with_costs

        prices = []
        for name, value in arguments.price:
            paths = session_lookup.resolved(session_lookup.sessions(name))
            prices.append(Price(name, value, frozenset(map(str, paths))))
        result = with_costs(result, prices)
    text = render(result, arguments.format or "table", columns=terminal.columns())
    if out is None:
        sys.stdout.write(text)
    else:
        _write(out, text)
    return 0


def _price(text: str) -> tuple[str, float]:
    """``STUDY=3.20``: sessions as everywhere, and EUR an hour."""
    name, _, value = text.rpartition("=")
    if not name or not re.fullmatch(r"\d+(\.\d+)?", value) or not float(value):
        raise argparse.ArgumentTypeError(
            f"invalid price {text!r}: write SESSION=EUR, such as last=3.20"
        )
    return name, float(value)


def _write(out: Path, text: str) -> None:
    """Create the file ``out``, completely or not at all."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with output.open_output(out, new=True) as file:
            file.write(text.encode())
    except FileExistsError as error:
        if os.path.lexists(out):
            raise _taken(out) from None
        reason = f"{out.parent} is not a folder"
        raise StorageError(f"cannot write {out}: {reason}", "choose another --out") from error
    except OSError as error:
        raise StorageError(
            f"cannot write {out}: {error.strerror}", write_hint(out, error)
        ) from error


def _taken(out: Path) -> UsageError:
    return UsageError(f"{out} already exists", "choose another name, or remove it")


def _whole_study(named: list[str], sessions: list[Path]) -> Path | None:
    """The study's folder if exactly one whole study was named, else ``None``."""
    folder = sessions[0].parent
    alone = len(named) == 1 and len({path.parent for path in sessions}) == 1
    return folder if alone and len(sessions) == len(study_folder.sessions_in(folder)) else None
