"""Messages on stderr, apart from a command's output."""

from __future__ import annotations

import contextlib
import os
import sys

from gpuwatch.core.text import clean, notification, shell


def say(text: str) -> None:
    """Print one line on stderr; a closed terminal is ignored."""
    with contextlib.suppress(OSError):
        print(f"gpuwatch: {clean(text)}", file=sys.stderr, flush=True)


def ring(text: str) -> None:
    """Tell a terminal, by its bell and a notification of the desktop (OSC 9), that work is over."""
    if sys.stderr.isatty():
        with contextlib.suppress(OSError):
            sys.stderr.write(notification(text))
            sys.stderr.flush()


def confirmed(question: str) -> bool | None:
    """The answer of whoever is at the terminal to a question; ``None``: nobody is there."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def give_up_output() -> None:
    """Redirect standard output to the null device, so that no later flush fails."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def put(path: str | os.PathLike[str]) -> None:
    """Print a path on stdout: quoted for the shell on a terminal, else as raw bytes."""
    if sys.stdout.isatty():
        print(shell(path))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(os.fsencode(path) + b"\n")
