"""A page of the newest snapshot over the live screen: every number, or the ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gpuwatch.core.units import NS, clock_time
from gpuwatch.tui.feed.snapshot import Snapshot
from gpuwatch.tui.live.time_rows import age_text
from gpuwatch.tui.widgets.page import PageScreen, Row

_POLL_SECONDS = 0.5
"""Time between two checks for a newer snapshot."""


class SnapshotPage(PageScreen):
    """Shows ``rows`` of the snapshot of the screen below it."""

    def __init__(
        self,
        what: str,
        rows: Callable[[Snapshot, int], Sequence[Row]],
        first: Snapshot,
        latest: Callable[[], Snapshot | None],
    ) -> None:
        """``latest`` returns the newest snapshot; it is called twice a second."""
        self._what = what
        self._latest = latest
        self._shown = first
        super().__init__(self._title(), lambda width: rows(self._shown, width))

    def on_mount(self) -> None:
        self.set_interval(_POLL_SECONDS, self._follow)

    def _follow(self) -> None:
        news = self._latest()
        if self.on_top and news is not None and news is not self._shown:
            self._shown = news
            self._heading = self._title()
            self.paint()

    def _title(self) -> str:
        """``every number at 1:40, 0:08 ago``; the moment in session time."""
        moment = age_text(self._shown)
        return f"{self._what} at {clock_time(self._shown.t / NS)}" + (
            f", {moment}" if moment else ""
        )
