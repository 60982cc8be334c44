"""List the runs that go on and the sessions that are saved, newest first.

Without DIR: the default folder of studies, those recorded with --out, and every run that goes on.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from gpuwatch.cli import find
from gpuwatch.errors import GpuwatchError, StorageError
from gpuwatch.models import JSON

_UNBOUNDED = 10_000
"""Columns where the list goes to a file or a pipe: each session stays one line."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", nargs="*", type=Path, metavar="DIR")
    parser.add_argument("--format", choices=("table", "json"), default="table")


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    for folder in arguments.folder:
        if not folder.is_dir():
            raise StorageError(f"no folder {folder}", "see `gpuwatch sessions` without a folder")
    if arguments.folder:
        found = [path for folder in arguments.folder for path in find.sessions_under(folder)]
    else:
        found = find.known_sessions()
    listed = [_row(path) for path in dict.fromkeys(path.resolve() for path in found)]
    listed.sort(key=lambda row: str(row["started"]), reverse=True)
    if arguments.format == "json":
        from gpuwatch.report.json import dumps

        sys.stdout.write(dumps({"schema": 1, "sessions": listed}))
        return 0
    if not listed:
        print("no session was recorded yet; start one: gpuwatch run mnist-cnn", file=sys.stderr)
        return 0
    print(_table(listed, shutil.get_terminal_size((_UNBOUNDED, 24)).columns))
    return 0


def _row(path: Path) -> dict[str, JSON]:
    """What a list says of a session, from its few small tables alone."""
    from gpuwatch.analysis.listing import listing
    from gpuwatch.session.reader import SessionReader

    try:
        with SessionReader(path) as reader:
            return listing(reader)
    except GpuwatchError as error:
        return {
            "id": "",
            "path": str(path),
            "status": "unreadable",
            "status_text": str(error),
            "workload": "",
            "environment": "",
            "started": "",
            "seconds": None,
            "steps": None,
            "step_median_seconds": None,
            "samples_per_second": None,
            "study": path.parent.name,
        }


def _table(listed: list[dict[str, JSON]], columns: int) -> str:
    """One line each; where that is wider than the terminal, the file on a line of its own."""
    from gpuwatch import units
    from gpuwatch.report.table import table
    from gpuwatch.report.values import shown
    from gpuwatch.text import clean

    rows = [
        [
            clean(row["id"], 12),
            clean(row["status"]),
            clean(row["workload"], 24),
            clean(row["environment"], 24),
            clean(row["started"]),
            "" if row["seconds"] is None else units.clock_time(row["seconds"]),
            shown(row["step_median_seconds"], "s"),
        ]
        for row in listed
    ]
    head = ["id", "status", "workload", "environment", "started", "took", "step"]
    files = [clean(row["path"]) for row in listed]
    wide = table(
        [*head, "file"],
        [[*row, file] for row, file in zip(rows, files, strict=True)],
        left=5,
        last_left=True,
    )
    if max(map(len, wide.splitlines())) <= columns:
        return wide
    for row in rows:
        row[0], row[4] = row[0][:8], row[4][:16].replace("T", " ")
    first, *lines = table([*head[:4], "started (UTC)", *head[5:]], rows, left=5).splitlines()
    return "\n".join([first, *(f"{a}\n  {b}" for a, b in zip(lines, files, strict=True))])
