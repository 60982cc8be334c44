"""What a feed has for its screen, brought from its thread to the app's."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from textual.screen import Screen

from gpuwatch.tui.feed.snapshot import Snapshot, Unreadable

News = Snapshot | Unreadable


class Delivery:
    """Calls ``take`` in the app's loop with the newest of what was posted."""

    def __init__(self, screen: Screen[Any], take: Callable[[News], None]) -> None:
        self._screen = screen
        self._take = take
        self._newest: deque[News] = deque(maxlen=1)

    def post(self, news: News) -> None:
        """Called in any thread; a screen that is gone gets nothing."""
        self._newest.append(news)
        if self._screen.is_running:
            with suppress(RuntimeError):  # the loop is closed
                self._screen.call_later(self._deliver)

    def _deliver(self) -> None:
        if self._newest and self._screen.is_attached:
            self._take(self._newest.pop())
