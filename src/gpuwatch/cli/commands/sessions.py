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

from gpuwatch.analysis.summary.finding import matches, no_field, without_run
from gpuwatch.analysis.summary.listed_item import GOING_ON, Item
from gpuwatch.analysis.summary.listing import (
    Labelled,
    Listed,
    ListedSession,
    ListedStudy,
    started_here,
)
from gpuwatch.cli.say import say
from gpuwatch.cli.screen import terminal
from gpuwatch.cli.selection import session_lookup
from gpuwatch.cli.selection.session_index import listed
from gpuwatch.core import units
from gpuwatch.core.aggregate import grouped
from gpuwatch.core.errors import StorageError, UsageError
from gpuwatch.core.json_schema import JSON_SCHEMA
from gpuwatch.core.text import clean, cut, document, shell, to_paste, width_of
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
    columns, lines = shutil.get_terminal_size((_UNBOUNDED, 24))
    every, older = len(_items(listing, runs=arguments.runs)), 0
    if sys.stdout.isatty() and not arguments.newest:
        # The newest stay in sight: there is room for a head, the line below and the prompt.
        most = max(lines - 3, 1)
        older, listing = every - most, _newest(listing, most, runs=arguments.runs)
    text = _table(listing, columns, runs=arguments.runs, paths=arguments.paths)
    print(_coloured(text) if terminal.colours() else text)
    if older > 0:
        print(f"and {older} older: -n {every}")
    problems = {row.labels_problem for row in listing.sessions if row.labels_problem}
    for problem in sorted(problems):
        say(f"names, tags and notes are missing: {problem}")
    return 0


def _found(listing: Listed, words: str, *, runs: bool) -> Listed:
    """The sessions and studies that have all of ``words``; without ``runs`` a study is whole."""
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
    kept = {item.path for item in _items(listing, runs=runs)[:most]}
    sessions = [row for row in listing.sessions if not kept.isdisjoint((row.path, row.path.parent))]
    kept |= {row.path.parent for row in sessions}
    return Listed(tuple(sessions), tuple(each for each in listing.studies if each.path in kept))


def _items(listing: Listed, *, runs: bool) -> list[Item]:
    """What the lines of the table are of, in the order of the home screen."""
    studies = {
        row.path: row for row in listing.studies if not row.sessions or (row.runs and not runs)
    }
    every = grouped((row.path.parent, row) for row in listing.sessions)
    items = [Item(None, study, every=tuple(every.get(path, ()))) for path, study in studies.items()]
    items += [Item(row) for row in listing.sessions if row.path.parent not in studies]
    return sorted(items, key=lambda item: (item.goes_on, item.first_start or ""), reverse=True)


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
    """A line for each study and for each session of none; lines are cut to ``columns``. ``runs``:
    a line for each session; ``paths``: with its file, as wide as they come."""
    from gpuwatch.report.tables import table

    columns = _UNBOUNDED if paths else columns
    brief = columns < _ROOMY
    items = _items(listing, runs=runs)
    rows = [_line(item, brief=brief) for item in items]
    if paths:
        rows = [{**row, "file": shell(item.path)} for row, item in zip(rows, items, strict=True)]
    start = "start" if brief else f"started, {datetime.now().astimezone().tzname()}"
    titles = {
        name: start if name == "start" else name
        for name in rows[0]
        if name == "session" or any(row[name] for row in rows)
    }
    needs = {
        name: max(map(width_of, (of, *(row[name] for row in rows)))) for name, of in titles.items()
    }
    widths, room = dict[str, int](), columns + 2
    for name, least in _LEAST:
        width = min(least, needs.get(name, -2), columns)
        if (more := width - widths.get(name, -2)) > room:
            break
        if more > 0:
            widths[name] = width
            room -= more
    while room and (short := [name for name, width in widths.items() if width < needs[name]]):
        widths[min(short, key=lambda name: widths[name] / (3 if name == "result" else 1))] += 1
        room -= 1
    shown = [name for name in titles if name in widths]
    behind = {"session": min(15, widths["session"] - 2)}  # of a study's name the time stays
    cells = [
        [cut(row[name], widths[name], behind=behind.get(name, 0)) for name in shown]
        for row in (titles, *rows)
    ]
    return table(cells[0], cells[1:], left=len(shown))


_LEAST = (
    ("session", 25),  # as wide as mnist-cnn-20261129-045832
    ("status", 9),
    ("result", 18),
    ("command", 8),
    ("command", 13),
    ("start", 13),
    ("env", 7),
    ("device", 6),
    ("result", 21),
    ("command", 16),
    ("elapsed", 7),
    ("result", 30),
    ("tags", 8),
    ("peak mem", 9),
    ("MFU", 6),
    ("file", _UNBOUNDED),
)
"""What has room first, and the least that each is given."""
_ROOMY = 120
"""Columns from which on the start is a day and a time."""
_LONGEST = 40
"""Most characters of an environment."""


def _coloured(table: str) -> str:
    """The table with a bold head, and its statuses in colour where one failed or goes on."""
    head, *lines = table.splitlines()
    first, _, others = head.partition("status")
    start, end = len(first), len(head) - len(others.lstrip())

    def coloured(line: str) -> str:
        before = cut(line, start, "")
        text = cut(line[len(before) :], end - start, "")
        failed = any(word in text for word in ("fail", "kill", "lost", "timed"))
        goes_on = text.startswith(("run ", "running", "starting"))
        code = "1;31" if failed else "32" if goes_on else ""
        behind = line[len(before) + len(text) :]
        return f"{before}\x1b[{code}m{text}\x1b[m{behind}" if code else line

    return "\n".join((f"\x1b[1m{head}\x1b[m", *map(coloured, lines)))


def _line(item: Item, *, brief: bool) -> dict[str, str]:
    """The cells of a line, by the names of its columns; ``brief``: of its start the time, or before
    today the day."""
    of, seconds, start = item.of, item.elapsed, started_here(item.first_start or "")
    mfu = memory = ""
    if isinstance(of, ListedSession):
        # Without an id: it cannot be read.
        name = of.id[:8] or of.path.name
        peak, step = of.peak_gpu_memory_bytes, of.step_median_seconds
        mfu = "" if of.mfu is None else units.percent(of.mfu)
        memory = "" if peak is None else units.bounded(units.binary(peak), of.peak_bound)
        result = of.failure or ("" if step is None else f"{units.quantity(step, 's')}/step")
    else:
        name, result = of.study, _told(of, item.every)
    if brief:
        day, _, clock = start.partition(" ")
        # Of another year that alone.
        start = clock if day == f"{datetime.now():%m-%d}" else day[: 5 if clock else 4]
    cells = {
        "session": clean(of.name) or clean(name) or of.path.name,
        "status": item.state[1],
        "command": item.ran,
        "env": cut(item.environment, _LONGEST),
        "device": ", ".join(dict.fromkeys(run.device for run in item.sessions if run.device)),
        "tags": " ".join(of.tags),
        "start": start,
        "elapsed": "" if seconds is None else units.clock_time(round(seconds)),
        "MFU": mfu,
        "peak mem": memory,
    }
    return {**{key: clean(cell) for key, cell in cells.items()}, "result": clean(result, 200)}


def _told(study: ListedStudy, runs: Sequence[ListedSession]) -> str:
    """Where a study is that goes on at a place; else what it says, or why one of it failed."""
    placement, said = study.placement, "; ".join(each["short"] for each in study.says)
    failures = (run.failure for run in runs if run.failure)
    if placement is None:
        return said or next(failures, "") or study.title or ""
    if study.going_on or any(run.status in _OPEN for run in runs):
        return str(placement["text"])
    if (rows := placement["in_part"]) and not said:
        if len(rows) == 1:
            return RunInPart(**rows[0]).text
        ends = Counter(row["status"] for row in rows)
        return ", ".join(f"{count} {end}" for end, count in ends.items()) + ", as last reported"
    return said or next(failures, "") or str(placement["text"])


_OPEN = GOING_ON | {"unknown"}
"""Statuses of runs that are not over."""
