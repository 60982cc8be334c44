"""Lines for people, beside what a command puts out."""

from __future__ import annotations

import contextlib
import os
import sys

from gpuwatch.text import clean


def say(text: str) -> None:
    """One line for people; a terminal that is gone does not matter."""
    with contextlib.suppress(OSError):
        print(f"gpuwatch: {clean(text)}", file=sys.stderr, flush=True)


def give_up_output() -> None:
    """Standard output has no reader any more, or no room: let no later flush fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
