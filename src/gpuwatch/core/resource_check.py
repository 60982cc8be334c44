"""Checks, before work begins, that this process can open enough files and start enough threads."""

from __future__ import annotations

import os

FILES = 16
"""Descriptors that any command needs: with fewer, a library or engine would look missing."""


def files(count: int = FILES) -> None:
    """Raises ``OSError`` (EMFILE, ENFILE) unless ``count`` more descriptors can be opened."""
    descriptors: list[int] = []
    try:
        while len(descriptors) < count:
            descriptors += os.pipe()
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def threads(count: int) -> None:
    """Raises ``OSError`` (EAGAIN) unless ``count`` more threads can be started."""
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
