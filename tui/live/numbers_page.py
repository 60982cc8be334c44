"""The page on ``i``: every number as it is now, or at the moment that is looked at."""

from __future__ import annotations

from collections.abc import Callable

from gpuwatch.core.units import NS, clock_time
from gpuwatch.tui.feed.snapshot import Snapshot
from gpuwatch.tui.live.numbers import number_lines
from gpuwatch.tui.live.time_rows import ago
from gpuwatch.tui.widgets.page import PageScreen

_LOOK_SECONDS = 0.5
"""Between two looks for a newer snapshot."""


class NumbersScreen(PageScreen):
    """Follows the screen below it; it scrolls."""

    def __init__(self, first: Snapshot, latest: Callable[[], Snapshot | None]) -> None:
        """``latest`` gives the newest snapshot; it is asked twice a second while this is open."""
        self._latest = latest
        self._shown = first
        super().__init__(heading(first), lambda width: number_lines(self._shown, width))

    def on_mount(self) -> None:
        self.set_interval(_LOOK_SECONDS, self._look)
        super().on_mount()

    def _look(self) -> None:
        news = self._latest()
        if self.on_top and news is not None and news is not self._shown:
            self._shown, self._heading = news, heading(news)
            self.paint()


def heading(snapshot: Snapshot) -> str:
    """``every number at 1:40, 0:08 ago``: the moment in time since the session's start."""
    moment = ago(snapshot)
    return f"every number at {clock_time(snapshot.t / NS)}" + (f", {moment}" if moment else "")
