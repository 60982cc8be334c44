"""List running and saved sessions, newest first; a study is one line.

Without DIR: the default folder of studies, those recorded with --out, and every live run.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections import Counter
from datetime import datetime
from pathlib import Path

from gpuwatch.analysis.summary.listing import elapsed
from gpuwatch.cli.say import say
from gpuwatch.cli.selection import session_lookup
from gpuwatch.cli.selection.session_index import Listed, listed
from gpuwatch.core import units
from gpuwatch.core.errors import StorageError
from gpuwatch.core.json_schema import JSON_SCHEMA
from gpuwatch.core.metrics import Method
from gpuwatch.core.models import JSON
from gpuwatch.core.text import clean, document
from gpuwatch.session.in_part import RunInPart

_UNBOUNDED = 10_000
"""Width in columns for a file or a pipe, where nothing is cut."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", nargs="*", type=Path, metavar="DIR")
    parser.add_argument("--runs", action="store_true", help="a line for each run of a study")
    parser.add_argument("--paths", action="store_true", help="with the file of each")
    parser.add_argument("--format", choices=("table", "json"), default="table")


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    for folder in arguments.folder:
        if not os.path.isdir(folder):
            raise StorageError(f"no folder {folder}", "list all sessions: gpuwatch sessions")
    if arguments.folder:
        paths = [
            path for folder in arguments.folder for path in session_lookup.sessions_under(folder)
        ]
        listing = listed(session_lookup.resolved(paths))
    else:
        listing = listed(session_lookup.known_sessions(), session_lookup.waiting_studies())
    if arguments.format == "json":
        sys.stdout.write(_json(listing))
        return 0
    if not (listing.sessions or listing.studies):
        print("no session was recorded yet; start one: gpuwatch run mnist-cnn", file=sys.stderr)
        return 0
    columns = shutil.get_terminal_size((_UNBOUNDED, 24)).columns
    print(_table(listing, columns, runs=arguments.runs, paths=arguments.paths))
    for problem in listing.problems:
        say(f"names, tags and notes are missing: {problem}")
    return 0


def _json(listing: Listed) -> str:
    """The JSON document, with one line per session and study."""

    def lines(rows: list[dict[str, JSON]]) -> str:
        inner = ",\n".join(f"    {json.dumps(row, ensure_ascii=False)}" for row in rows)
        return f"[\n{inner}\n  ]" if rows else "[]"

    sessions, studies = lines(listing.sessions), lines(listing.studies)
    return document(
        f'{{\n  "schema": {JSON_SCHEMA},\n  "sessions": {sessions},\n  "studies": {studies}\n}}\n'
    )


def _table(listing: Listed, columns: int, *, runs: bool, paths: bool) -> str:
    """A line for each study and for each session of none, newest first; lines are cut to
    ``columns``. ``runs``: a line for each session; ``paths``: with its file, not cut."""
    from gpuwatch.core.text import shell
    from gpuwatch.report.tables import table

    waiting = [row for row in listing.studies if not row["sessions"]]
    planned = [] if runs else [row for row in listing.studies if row["runs"]]
    studies = {row["path"]: row for row in [*waiting, *planned]}
    sessions: dict[str, list[dict[str, JSON]]] = {row["path"]: [] for row in waiting}
    for row in listing.sessions:  # newest first, and so are the studies
        folder = os.path.dirname(row["path"])
        sessions.setdefault(folder if folder in studies else row["path"], []).append(row)
    rows = [
        _study_line(studies[path], of_path) if path in studies else _session_line(of_path[0])
        for path, of_path in sessions.items()
    ]
    named = {"started": f"started, {datetime.now().astimezone().tzname()}"}
    head = [name for name in _HEAD if name not in _OPTIONAL or any(row[name] for row in rows)]
    if paths:
        head.append("file")
        rows = [{**row, "file": shell(path)} for row, path in zip(rows, sessions, strict=True)]
        heads = [named.get(name, name) for name in head]
        return table(heads, [[row[name] for name in head] for row in rows], left=len(head))
    few = [name for name in head if name not in _FIGURES]
    least = [name for name in few if name != "started"]
    for shown, longest in (
        *((head, 28), (head, 20), (few, 28), (few, 20), (few, 16)),
        *((least, 20), (least, 12)),
    ):
        cut = [[*(_cut(row[name], longest) for name in shown[:-1]), row[shown[-1]]] for row in rows]
        heads = [named.get(name, name) for name in shown]
        lines = table(heads, cut, left=len(shown)).splitlines()
        if lines[0].index(shown[-1]) + _RESULT <= columns:
            break
    return "\n".join(_cut(line, columns) for line in lines)


_HEAD = (
    *("session", "status", "command", "env", "tags", "started", "elapsed"),
    *("MFU", "peak mem", "result"),
)
_FIGURES = ("MFU", "peak mem")
"""Columns that go where there is no room."""
_OPTIONAL = ("tags", *_FIGURES)
"""Columns that only some lists have."""
_LONGEST = 28
"""Columns of a cell."""
_RESULT = 12
"""Columns that the last cell needs at least."""
_OPEN = frozenset({"queued", "starting", "running", "unknown"})
"""Statuses of runs that are not over."""


def _session_line(row: dict[str, JSON]) -> dict[str, str]:
    step, peak = row["step_median_seconds"], row["peak_gpu_memory_bytes"]
    bound = "at most" if row["peak_gpu_memory_method"] == Method.BOUND.value else None
    result = row["failure"] or ("" if step is None else f"{units.quantity(step, 's')}/step")
    return {
        **_line(row, row["id"][:8], row["status"], [row], result),
        "MFU": "" if row["mfu"] is None else units.percent(row["mfu"]),
        "peak mem": "" if peak is None else units.bounded(units.binary(peak), bound),
    }


def _study_line(study: dict[str, JSON], rows: list[dict[str, JSON]]) -> dict[str, str]:
    counts = Counter(row["status"] for row in rows)
    states = ", ".join(f"{count} {status}" for status, count in counts.items())
    placement = study["placement"]
    if placement is not None and not rows:
        states = placement["state"]
    elif study["runs"] > len(rows):
        over = "ended" if placement is None else placement["state"]
        states = f"{'running' if study['going_on'] else over}: {states} of {study['runs']}"
    sentences = " ".join(entry["text"] for entry in study["says"]) or study["title"] or ""
    if placement is not None and (study["going_on"] or not _OPEN.isdisjoint(counts)):
        sentences = placement["text"]
    elif placement is not None and placement["in_part"] and not study["says"]:
        sentences = _in_part(placement["in_part"])
    return _line(study, study["study"], states, rows[::-1], sentences)


def _in_part(rows: list[dict[str, JSON]]) -> str:
    """What is known of runs whose sessions were not fetched."""
    if len(rows) == 1:
        return RunInPart(**rows[0]).text
    counts = Counter(row["status"] for row in rows)
    return ", ".join(f"{count} {status}" for status, count in counts.items()) + ", as last reported"


def _line(
    labels: dict[str, JSON], name: str, status: str, rows: list[dict[str, JSON]], result: str
) -> dict[str, str]:
    """The cells of a line for ``rows``, in the order of their starts; ``labels`` has the tags, and
    the name that was given with ``gpuwatch rename``."""
    seconds = elapsed((row["started"], row["seconds"]) for row in rows)
    cells = {
        "session": labels["name"] or name,
        "status": status,
        "command": _commands(rows) if rows else ", ".join(labels["commands"]),
        "env": ", ".join(_several(rows, "environment") if rows else labels["environments"]),
        "tags": " ".join(labels["tags"]),
        "started": _started(rows[0]["started"]) if rows else "",
        "elapsed": "" if seconds is None else units.clock_time(seconds),
    }
    cut = {key: _cut(clean(cell), _LONGEST) for key, cell in cells.items()}
    return {**cut, "MFU": "", "peak mem": "", "result": clean(result, 200)}


def _commands(rows: list[dict[str, JSON]]) -> str:
    if len(_several(rows, "command")) == 1:
        label, command = rows[0]["command_label"], str(rows[0]["command"])
        return f"{label}: {command}" if label else command
    labels = dict.fromkeys(row["command_label"] or row["workload"] for row in rows)
    return ", ".join(filter(None, labels))


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _started(text: str) -> str:
    """Month, day and time here; of another year the day."""
    try:
        started = datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError, OSError):
        return ""
    this_year = started.year == datetime.now().astimezone().year
    return started.strftime("%m-%d %H:%M" if this_year else "%Y-%m-%d")


def _several(rows: list[dict[str, JSON]], key: str) -> list[str]:
    return list(dict.fromkeys(row[key] for row in rows if row[key]))
