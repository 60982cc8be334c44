"""Hands a feed's snapshots from its thread to the app's."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from textual.screen import Screen

from gpuwatch.tui.feed.snapshot import Snapshot, Unreadable

News = Snapshot | Unreadable


class Delivery:
    """Calls ``take`` in the app's event loop with the newest posted snapshot."""

    def __init__(self, screen: Screen[Any], take: Callable[[News], None]) -> None:
        self._screen = screen
        self._take = take
        self._newest: deque[News] = deque(maxlen=1)

    def post(self, news: News) -> None:
        """Deliver ``news`` to the screen if it still exists; callable from any thread."""
        self._newest.append(news)
        if self._screen.is_running:
            with suppress(RuntimeError):  # the loop is closed
                self._screen.call_later(self._deliver)

    def _deliver(self) -> None:
        if self._newest and self._screen.is_attached:
            self._take(self._newest.pop())
