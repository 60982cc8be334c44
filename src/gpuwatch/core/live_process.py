"""What ``/proc`` tells of a process that runs here now: shown to a person, and never stored.

``start`` in every call is the process's start in clock ticks since boot, see
:func:`~gpuwatch.core.processes.start_time`: where the PID is another process's by now, or ended,
nothing is told.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.processes import start_time
from gpuwatch.core.text import clean, shell

_MOST_BYTES = 256 * 1024


def command_line(pid: int, start: int) -> tuple[str, ...]:
    """Its words; empty for a kernel thread, or where it is not told.

    Where only the first is not empty it is taken for a title that the process gave itself: what
    that does not fill of its command line is zeros.
    """
    data = _read(pid, start, "cmdline")
    if not data:
        return ()
    words = tuple(map(os.fsdecode, data.removesuffix(b"\0").split(b"\0")))
    return words if any(words[1:]) else words[:1]


def command_text(words: Sequence[str]) -> str:
    """A command line as it is written in a shell, in one line without control characters.

    A single word is often a title that a process gave itself, and stays as it is.
    """
    return clean(words[0] if len(words) == 1 else " ".join(map(shell, words)), _MOST_BYTES)


@dataclass(frozen=True)
class ProcessFacts:
    """What a process is and where; ``None``: it is not told, mostly another user's."""

    parent: int
    """PID; 0: it has none."""
    threads: int
    started_unix: float
    """Start in seconds since 1970, by the clock of now."""
    directory: str | None
    """Its working directory."""


def facts(pid: int, start: int) -> ProcessFacts | None:
    """``None``: it has ended, or ``/proc`` does not show it."""
    try:
        directory: str | None = os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        directory = None
    stat = _read(pid, start, "stat")
    if stat is None:
        return None
    fields = stat[stat.rindex(b")") + 2 :].split()
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - start / os.sysconf("SC_CLK_TCK")
    return ProcessFacts(int(fields[1]), int(fields[17]), time.time() - age, directory)


def environment(pid: int, start: int) -> tuple[str, ...] | None:
    """Its variables as it was started with, ``NAME=value``; ``None``: they may not be read."""
    data = _read(pid, start, "environ")
    return None if data is None else tuple(os.fsdecode(each) for each in data.split(b"\0") if each)


def _read(pid: int, start: int, name: str) -> bytes | None:
    """A file of ``/proc/PID``; ``None``: it may not be read, or is not that process's."""
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            data = file.read(_MOST_BYTES)
    except OSError:
        return None
    # No other process can have had the PID before, if this one has it after the reading.
    return data if start_time(pid) == start else None
