"""Checks, before work begins, that this process can start enough threads."""

from __future__ import annotations


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
