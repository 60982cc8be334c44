"""The page of the ranks: a map of rank by time, and figures of each."""

from __future__ import annotations

from collections.abc import Callable

from gpuwatch.core.units import NS, clock_time
from gpuwatch.tui.feed.snapshot import Snapshot
from gpuwatch.tui.live.rank_rows import rank_rows
from gpuwatch.tui.live.time_rows import age_text
from gpuwatch.tui.widgets.page import PageScreen

_POLL_SECONDS = 0.5
"""Time between two checks for a newer snapshot."""


class RankScreen(PageScreen):
    """Shows the ranks of the screen below it."""

    def __init__(self, first: Snapshot, latest: Callable[[], Snapshot | None]) -> None:
        """``latest`` returns the newest snapshot; it is called twice a second."""
        self._latest = latest
        self._shown = first
        super().__init__(_heading(first), lambda width: rank_rows(self._shown, width))

    def on_mount(self) -> None:
        self.set_interval(_POLL_SECONDS, self._follow)
        super().on_mount()

    def _follow(self) -> None:
        news = self._latest()
        if self.on_top and news is not None and news is not self._shown:
            self._shown, self._heading = news, _heading(news)
            self.paint()


def _heading(snapshot: Snapshot) -> str:
    """``ranks at 1:40, 0:08 ago``; the moment in session time."""
    moment = age_text(snapshot)
    return f"ranks at {clock_time(snapshot.t / NS)}" + (f", {moment}" if moment else "")
