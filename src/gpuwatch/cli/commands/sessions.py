"""List running and saved sessions, newest first.

Without DIR: the default folder of studies, those recorded with --out, and every live run.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from pathlib import Path

from gpuwatch.cli.say import say
from gpuwatch.cli.selection import session_lookup
from gpuwatch.cli.selection.session_index import Listed, listed
from gpuwatch.core.errors import StorageError
from gpuwatch.core.json_schema import JSON_SCHEMA
from gpuwatch.core.models import JSON

_UNBOUNDED = 10_000
"""Width in columns for a file or a pipe, so that each session stays on one line."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", nargs="*", type=Path, metavar="DIR")
    parser.add_argument("--format", choices=("table", "json"), default="table")


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    for folder in arguments.folder:
        if not os.path.isdir(folder):
            raise StorageError(f"no folder {folder}", "list all sessions: gpuwatch sessions")
    if arguments.folder:
        under = [
            path for folder in arguments.folder for path in session_lookup.sessions_under(folder)
        ]
        found = listed(session_lookup.resolved(under))
    else:
        found = listed(session_lookup.known_sessions())
    if arguments.format == "json":
        sys.stdout.write(_json(found))
        return 0
    if not found.sessions:
        print("no session was recorded yet; start one: gpuwatch run mnist-cnn", file=sys.stderr)
        return 0
    print(_table(found.sessions, shutil.get_terminal_size((_UNBOUNDED, 24)).columns))
    for problem in found.problems:
        say(f"names, tags and notes are missing: {problem}")
    return 0


def _json(found: Listed) -> str:
    """The JSON document, with one line per session and study."""
    from gpuwatch.core.text import document

    def lines(rows: list[dict[str, JSON]]) -> str:
        inner = ",\n".join(f"    {json.dumps(row, ensure_ascii=False)}" for row in rows)
        return f"[\n{inner}\n  ]" if rows else "[]"

    sessions, studies = lines(found.sessions), lines(found.studies)
    return document(
        f'{{\n  "schema": {JSON_SCHEMA},\n  "sessions": {sessions},\n  "studies": {studies}\n}}\n'
    )


def _table(rows: list[dict[str, JSON]], columns: int) -> str:
    """One line per session; if that is wider than ``columns``, the file is on a second line."""
    from gpuwatch.core import units
    from gpuwatch.core.text import clean, shell
    from gpuwatch.report.tables.plain import table

    # No columns for names and tags if no session has any.
    given = [key for key in ("name", "tags") if any(row[key] for row in rows)]
    cells = [
        [
            clean(row["id"], 12),
            clean(row["status"]),
            clean(row["workload"], 24),
            clean(row["environment"], 24),
            *(clean(row[key] if key == "name" else " ".join(row[key]), 24) for key in given),
            clean(row["started"]),
            "" if row["seconds"] is None else units.clock_time(row["seconds"]),
            units.quantity(row["step_median_seconds"], "s"),
        ]
        for row in rows
    ]
    head = ["id", "status", "workload", "environment", *given, "started", "took", "step"]
    left = 5 + len(given)
    files = [shell(row["path"]) for row in rows]
    wide = table(
        [*head, "file"],
        [[*row, file] for row, file in zip(cells, files, strict=True)],
        left=left,
        last_left=True,
    )
    if max(map(len, wide.splitlines())) <= columns:
        return wide
    for row in cells:
        row[0], row[-3] = row[0][:8], row[-3][:16].replace("T", " ")
    head[-3] = "started (UTC)"
    first, *lines = table(head, cells, left=left).splitlines()
    return "\n".join([first, *(f"{a}\n  {b}" for a, b in zip(lines, files, strict=True))])
