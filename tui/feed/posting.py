"""The way of what a thread reads to a screen, as calls in Textual's loop; apart from the feed,
which lines without a screen read as well."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

from textual.screen import Screen

from gpuwatch.tui.feed.feed import trouble_of
from gpuwatch.tui.feed.snapshot import Trouble


class _Stopped(Exception):
    """The screen was closed."""


Post = Callable[..., None]
"""Has the screen make a call, with what was read; raises an exception that ends the work if the
screen was closed."""


def read_in_thread(
    name: str, screen: Screen[Any], work: Callable[[Post], None], failed: Callable[[Trouble], None]
) -> threading.Event:
    """Do ``work`` in a thread that ends with the first post after ``screen`` is closed or the
    returned event is set; nothing waits for it. ``failed``: what ``screen`` calls for any error."""
    left = threading.Event()

    def post(take: Callable[..., None], *read: object) -> None:
        if left.is_set() or not screen.call_later(take, *read):
            raise _Stopped

    def run() -> None:
        try:
            work(post)
        except _Stopped:
            pass
        except Exception as error:  # without a word of it the screen would wait forever
            with suppress(_Stopped):
                post(failed, trouble_of(error))

    threading.Thread(target=run, name=name, daemon=True).start()
    return left


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
