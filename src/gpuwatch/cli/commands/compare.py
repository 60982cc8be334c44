"""Compare sessions and studies with the first: a verdict if there are enough runs, and its reasons.

A study's folder or a tag stands for all its sessions. A single study is compared within its own
blocks. Sessions saved at different times, and several studies, are compared as unpaired groups, so
that any drift between them is part of the difference.
"""

from __future__ import annotations

import argparse
import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from gpuwatch.cli import output_file
from gpuwatch.cli.options import screen_options
from gpuwatch.cli.options.launch import margin
from gpuwatch.cli.options.prices import by_device, price, price_of
from gpuwatch.cli.rendering import FORMATS, render
from gpuwatch.cli.screen import terminal
from gpuwatch.cli.selection import session_lookup
from gpuwatch.core.errors import UsageError
from gpuwatch.core.models import JSON, mapping
from gpuwatch.core.text import to_paste
from gpuwatch.session.reading.reader import SessionReader, known_meta
from gpuwatch.session.study import study_folder
from gpuwatch.session.study.plan import read as read_plan
from gpuwatch.session.study.short_name import short_name

if TYPE_CHECKING:
    from gpuwatch.analysis.results import StudyResult
    from gpuwatch.analysis.study.cost import Price


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION", nargs="*", default=["last"])
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
        "cost of a million samples (default: by their device in $GPUWATCH_PRICES)",
    )
    parser.add_argument("--all", action="store_true", help="all figures, not only what differs")
    screen_options.add_arguments(parser)
    parser.add_argument("--format", choices=FORMATS, help="instead of the screen")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="with --format: write to a new file; an existing one is not overwritten",
    )


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    named = arguments.session
    if set(named) == {"last"}:  # one session is no comparison: that of its study
        named = [str(session_lookup.sessions("last")[0].parent)]
    found = [path for text in named for path in session_lookup.sessions(text)]
    sessions = list({path.resolve(): path for path in found}.values())
    if len(sessions) < 2:
        SessionReader(sessions[0]).close()  # raises if the file is not a session
        name = " and ".join(dict.fromkeys(arguments.session))
        is_one, hint = "is one session", f"its figures: {to_paste('show', short_name(sessions[0]))}"
        plan = read_plan(sessions[0].parent)
        if plan is not None and len(plan.runs) > 1 and session_lookup.target(named[0])[1] == "":
            is_one = f"has one session so far, of {len(plan.runs)} planned"
            hint = f"if it does not go on: {to_paste('resume', sessions[0].parent.name)}; {hint}"
        raise UsageError(f"{name} {is_one}; a comparison takes two or more", hint)
    _refuse_copies(sessions)
    out: Path | None = arguments.out
    if out is not None and arguments.format is None:
        raise UsageError("--out needs --format", "add --format html")
    output_file.check(out)
    options = {
        "across_devices": arguments.across_devices,
        "across_commands": arguments.across_commands,
        "margin": arguments.margin,
    }
    if arguments.format is None and terminal.usable() and not arguments.plain:
        from gpuwatch.tui.app import run_compare

        look = screen_options.look(arguments)
        return run_compare(sessions, **options, whole=arguments.all, look=look)
    from gpuwatch.analysis.study.cost import with_costs
    from gpuwatch.analysis.study.read import read_sessions, read_study

    folder = _whole_study(arguments.session, sessions)
    if folder is None:
        result = read_sessions(sessions, **options)
    else:
        result = read_study(folder, **options)
    result = with_costs(result, prices(arguments.price, result))
    columns, colours = terminal.columns(), not (out or arguments.plain) and terminal.colours()
    if arguments.format in (None, "table") and not arguments.all:
        from gpuwatch.report.document.study import verdict_first
        from gpuwatch.report.text import as_text

        text = as_text(verdict_first(result, "all figures: add --all"), columns, colours)
    else:
        text = render(result, arguments.format or "table", columns, colours)
    output_file.write(out, text)
    return 0


def _refuse_copies(sessions: list[Path]) -> None:
    """Raise ``UsageError`` if two files are of one recording."""
    known: dict[tuple[JSON, JSON], Path] = {}
    for path in sessions:
        meta = known_meta(path) or {}
        of = (mapping(meta.get("session")).get("id"), mapping(meta.get("clock")).get("unix_ns"))
        if None not in of and (other := known.setdefault(of, path)) != path:
            raise UsageError(f"{path} is a copy of {other}: one recording", "name one of them")


def _price(text: str) -> tuple[str, float]:
    """``STUDY=3.20``: sessions as everywhere, and EUR an hour."""
    name, _, value = text.rpartition("=")
    with contextlib.suppress(argparse.ArgumentTypeError):
        if name:
            return name, price(value)
    raise argparse.ArgumentTypeError(
        f"invalid price {text!r}: write SESSION=EUR, such as last=3.20"
    )


def prices(given: list[tuple[str, float]], result: StudyResult) -> list[Price]:
    """Those that were given, and of the sessions that have none by their devices."""
    from gpuwatch.analysis.study.cost import Price

    found = []
    for name, value in given:
        paths = session_lookup.resolved(session_lookup.sessions(name))
        found.append(Price(value, frozenset(map(str, paths))))
    known = by_device()
    of: dict[float, set[str]] = {}
    for session in result.sessions if known else ():
        if (per_hour := price_of(session, known)) is not None:
            of.setdefault(per_hour, set()).add(os.path.realpath(session.path))
    return [*found, *(Price(value, frozenset(paths)) for value, paths in of.items())]


def _whole_study(named: list[str], sessions: list[Path]) -> Path | None:
    """The study's folder if exactly one whole study was named, else ``None``."""
    folder = sessions[0].parent
    alone = len(named) == 1 and len({path.parent for path in sessions}) == 1
    return folder if alone and len(sessions) == len(study_folder.sessions_in(folder)) else None
