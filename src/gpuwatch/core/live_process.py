"""What ``/proc`` tells of a process that runs here now: shown to a person, and never stored.

``start`` in every call is the process's start in clock ticks since boot, see
:func:`~gpuwatch.core.processes.start_time`: where the PID is another process's by now, or ended,
nothing is told.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from gpuwatch.core.processes import start_time
from gpuwatch.core.text import clean, shell

_MOST_BYTES = 256 * 1024


def command_line(pid: int, start: int) -> tuple[str, ...]:
    """Its words; empty for a kernel thread, or where it is not told."""
    data = _read(pid, start, "cmdline")
    return tuple(map(os.fsdecode, data.rstrip(b"\0").split(b"\0"))) if data else ()


def command_text(words: Sequence[str], longest: int = _MOST_BYTES) -> str:
    """A command line as it is written in a shell, in one line without control characters.

    A single word is often a title that a process gave itself, and stays as it is.
    """
    return clean(words[0] if len(words) == 1 else " ".join(map(shell, words)), longest)


def _read(pid: int, start: int, name: str) -> bytes | None:
    """A file of ``/proc/PID``; ``None``: it may not be read, or is not that process's."""
    try:
        with open(f"/proc/{pid}/{name}", "rb", buffering=0) as file:
            parts = []
            left = _MOST_BYTES
            while left > 0 and (part := file.read(left)):
                parts.append(part)
                left -= len(part)
    except OSError:
        return None
    # No other process can have had the PID before, if this one has it after the reading.
    return b"".join(parts) if start_time(pid) == start else None
