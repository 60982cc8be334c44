"""A session's time series: every tick, every metric, in SI base units; empty or null is unknown."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gpuwatch.cli import find
from gpuwatch.errors import StorageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION")
    parser.add_argument("--format", choices=("csv", "json"), default="csv")
    parser.add_argument("--output", type=Path, metavar="FILE", help="instead of standard output")


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    path = find.session(arguments.session)
    from gpuwatch.report import series
    from gpuwatch.session.reader import SessionReader

    write = series.as_csv if arguments.format == "csv" else series.as_json_lines
    with SessionReader(path) as reader:
        if arguments.output is None:
            sys.stdout.writelines(write(reader))
            return 0
        try:
            with arguments.output.open("w", encoding="utf-8", newline="") as file:
                file.writelines(write(reader))
        except OSError as error:
            raise StorageError(
                f"cannot write {arguments.output}: {error.strerror}", "choose another --output"
            ) from error
    return 0
