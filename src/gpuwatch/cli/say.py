"""Lines for people, beside what a command puts out."""

from __future__ import annotations

import contextlib
import os
import sys

from gpuwatch.core.text import clean, shell


def say(text: str) -> None:
    """One line for people; a terminal that is gone does not matter."""
    with contextlib.suppress(OSError):
        print(f"gpuwatch: {clean(text)}", file=sys.stderr, flush=True)


def give_up_output() -> None:
    """Standard output has no reader any more, or no room: let no later flush fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def put(path: str | os.PathLike[str]) -> None:
    """A path on standard output: as a shell takes it for who reads it there, else its bytes."""
    if sys.stdout.isatty():
        print(shell(path))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(os.fsencode(path) + b"\n")
