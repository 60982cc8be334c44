"""Sessions side by side: medians, maxima, ratios against the first, and what differs around them.

Each SESSION is a file, a study's folder (all its sessions), the start of a session's id, or `last`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gpuwatch.cli import find, screen
from gpuwatch.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", nargs="+", metavar="SESSION")
    parser.add_argument(
        "--format", choices=("table", "json", "md", "csv"), help="instead of the screen"
    )


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    found = dict.fromkeys(path for text in arguments.session for path in find.sessions(text))
    if len(found) < 2:
        raise UsageError("a comparison takes two sessions or more", "see `gpuwatch sessions`")
    if arguments.format is None and screen.usable():
        from gpuwatch.tui.app import run_compare

        return run_compare(list(found))
    sys.stdout.write(render(list(found), arguments.format or "table"))
    return 0


def render(found: list[Path], form: str) -> str:
    """The comparison of these files in one of the formats."""
    from gpuwatch.analysis.compare import compare
    from gpuwatch.analysis.summary import summarise
    from gpuwatch.report import json, side_by_side
    from gpuwatch.session.reader import SessionReader

    summaries = []
    for path in found:
        with SessionReader(path) as reader:
            summaries.append(summarise(reader))
    compared = compare(summaries)
    notices = [f"{each.label}: {each.notice}" for each in summaries if each.notice]
    if form == "json":
        return json.dumps(json.comparison(compared))
    if form == "md":
        return side_by_side.as_markdown(compared, found[0].parent.name, notices)
    if form == "csv":
        return side_by_side.as_csv(compared)
    return side_by_side.terminal(compared, notices, columns=screen.columns())
