"""The newest lines of a log, read in a thread; all of them go to the user's pager."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from gpuwatch.core.errors import GpuwatchError, StorageError
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import mapping
from gpuwatch.core.text import clean
from gpuwatch.core.units import NS, clock_time
from gpuwatch.session.reading.log_lines import END, LONGEST, LogLine
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.tui.feed.log_lines import fold
from gpuwatch.tui.widgets.line import stream_mark

STREAMS = {None: "both streams", "stdout": "standard output", "stderr": "standard error"}
MOST_LINES = 10_000
"""Lines that a screen holds; a line has at most ``LONGEST`` characters."""
_MOST_CHARACTERS = 4_000_000
"""Of all of them together."""
_POLL_SECONDS = 0.5
"""Time between two looks for new lines."""
_LINES_AT_ONCE = 500


@dataclass(frozen=True)
class LogEnd:
    """The newest lines of a session's log."""

    name: str
    """What ran, and where."""
    lines: tuple[LogLine, ...]
    older: bool
    """Whether there are lines before them."""
    live: bool
    """Whether more may come."""

    @property
    def clock(self) -> int:
        """Width of the newest line's time."""
        return max(4, len(clock_time(self.lines[-1].t / NS))) if self.lines else 4


def follow(
    path: Path,
    upto_ns: int | None,
    post: Callable[[LogEnd | GpuwatchError], None],
    closed: threading.Event,
) -> None:
    """Call ``post`` with the end of the log, and again when that is another one, until the run is
    over or ``closed`` is set; with an error, the last time, where it cannot be read.

    ``upto_ns``: the session time of the last line; ``None``: new ones are waited for.
    """
    try:
        with SessionReader(path) as reader:
            meta = reader.meta()
            name = mapping(meta.get("workload")).get("name")
            where = mapping(meta.get("environment")).get("label")
            name = clean(f"{name} in {where}" if where else name or path.stem)
            lines: dict[int | str, LogLine] = {}
            before: tuple[int, bool] | None = None
            live, older = True, False
            while live and not closed.is_set():
                try:
                    live = upto_ns is None and reader.status(reader.meta()).live
                    last = _last(reader, upto_ns)
                    if before is None:
                        new = reader.log_lines(END, MOST_LINES, upto=last, back=True)
                        older = bool(new and reader.log_lines(new[0].n, 1, back=True))
                    else:
                        new = reader.log_lines(before[0] + 1, MOST_LINES, upto=last)
                    fold(lines, new)
                except StorageError:  # locked by its writer
                    live = True
                else:
                    characters = sum(len(line.text) for line in lines.values())
                    while len(lines) > MOST_LINES or characters > _MOST_CHARACTERS:
                        characters -= len(lines.pop(next(iter(lines))).text)
                        older = True
                    last = new[-1].n if new else -1 if before is None else before[0]
                    if (last, live) != before:
                        before = last, live
                        post(LogEnd(name, tuple(lines.values()), older, live))
                closed.wait(_POLL_SECONDS if live else 0)
    except GpuwatchError as error:
        post(error)


def _last(reader: SessionReader, upto_ns: int | None) -> int:
    return reader.last_log() if upto_ns is None else reader.row_at("log", upto_ns)


def text_of(line: LogLine) -> str:
    """A line's text, harmless for a terminal; a line that was cut says so at its start."""
    harmless = clean(line.text, LONGEST)
    if line.length <= LONGEST:
        return harmless
    return f"[{line.length:,} characters, cut to {LONGEST:,}] {harmless}"


def show_in_pager(path: Path, stream: str | None, upto_ns: int | None) -> str:
    """Show the whole log of a stream in the user's pager, on this terminal; returns why that could
    not be done, empty where it was."""
    command = shlex.split(os.environ.get("PAGER", "")) or ["less"]
    try:
        pager = subprocess.Popen(
            command, stdin=subprocess.PIPE, text=True, encoding="utf-8", errors="replace"
        )
    except OSError as error:
        return f"{command[0]}: {error.strerror}"
    # Ctrl-C is the pager's.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    trouble = ""
    try:
        with pager, SessionReader(path) as reader:
            assert pager.stdin is not None
            for line in _lines(reader, stream, _last(reader, upto_ns)):
                text = text_of(line)
                mark, _ = stream_mark(line.stream, text)
                pager.stdin.write(f"{clock_time(line.t / NS):>7}{mark}{text}\n")
    except BrokenPipeError:
        pass  # it was left before it had all
    except GpuwatchError as error:
        trouble = error.message
    finally:
        signal.signal(signal.SIGINT, before)
    return trouble


def _lines(reader: SessionReader, stream: str | None, last: int) -> Iterator[LogLine]:
    lines = reader.log_lines(-END, _LINES_AT_ONCE, stream=stream, upto=last)
    while lines:
        yield from lines
        lines = reader.log_lines(lines[-1].n + 1, _LINES_AT_ONCE, stream=stream, upto=last)
