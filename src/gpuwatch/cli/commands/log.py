"""Print the output of a run, both streams in order, without control characters."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from gpuwatch.cli.selection import session_lookup
from gpuwatch.core.text import clean


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION")
    parser.add_argument("--stream", choices=("stdout", "stderr"), help="only this stream")
    parser.add_argument("--tail", type=int, metavar="N", help="the last N lines")


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    lines = read(session_lookup.session(arguments.session), arguments.stream)
    if arguments.tail is not None:
        from collections import deque

        lines = iter(deque(lines, maxlen=max(0, arguments.tail)))
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return 0


def read(path: Path, stream: str | None = None) -> Iterator[str]:
    """The lines of a session's log, safe to print on a terminal."""
    from gpuwatch.session.reading.reader import SessionReader

    with SessionReader(path) as reader:
        after = -1
        while rows := reader.log(after):
            for row in rows:
                if stream is None or row.stream == stream:
                    yield clean(row.text, 1 << 16)
            after = rows[-1].n
