"""What a process may still open and start: asked before work that would be wrong without it."""

from __future__ import annotations

import os

FILES = 16
"""Descriptors that any command has use for: with fewer, a library or engine counts as missing."""


def files(count: int = FILES) -> None:
    """Raises ``OSError`` (EMFILE, ENFILE) where ``count`` more descriptors cannot be had."""
    held: list[int] = []
    try:
        while len(held) < count:
            held += os.pipe()
    finally:
        for each in held:
            os.close(each)


def threads(count: int) -> None:
    """Raises ``OSError`` (EAGAIN) where ``count`` more threads cannot be started."""
    import errno
    import threading

    started: list[threading.Thread] = []
    over = threading.Event()
    try:
        for _ in range(count):
            thread = threading.Thread(target=over.wait, daemon=True)
            thread.start()
            started.append(thread)
    except RuntimeError as error:
        raise OSError(errno.EAGAIN, "no thread can be started") from error
    finally:
        over.set()
        for thread in started:
            thread.join()
