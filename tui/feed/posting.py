"""The way of what a thread reads to a screen, as calls in Textual's loop; apart from the feed,
which lines without a screen read as well."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

from textual.message_pump import MessagePump
from textual.screen import Screen

from gpuwatch.tui.feed.feed import trouble_of
from gpuwatch.tui.feed.snapshot import Trouble


class _Stopped(Exception):
    """The screen was closed."""


Post = Callable[..., None]
"""Has the screen make a call, with what was read; raises an exception that ends the work if the
screen was closed."""


class Reading:
    """A thread that ends with the first post after :meth:`leave`; nothing waits for it."""

    def __init__(
        self,
        name: str,
        screen: MessagePump,
        work: Callable[[Post], None],
        failed: Callable[[Trouble], None],
    ) -> None:
        """``work`` runs in the thread; ``failed`` is called by ``screen`` for any error."""
        self._screen = screen
        self._work, self._failed = work, failed
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def leave(self) -> None:
        """Post no more."""
        self._stopped.set()

    def _run(self) -> None:
        try:
            self._work(self._post)
        except _Stopped:
            return
        except Exception as error:  # without a word of it the screen would wait forever
            if not self._stopped.is_set():
                self._screen.call_later(self._failed, trouble_of(error))

    def _post(self, take: Callable[..., None], *read: object) -> None:
        if self._stopped.is_set():
            raise _Stopped
        self._screen.call_later(take, *read)


_News = TypeVar("_News")


class Delivery(Generic[_News]):
    """Calls ``take`` in the app's event loop with the newest posted state of what is shown."""

    def __init__(self, screen: Screen[Any], take: Callable[[_News], None]) -> None:
        self._screen = screen
        self._take = take
        self._newest: deque[_News] = deque(maxlen=1)

    def post(self, news: _News) -> None:
        """Deliver ``news`` to the screen if it still exists; callable from any thread."""
        self._newest.append(news)
        if self._screen.is_running:
            with suppress(RuntimeError):  # the loop is closed
                self._screen.call_later(self._deliver)

    def _deliver(self) -> None:
        if self._newest and self._screen.is_attached:
            self._take(self._newest.pop())
