"""A thread that reads for a screen and posts what it finds, for as long as the screen is there."""

from __future__ import annotations

import threading
from collections.abc import Callable

from textual.message import Message
from textual.message_pump import MessagePump

from gpuwatch.core.errors import GpuwatchError
from gpuwatch.core.text import clean
from gpuwatch.tui.feed.snapshot import Trouble

_LONGEST = 400


class ReadingFailed(Message):
    """The thread is over before it was done."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__()
        self.trouble = trouble


def trouble_of(error: Exception) -> Trouble:
    """What to say of an error, also of one that nobody foresaw."""
    if isinstance(error, GpuwatchError):
        return Trouble(error.message, error.hint)
    return Trouble(f"reading failed: {type(error).__name__}: {clean(error, _LONGEST)}")


class _Left(Exception):
    """The screen is gone."""


Tell = Callable[[Message], None]
"""Posts to the screen; ends the work where that is gone."""


class Reading:
    """Nobody waits for the thread: it ends at the next thing that it has to tell."""

    def __init__(self, name: str, screen: MessagePump, work: Callable[[Tell], None]) -> None:
        """``work`` runs in the thread; of whatever error it ends, ``screen`` is told."""
        self._screen = screen
        self._work = work
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def leave(self) -> None:
        """Nothing more is posted."""
        self._over.set()

    def _run(self) -> None:
        try:
            self._work(self._tell)
        except _Left:
            return
        except Exception as error:  # a thread that ends in silence is waited for for ever
            if not self._over.is_set():
                self._screen.post_message(ReadingFailed(trouble_of(error)))

    def _tell(self, message: Message) -> None:
        if self._over.is_set():
            raise _Left
        self._screen.post_message(message)
