"""A page of the newest snapshot over the live screen: every number, or the ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gpuwatch.core.units import NS, clock_time
from gpuwatch.tui.feed.snapshot import Snapshot
from gpuwatch.tui.live.numbers import number_lines
from gpuwatch.tui.live.rank_rows import rank_rows
from gpuwatch.tui.live.time_rows import age_text
from gpuwatch.tui.widgets.page import PageScreen, Row

Latest = Callable[[], "Snapshot | None"]
_POLL_SECONDS = 0.5
"""Time between two checks for a newer snapshot."""


class SnapshotPage(PageScreen):
    """Shows ``rows`` of the snapshot of the screen below it."""

    def __init__(
        self,
        what: str,
        rows: Callable[[Snapshot, int], Sequence[Row]],
        first: Snapshot,
        latest: Latest,
    ) -> None:
        """``latest`` returns the newest snapshot; it is called twice a second."""
        self._what = what
        self._latest = latest
        self._shown = first
        super().__init__(_heading(what, first), lambda width: rows(self._shown, width))

    def on_mount(self) -> None:
        self.set_interval(_POLL_SECONDS, self._follow)

    def _follow(self) -> None:
        news = self._latest()
        if self.on_top and news is not None and news is not self._shown:
            self._shown, self._heading = news, _heading(self._what, news)
            self.paint()


def _heading(what: str, snapshot: Snapshot) -> str:
    """``every number at 1:40, 0:08 ago``; the moment in session time."""
    moment = age_text(snapshot)
    return f"{what} at {clock_time(snapshot.t / NS)}" + (f", {moment}" if moment else "")


def numbers_page(first: Snapshot, latest: Latest) -> SnapshotPage:
    """Every number with its method, source and reason."""
    return SnapshotPage("every number", number_lines, first, latest)


def rank_page(first: Snapshot, latest: Latest) -> SnapshotPage:
    """The ranks: a map of rank by time, and figures of each."""
    return SnapshotPage("ranks", rank_rows, first, latest)
