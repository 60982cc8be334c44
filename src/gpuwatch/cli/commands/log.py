"""Print the output of a run, both streams in order, without control characters; with --follow also
what it prints from now on, until it is over."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

from gpuwatch.cli.say import say
from gpuwatch.cli.selection import session_lookup
from gpuwatch.core.errors import UsageError
from gpuwatch.core.models import mapping
from gpuwatch.core.text import clean, to_paste
from gpuwatch.workloads.options import positive_int

_LOOK_SECONDS = 0.5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION", nargs="?", default="last")
    parser.add_argument("--stream", choices=("stdout", "stderr"), help="only this stream")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--tail", type=positive_int, metavar="N", help="the last N lines")
    which.add_argument("--follow", action="store_true", help="go on until the run is over")


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    lines: Iterator[str]
    if (found := session_lookup.without_session(arguments.session)) is not None:
        from gpuwatch.session.placement import job_log

        folder, placement = found
        if arguments.stream or (arguments.follow and placement.going_on):
            again = to_paste("attach", folder.name)
            hint = f"wait for it: {again}" if placement.going_on else "leave --stream out"
            raise UsageError(f"{folder.name} has no session: {placement.text}", hint)
        say(f"{folder.name}: {placement.text}")
        lines = iter(job_log(folder))
    else:
        path = session_lookup.session(arguments.session)
        lines = read(path, arguments.stream, follow=arguments.follow)
    if arguments.tail is not None:
        from collections import deque

        lines = iter(deque(lines, maxlen=arguments.tail))
    silent = not arguments.follow and found is None
    for line in lines:
        silent = False
        print(line, flush=arguments.follow)
    if silent:
        from gpuwatch.session.reading.reader import SessionReader

        with SessionReader(path) as reader:
            imported = mapping(reader.meta().get("workload")).get("kind") == "import"
        if imported:
            say("an imported profile does not have what the program printed")
        else:
            where = f" on {arguments.stream}" if arguments.stream else ""
            say(f"nothing was printed{where} (step lines are not shown here)")
    return 0


def read(path: Path, stream: str | None = None, *, follow: bool = False) -> Iterator[str]:
    """The lines of a session's log, safe to print on a terminal; ``follow``: until it is over."""
    from gpuwatch.session.reading.reader import SessionReader
    from gpuwatch.session.reading.status import status

    with SessionReader(path) as reader:
        after, live = -1, True
        while live:
            live = follow and status(reader.meta(), path).live  # before its last lines are read
            while rows := reader.log(after):
                for row in rows:
                    if stream is None or row.stream == stream:
                        yield clean(row.text, 1 << 16)
                after = rows[-1].n
            if live:
                time.sleep(_LOOK_SECONDS)
