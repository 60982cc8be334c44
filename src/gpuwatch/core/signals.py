"""Handlers of signals for a while."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType


@contextmanager
def handled(handler: Callable[[int, FrameType | None], object], *numbers: int) -> Iterator[None]:
    """Signals that ``handler`` takes within the block, unless they are ignored."""
    before = {
        number: signal.signal(number, handler)
        for number in numbers
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)


def interruptible() -> AbstractContextManager[None]:
    """Let SIGTERM and SIGHUP end the block cleanly, as Ctrl-C does."""
    return handled(signal.default_int_handler, signal.SIGTERM, signal.SIGHUP)
