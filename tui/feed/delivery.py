"""What a feed has for its screen, brought from its thread to the app's."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import Any

from textual.screen import Screen

from gpuwatch.tui.feed.snapshot import Snapshot, Unreadable

News = Snapshot | Unreadable


class Delivery:
    """Calls ``take`` in the app's loop with the newest of what was posted.

    Not a message of Textual's: its way through the queues costs a third of drawing a picture.
    """

    def __init__(self, screen: Screen[Any], take: Callable[[News], None]) -> None:
        """Made in the app's loop, once ``screen`` is mounted."""
        self._screen = screen
        self._take = take
        self._app = screen.app
        self._loop = asyncio.get_running_loop()
        self._context = copy_context()
        self._newest: deque[News] = deque(maxlen=1)

    def post(self, news: News) -> None:
        """Called in any thread; a screen that is gone gets nothing."""
        self._newest.append(news)
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._deliver, context=self._context)

    def _deliver(self) -> None:
        if not self._newest or self._screen._closing or not self._screen.is_running:
            return
        try:
            self._take(self._newest.pop())
        except Exception as error:
            self._app._handle_exception(error)
