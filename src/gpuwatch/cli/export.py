"""A session's or a study's data, whole: in SI base units; empty or null is unknown.

Of a study all runs stand under each other, behind columns that say which run a row is of.

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
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from gpuwatch.cli import find
from gpuwatch.cli.say import say
from gpuwatch.errors import StorageError, UsageError

if TYPE_CHECKING:
    from gpuwatch.report.export import Export
    from gpuwatch.session.reader import SessionReader

_WHAT = ("series", "steps", "log", "events", "runs")
_FORMATS = ("csv", "json", "parquet")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION")
    parser.add_argument("--what", choices=_WHAT, default="series", help="default: series")
    parser.add_argument(
        "--format",
        choices=_FORMATS,
        help="json is lines of JSON; default: as FILE is named, else csv",
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="instead of standard output")


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    paths = find.sessions(arguments.session)
    output: Path | None = arguments.output
    form = arguments.format or _named(output)
    if form == "parquet" and output is None:
        raise UsageError("Parquet is written to a file", "add --output FILE.parquet")
    if output is not None:
        _check(output, paths, form)
    with contextlib.ExitStack() as stack:
        several = len(paths) > 1 or _is_study(arguments.session, paths[0])
        export = _export(paths, arguments.what, stack, several=several)
        if output is None:
            sys.stdout.writelines(_text(form)(export))
        else:
            _save(output, form, export)
    return 0


def _is_study(text: str, first: Path) -> bool:
    """Whether a study of several runs was named, however many of them there are by now."""
    from gpuwatch.session.progress import place

    folder = first.resolve().parent
    return Path(text).resolve().name == folder.name and place(first) is not None


def _export(paths: list[Path], what: str, stack: contextlib.ExitStack, *, several: bool) -> Export:
    """The table that was asked for; a session by itself has no columns that name it."""
    from gpuwatch.report import export_study
    from gpuwatch.report.session_tables import TABLES
    from gpuwatch.session.reader import SessionReader

    if what == "runs":
        from gpuwatch.analysis.read import read_sessions, read_study

        folders = {path.parent for path in paths}
        whole = several and len(folders) == 1
        return export_study.runs(read_study(folders.pop()) if whole else read_sessions(paths))
    if several:
        return export_study.under_each_other(paths, TABLES[what])
    reader = stack.enter_context(SessionReader(paths[0]))
    stack.callback(_tell, reader)
    return TABLES[what](reader)


def _tell(reader: SessionReader) -> None:
    """What was left out of the table."""
    for each in reader.left_out:
        say(f"note: {each}")


def _text(form: str) -> Callable[[Export], Iterator[str]]:
    from gpuwatch.report import export

    return export.as_csv if form == "csv" else export.as_json_lines


def _named(output: Path | None) -> str:
    ending = "" if output is None else output.suffix.lower().removeprefix(".")
    return "json" if ending == "jsonl" else ending if ending in _FORMATS else "csv"


def _check(output: Path, paths: list[Path], form: str) -> None:
    if output.resolve() in {path.resolve() for path in paths}:
        raise UsageError(f"{output} is the session itself", "choose another --output")
    if form == "parquet" and output.exists() and not output.is_file():
        raise UsageError(f"{output} is no plain file", "choose another --output")


def _save(output: Path, form: str, export: Export) -> None:
    """Write beside ``output`` and put it there when it is whole; a pipe is written to as it is.

    A new file is readable as the umask says, one that is replaced as it was.
    """
    plain = output.is_file() or not output.exists()
    new = output.with_name(f".{output.name}.{os.getpid()}") if plain else output
    try:
        if plain:
            new.unlink(missing_ok=True)
            # Never through a link that somebody put there.
            new.touch(0o600 if output.exists() else 0o666, exist_ok=False)
        if form == "parquet":
            from gpuwatch.report import parquet

            parquet.write(new, export)
        else:
            with new.open("w", encoding="utf-8", newline="") as file:
                file.writelines(_text(form)(export))
        if plain:
            if output.exists():
                shutil.copymode(output, new)
            new.replace(output)
    except OSError as error:
        raise StorageError(
            f"cannot write {output}: {error.strerror or error}", "choose another --output"
        ) from error
    finally:
        if plain:
            with contextlib.suppress(OSError):  # it was renamed, or never made
                new.unlink()
