"""List sessions, what runs first, then the newest; a study is one line.

Without DIR: the default folder of studies, those recorded with --out, and every live run.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from gpuwatch.analysis.summary.listing import (
    Labelled,
    Listed,
    ListedSession,
    ListedStudy,
    at_place,
    elapsed,
    started_here,
    what_ran,
)
from gpuwatch.cli.say import say
from gpuwatch.cli.screen import terminal
from gpuwatch.cli.selection import session_lookup
from gpuwatch.cli.selection.session_index import listed
from gpuwatch.core import units
from gpuwatch.core.errors import StorageError, UsageError
from gpuwatch.core.json_schema import JSON_SCHEMA
from gpuwatch.core.models import JSON
from gpuwatch.core.text import clean, cut, document, shell, to_paste
from gpuwatch.session.in_part import RunInPart
from gpuwatch.workloads.options import positive_int

_UNBOUNDED = 10_000
"""Width in columns for a file or a pipe, where nothing is cut."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", nargs="*", type=Path, metavar="DIR")
    parser.add_argument(
        "--find", metavar="WORDS", help="those with all of these words, as / on the home screen"
    )
    parser.add_argument("-n", dest="newest", type=positive_int, metavar="N", help="the newest N")
    parser.add_argument("--runs", action="store_true", help="a line for each run of a study")
    parser.add_argument("--paths", action="store_true", help="with the file of each")
    parser.add_argument("--format", choices=("table", "json"), default="table")


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    for folder in arguments.folder:
        if not os.path.isdir(folder):
            raise StorageError(
                f"no folder {folder}",
                f"sessions with this word: {to_paste('sessions --find', str(folder))}",
            )
    if arguments.folder:
        paths = [
            path for folder in arguments.folder for path in session_lookup.sessions_under(folder)
        ]
        listing = listed(session_lookup.resolved(paths))
    else:
        listing = listed(session_lookup.known_sessions(), session_lookup.waiting_studies())
    if arguments.find:
        apart = arguments.runs or arguments.format == "json"
        listing = _found(listing, arguments.find, runs=apart)
    if arguments.newest:
        listing = _newest(listing, arguments.newest, runs=arguments.runs)
    if arguments.format == "json":
        sys.stdout.write(_json(listing))
        return 0
    if not (listing.sessions or listing.studies):
        none = "no session was recorded yet; start one: gpuwatch run mnist-cnn"
        if arguments.folder:
            none = f"no session in {' '.join(map(shell, arguments.folder))}; all: gpuwatch sessions"
        print(f"no session has {arguments.find}" if arguments.find else none, file=sys.stderr)
        return 0
    columns = shutil.get_terminal_size((_UNBOUNDED, 24)).columns
    text = _table(listing, columns, runs=arguments.runs, paths=arguments.paths)
    print(_coloured(text) if terminal.colours() else text)
    problems = {row.labels_problem for row in listing.sessions if row.labels_problem}
    for problem in sorted(problems):
        say(f"names, tags and notes are missing: {problem}")
    return 0


def _found(listing: Listed, words: str, *, runs: bool) -> Listed:
    """The sessions and studies that have all of ``words``; without ``runs`` a study is whole."""
    from gpuwatch.tui.home.list import matches, no_field, without_run

    if problem := no_field(words):
        raise UsageError(f"--find: {problem}")
    studies = {study.path: study for study in listing.studies}
    found = {
        each.path
        for each in listing.sessions
        if matches(words, each, studies.get(each.path.parent))
    }
    ran = {each.path.parent for each in listing.sessions}
    kept = {path.parent for path in found}
    whole = {path for path, study in studies.items() if study.runs and not runs} & kept
    sessions = [
        each for each in listing.sessions if each.path in found or each.path.parent in whole
    ]
    kept |= {
        path
        for path, study in studies.items()
        if path not in ran and matches(words, without_run(study), study)
    }
    return Listed(tuple(sessions), tuple(each for each in listing.studies if each.path in kept))


def _newest(listing: Listed, most: int, *, runs: bool) -> Listed:
    """What the first ``most`` lines of the table are of."""
    kept = {*list(_by_line(listing, runs=runs))[:most]}
    sessions = [row for row in listing.sessions if not kept.isdisjoint((row.path, row.path.parent))]
    kept |= {row.path.parent for row in sessions}
    return Listed(tuple(sessions), tuple(each for each in listing.studies if each.path in kept))


def _by_line(listing: Listed, *, runs: bool) -> dict[Path, list[ListedSession]]:
    """The sessions of each line of the table, by the path of its study or session, in the order of
    the home screen."""
    from gpuwatch.tui.home.items import Item

    studies = {
        row.path: row for row in listing.studies if not row.sessions or (row.runs and not runs)
    }
    lines = {path: list[ListedSession]() for path, row in studies.items() if not row.sessions}
    for row in listing.sessions:
        folder = row.path.parent
        lines.setdefault(folder if folder in studies else row.path, []).append(row)

    def rank(path: Path) -> tuple[bool, str]:
        study, of_path = studies.get(path), tuple(lines[path])
        item = Item(entry=of_path[0]) if study is None else Item(None, study, every=of_path)
        return item.goes_on, item.first_start or ""

    return {path: lines[path] for path in sorted(lines, key=rank, reverse=True)}


def _json(listing: Listed) -> str:
    """The JSON document, with one line per session and study."""

    def lines(rows: Sequence[Labelled]) -> str:
        inner = ",\n".join(f"    {json.dumps(row.document(), ensure_ascii=False)}" for row in rows)
        return f"[\n{inner}\n  ]" if rows else "[]"

    sessions, studies = lines(listing.sessions), lines(listing.studies)
    return document(
        f'{{\n  "schema": {JSON_SCHEMA},\n  "sessions": {sessions},\n  "studies": {studies}\n}}\n'
    )


def _table(listing: Listed, columns: int, *, runs: bool, paths: bool) -> str:
    """A line for each study and for each session of none; lines are cut to
    ``columns``. ``runs``: a line for each session; ``paths``: with its file, not cut."""
    from gpuwatch.report.tables import table

    studies = {row.path: row for row in listing.studies}
    sessions = _by_line(listing, runs=runs)
    rows = [_line(studies.get(path) or of_path[0], of_path) for path, of_path in sessions.items()]
    named = {"started": f"started, {datetime.now().astimezone().tzname()}"}
    head = [name for name in rows[0] if name not in _OPTIONAL or any(row[name] for row in rows)]
    head.remove("start")
    if paths:
        head.append("file")
        rows = [{**row, "file": shell(path)} for row, path in zip(rows, sessions, strict=True)]
        heads = [named.get(name, name) for name in head]
        return table(heads, [[row[name] for name in head] for row in rows], left=len(head))
    few = [name for name in head if name not in _FIGURES]
    untagged = [name for name in few if name != "tags"]
    # The first column takes a name whole, for commands do, until others go. Of a study's name the
    # end stays, which is its time.
    ways = ((head, _UNBOUNDED, 20), (few, _UNBOUNDED, 16), (few, _NAME, 16), (untagged, _NAME, 16))
    wide = ((*way, _RESULT) for way in ways)
    narrow = ((names.split(), _NAME, 12, least) for names, least in _NARROW)
    for shown, first, narrowest, least in (*wide, *narrow):
        heads = [named.get(name, name) for name in shown]
        cells = [[row[name] for name in shown] for row in rows]
        widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
        widths[0] = min(widths[0], first)
        widths[-1] = min(widths[-1], least)
        over = sum(widths) + 2 * (len(widths) - 1) - columns
        while over > 0 and (widest := max(widths[1:-1], default=0)) > narrowest:
            widths[widths.index(widest, 1)] -= 1
            over -= 1
        if over <= 0:
            break
    room = columns - sum(widths[:-1]) - 2 * (len(widths) - 1)
    wanted = min(_WHOLE, max(len(row[-1]) for row in cells))
    while room < wanted and (widest := max(widths[1:-1], default=0)) > _ENOUGH:
        widths[widths.index(widest, 1)] -= 1
        room += 1
    cells = [
        [cut(first, widths[0], behind=15), *map(cut, others, widths[1:]), last]
        for first, *others, last in cells
    ]
    return "\n".join(
        cut(line, columns) for line in table(heads, cells, left=len(heads)).splitlines()
    )


_FIGURES = ("MFU", "peak mem")
"""Columns that go where there is no room."""
_OPTIONAL = ("tags", *_FIGURES)
"""Columns that only some lists have."""
_RESULT = 40
"""Columns that the last cell needs at least, before others go, and environments have at most."""
_NARROW = (
    ("session status command started elapsed result", 30),
    ("session status command started result", 26),
    ("session status command start result", 24),
    ("session status command start result", 17),
    ("session status command result", 17),
    ("session status result", 22),
)
"""What stays of the columns where there is less and less room, and what the last one needs."""
_WHOLE, _ENOUGH = 80, 24
"""Columns of the last cell for which others are cut to so many."""
_NAME = 25
"""Columns of a name that is cut, as wide as ``mnist-cnn-20261129-045832``."""
_OPEN = frozenset({"queued", "starting", "running", "unknown"})
"""Statuses of runs that are not over."""


def _coloured(table: str) -> str:
    """The table with a bold head, and its statuses in colour where one failed or goes on."""
    head, *lines = table.splitlines()
    before, _, behind = head.partition("status")
    start, end = len(before), len(head) - len(behind.lstrip())

    def status(text: str) -> str:
        failed = any(word in text for word in ("fail", "kill", "lost", "timed"))
        code = "1;31" if failed else "32" if "running" in text or "starting" in text else ""
        return f"\x1b[{code}m{text}\x1b[m" if code else text

    rows = (f"{line[:start]}{status(line[start:end])}{line[end:]}" for line in lines)
    return "\n".join((f"\x1b[1m{head}\x1b[m", *rows))


def _line(of: ListedSession | ListedStudy, runs: Sequence[ListedSession]) -> dict[str, str]:
    """The cells of a line, by the names of its columns: of a session, or of a study and its
    ``runs``, newest first."""
    commands = what_ran(runs[::-1], of.commands if isinstance(of, ListedStudy) else ())
    environments = [run.environment for run in runs[::-1]]
    if isinstance(of, ListedSession):
        name, status = of.id[:8] or of.path.name, of.status  # without an id: it cannot be read
        peak, step = of.peak_gpu_memory_bytes, of.step_median_seconds
        mfu = "" if of.mfu is None else units.percent(of.mfu)
        memory = "" if peak is None else units.bounded(units.binary(peak), of.peak_bound)
        result = of.failure or ("" if step is None else f"{units.quantity(step, 's')}/step")
    else:
        name, mfu, memory = of.study, "", ""
        status, result = _state(of, Counter(run.status for run in runs))
        result = result or next((run.failure for run in runs if run.failure), "") or of.title or ""
        if not runs:
            commands, environments = ", ".join(of.commands), [*of.environments]
    seconds = elapsed((run.started, run.seconds) for run in runs)
    sent = (of.placement or {}).get("sent", "") if isinstance(of, ListedStudy) else ""
    started = started_here(runs[-1].started if runs else sent)
    day, _, clock = started.partition(" ")
    cells = {
        "session": of.name or name,
        "status": status,
        "command": commands,
        "env": cut(
            at_place(of.place, ", ".join(dict.fromkeys(filter(None, environments)))), _RESULT
        ),
        "tags": " ".join(of.tags),
        "started": started,
        # Of another year that alone.
        "start": clock if day == f"{datetime.now():%m-%d}" else day[: 5 if clock else 4],
        "elapsed": "" if seconds is None else units.clock_time(round(seconds)),
        "MFU": mfu,
        "peak mem": memory,
    }
    return {**{key: clean(cell) for key, cell in cells.items()}, "result": clean(result, 200)}


def _state(study: ListedStudy, ends: Counter[str]) -> tuple[str, str]:
    """What became of its runs, and what it says; ``ends``: how many have which status."""
    states, placement = _counted(ends), study.placement
    if study.waits:
        states = study.waits
    elif (study.runs or 0) > ends.total():
        over = "ended" if placement is None else placement["state"]
        states = f"{'running' if study.going_on else over}: {states} of {study.runs}"
    sentences = "; ".join(each["short"] for each in study.says)
    if placement is None:
        return states, sentences
    if study.going_on or not _OPEN.isdisjoint(ends):
        return states, placement["text"]
    if placement["in_part"] and not study.says:
        return states, _in_part(placement["in_part"])
    if study.waits:
        return states, placement["text"]
    return states, sentences


def _counted(ends: Counter[str]) -> str:
    return ", ".join(f"{count} {status}" for status, count in ends.items())


def _in_part(rows: list[dict[str, JSON]]) -> str:
    """What is known of runs whose sessions were not fetched."""
    if len(rows) == 1:
        return RunInPart(**rows[0]).text
    return f"{_counted(Counter(row['status'] for row in rows))}, as last reported"
