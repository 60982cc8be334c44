"""Export all data of a session or study, in SI base units; empty or null means unknown.

For a study the rows of all runs follow each other, with leading columns that name the run.

what is exported:
  series  every tick, every metric: what the gauges show
  steps   every step: its time, loss, samples, phases
  log     what the runs wrote
  events  what happened: throttling, errors, epochs
  runs    one row per run: status, steady step time, every quantity of a comparison
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from gpuwatch.cli import output_file
from gpuwatch.cli.say import say
from gpuwatch.cli.selection import session_lookup
from gpuwatch.core.errors import UsageError
from gpuwatch.core.text import shell, to_paste

if TYPE_CHECKING:
    from gpuwatch.report.export.table import Export

_WHAT = ("series", "steps", "log", "events", "runs")
_FORMATS = ("csv", "json", "parquet")
_ENDINGS = {**{f".{form}": form for form in _FORMATS}, ".jsonl": "json"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION", nargs="?", default="last")
    parser.add_argument("--what", choices=_WHAT, default="series", help="default: series")
    parser.add_argument(
        "--format",
        choices=_FORMATS,
        help="json means JSON lines; default: from FILE's ending, else csv",
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="instead of standard output")


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    paths = session_lookup.sessions(arguments.session)
    out: Path | None = arguments.out
    ending = "" if out is None else out.suffix.lower()
    form = arguments.format or _ENDINGS.get(ending, "csv")
    if form == "parquet" and out is None:
        raise UsageError("Parquet is written to a file", "add --out FILE.parquet")
    output_file.check(out)
    named = ending in (*_ENDINGS, ".xlsx") or (ending and arguments.format is None)
    if out is not None and named and _ENDINGS.get(ending) != form:
        right = shell(out.with_suffix(f".{form}"))
        raise UsageError(
            f"{out}: {ending} is not the ending of {form}; known are {', '.join(_ENDINGS)}",
            to_paste(f"export --what {arguments.what} --out {right}", arguments.session),
        )
    if out is not None and form == "parquet" and os.path.exists(out) and not out.is_symlink():
        raise UsageError(f"{out} is not a regular file", "choose another --out")
    with contextlib.ExitStack() as stack:
        several = len(paths) > 1 or _is_study(arguments.session, paths[0])
        export = _export(paths, arguments.what, stack, several=several)
        if out is None:
            sys.stdout.writelines(_text(form)(export))
        else:
            with output_file.opened(out) as file:
                if form == "parquet":
                    from gpuwatch.report.export import parquet

                    parquet.write(file, export)
                else:
                    file.writelines(line.encode() for line in _text(form)(export))
            say(f"written to {out}")
    return 0


def _is_study(text: str, first: Path) -> bool:
    """Whether a study of several runs was named, even if only one has run yet."""
    from gpuwatch.session.study.progress import place

    folder = first.resolve().parent
    return Path(text).resolve().name == folder.name and place(first) is not None


def _export(paths: list[Path], what: str, stack: contextlib.ExitStack, *, several: bool) -> Export:
    """The requested table; without ``several`` it has no columns that name the run."""
    from gpuwatch.report.export import study
    from gpuwatch.report.export.session_tables import TABLES
    from gpuwatch.session.reading.reader import SessionReader

    if what == "runs":
        from gpuwatch.analysis.study.read import read_sessions, read_study

        folders = {path.parent for path in paths}
        whole = several and len(folders) == 1
        return study.runs(read_study(folders.pop()) if whole else read_sessions(paths))
    if several:
        return study.under_each_other(paths, TABLES[what])
    reader = stack.enter_context(SessionReader(paths[0]))

    @stack.callback
    def _() -> None:
        for omission in reader.left_out:
            say(f"note: {omission}")

    return TABLES[what](reader)


def _text(form: str) -> Callable[[Export], Iterator[str]]:
    from gpuwatch.report.export import table as export

    return export.as_csv if form == "csv" else export.as_json_lines
