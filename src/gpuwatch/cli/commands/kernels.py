"""Show which kernels ran: the profile of some steps after the timed ones, or an imported one.

The tables have the names and columns of nsys stats. Without --table the GPU kernels are shown, or
the CPU operators if there are none, below what they do; JSON has all tables in full.
"""

from __future__ import annotations

import argparse
import sys
from textwrap import fill

from gpuwatch.cli.say import say
from gpuwatch.cli.screen import terminal
from gpuwatch.cli.selection import session_lookup
from gpuwatch.core.errors import NotAvailable, UsageError
from gpuwatch.core.text import clean

_ROWS = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION", nargs="?", default="last")
    parser.add_argument("--table", metavar="NAME", help="another table, or `all`")
    parser.add_argument(
        "--limit", type=int, metavar="N", help="rows shown (default: 20, json: all; 0: all)"
    )
    parser.add_argument("--format", choices=("table", "json", "md", "csv"), default="table")


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    limit = arguments.limit
    if limit is not None and limit < 0:
        raise UsageError(f"invalid --limit {limit}", "give a number of rows, or 0 for all")
    if limit is None and arguments.format != "json":
        limit = _ROWS
    path = session_lookup.session(arguments.session)
    from gpuwatch.analysis.hardware.kernels import all_tables
    from gpuwatch.analysis.hardware.profile import (
        COUNTERS,
        FAMILIES,
        counters_of,
        profile_of,
        why_none,
    )
    from gpuwatch.core.models import mapping, number
    from gpuwatch.report import json, kernels
    from gpuwatch.session.reading.reader import SessionReader

    with SessionReader(path) as reader:
        meta = reader.meta()
    for omission in reader.left_out:
        say(f"note: {omission}")
    profile, counters = profile_of(meta), counters_of(meta)
    tables = all_tables(profile, counters)
    if not tables and (counters is None or counters.reason):
        reason, hint = why_none(meta)
        if counters is not None and counters.reason:
            reason += f"; it has no counters either: {counters.reason}"
        raise NotAvailable(reason, hint)
    name = arguments.table
    if name == "all" or (name is None and arguments.format == "json"):
        shown = list(tables.values())
    elif name is None:
        main = profile.main_table() if profile is not None else None
        shown = [main] if main is not None else [t for n, t in tables.items() if n == COUNTERS]
        if arguments.format == "table" and FAMILIES in tables:
            shown = [tables[FAMILIES], *shown]
    elif name in tables:
        shown = [tables[name]]
    else:
        raise UsageError(
            f"the session has no table {name!r}", f"choose one of {', '.join(tables)}, or all"
        )
    limit = limit or None
    if arguments.format == "json":
        sys.stdout.write(json.dumps(kernels.document(profile, counters, shown, limit)))
        return 0
    write = {"md": kernels.as_markdown, "csv": kernels.as_csv}
    if arguments.format != "table":
        parts = [write[arguments.format](table, limit) for table in shown]
    else:
        columns = terminal.columns()
        parts = [kernels.as_text(table, limit, columns) for table in shown]
        flop = number(mapping(meta.get("count")).get("flop_per_step"))
        heading = kernels.heading(profile, counters, flop)
        others = [clean(other) for other in tables if other not in {table.name for table in shown}]
        last = [f"other tables: {', '.join(others)} (--table NAME, or all)"] if others else []
        first, last = (
            [f"{fill(line, columns, subsequent_indent='  ')}\n" for line in lines]
            for lines in (heading, last)
        )
        parts = ["".join(first), *parts, *last]
    sys.stdout.write("\n".join(parts))
    return 0
