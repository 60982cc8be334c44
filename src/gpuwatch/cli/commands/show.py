"""Show a session: its main figures and what bounds it, or all figures, each with its method."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gpuwatch.cli.options.prices import by_device, price, price_of
from gpuwatch.cli.screen import terminal
from gpuwatch.cli.selection import session_lookup
from gpuwatch.core.errors import UsageError
from gpuwatch.core.models import those
from gpuwatch.core.text import clean, to_paste
from gpuwatch.session.placement import Placement

_LAST_LINES = 10
"""Of what a job printed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION", nargs="?", default="last")
    parser.add_argument("--all", action="store_true", help="all figures and notes")
    parser.add_argument(
        "--price",
        type=price,
        metavar="EUR",
        help="what an hour costs of its machine (default: by its device in $GPUWATCH_PRICES)",
    )
    parser.add_argument("--format", choices=("table", "json", "md", "csv"), default="table")


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    if (found := session_lookup.without_session(arguments.session)) is not None:
        sys.stdout.write(_without_session(*found, arguments.format))
        return 0
    path = session_lookup.session(arguments.session)
    from gpuwatch.analysis.comparison.side_by_side import compare
    from gpuwatch.analysis.study.cost import run_cost, run_energy
    from gpuwatch.analysis.study.read import read_from
    from gpuwatch.analysis.summary.identity import sound
    from gpuwatch.analysis.summary.requested import requested
    from gpuwatch.report import csv, json, markdown, text
    from gpuwatch.report.document.sessions import document, short
    from gpuwatch.session.reading.reader import SessionReader
    from gpuwatch.session.study.short_name import short_name

    with SessionReader(path) as reader:
        read = read_from(reader)
        summary = read.summary
        given = requested(reader, summary.timing.cpu_seconds)
        per_hour = arguments.price or price_of(summary, by_device())
        cost = run_cost(summary, per_hour, run_energy(reader, summary)) if per_hour else ""
        paid = per_hour * held / 3600 if per_hour and (held := summary.held_seconds) else None
    if arguments.format == "json":
        sys.stdout.write(json.dumps(json.summary(summary)))
        return 0
    look = terminal.columns(), terminal.colours()
    whole = arguments.all or summary.workload.get("kind") == "import"
    if arguments.format == "table" and not whole:
        first = text.as_text(short(read, given, paid, cost), *look)
        again = short_name(path)
        printed = "" if sound(summary) else f"full output: {to_paste('log', again)}\n"
        sys.stdout.write(f"{first}\n{printed}all figures: {to_paste('show --all', again)}\n")
        return 0
    compared = compare([summary])
    costs = f"cost: {cost}" if cost else ""
    notices = [each for each in (costs, summary.notice, read.steady.note) if each]
    told = document(compared, summary.label, notices)
    if arguments.format == "md":
        sys.stdout.write(markdown.written(told))
    elif arguments.format == "csv":
        sys.stdout.write(csv.of_sessions(compared))
    else:
        sys.stdout.write(text.as_text(told, *look))
    return 0


def _without_session(folder: Path, placement: Placement, format_: str) -> str:
    """What is known of a study at a place of which no session is here.

    Raises:
        UsageError: the format is one of sessions.
    """
    import json
    from dataclasses import asdict

    from gpuwatch.core.json_schema import JSON_SCHEMA
    from gpuwatch.session.placement import job_log
    from gpuwatch.session.study.plan import labels
    from gpuwatch.session.study.plan import read as read_plan

    plan = read_plan(folder)
    part = None if placement.going_on else placement.in_part
    runs, more = ((), 0) if part is None else (part.runs, part.more)
    if format_ == "json":
        found = {"schema": JSON_SCHEMA, "study": folder.name, "state": placement.state.value}
        known = those(placement, "reason", "hint", "place", "native")
        told = {"in_part": [asdict(run) for run in runs], "more": more}
        return json.dumps({**found, **known, **told}) + "\n"
    if format_ != "table":
        raise UsageError(
            f"--format {format_} shows a session, and none of {folder.name} is here",
            f"what is known: {to_paste('show', folder.name)}",
        )
    names = () if plan is None else labels(plan.runs)
    lines = [f"{folder.name}: {placement.text}"]
    lines += [
        f"  run {told.run} ({clean(names[told.run - 1])}): {told.text}"
        for told in runs
        if told.run <= len(names)
    ]
    if part is None:
        job = f", job {placement.known_as}" if placement.native else ""
        lines += [f"place: {placement.place}{job}", *filter(None, [placement.hint])]
        lines += [f"  {line}" for line in job_log(folder)[-_LAST_LINES:]]
        return "\n".join([*lines, ""])
    if more:
        lines.append(f"  {more} more, of which nothing is known")
    lines.append("Samples, steps and output are gone: there are no further figures and no verdict.")
    return "\n".join([*lines, f"Repeat it: {to_paste('resume', folder.name)}", ""])
