"""The home screen's first picture: devices and sessions, read while Textual is being loaded.

The screen goes on with what was read for it.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import replace

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.tui.commands import Listed, Outcome, listed_of
from gpuwatch.tui.display_options import DisplayOptions
from gpuwatch.tui.feed.collector import Collector
from gpuwatch.tui.feed.machine_recorder import MachineRecorder
from gpuwatch.tui.feed.snapshot import Snapshot
from gpuwatch.tui.feed.view import View
from gpuwatch.tui.home import watch
from gpuwatch.tui.home.keys import home_keys
from gpuwatch.tui.home.list import arranged
from gpuwatch.tui.home.listing import HomeListing
from gpuwatch.tui.home.rows import HomeState, home_rows
from gpuwatch.tui.terminal import first_picture
from gpuwatch.tui.widgets.keys import keys_row

_LOOK_SECONDS = 0.01
"""Between two looks whether the list, or the first sample, is there."""


@dataclass(frozen=True)
class ListRead:
    """The list, a complaint where it could not be read, and what would change it as it was then."""

    listed: Listed
    complaint: str | None
    seen: watch.Signature


class HomeOpening:
    """Draws the screen as soon as more of it is known, until it is handed over."""

    def __init__(
        self, recorder: MachineRecorder, listing: HomeListing, look: DisplayOptions
    ) -> None:
        self._recorder = recorder
        self._listing = listing
        self._look = look
        self.state = HomeState(read_only=look.read_only)
        """What is known of the screen, as of the hand-over."""
        self.collector: Collector | None = None
        """Of the recorder's session, once a sample is there."""
        self._list: ListRead | None = None
        self._drawing = threading.Lock()
        self._handed_over = False
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gpuwatch-opening", daemon=True)
        self._thread.start()

    def give_way(self, seconds: float) -> None:
        """Wait so long at most for the whole picture: what it waits for has the cores meanwhile."""
        self._thread.join(seconds)

    def hand_over(self) -> None:
        """Draw nothing any more, and leave the recorder alone."""
        with self._drawing:
            self._handed_over = True

    def read_list(self) -> ListRead | None:
        """Wait for the list; ``None`` where it was given up."""
        self._thread.join()
        return self._list

    def close(self) -> None:
        """End the thread."""
        self._closed.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closed.is_set() and (self._list is None or not self._has_devices()):
            news = self._look_at_devices() | self._look_at_list()
            if news:
                self._draw()

    def _has_devices(self) -> bool:
        return self._handed_over or self.collector is not None

    def _look_at_list(self) -> bool:
        if self._list is not None:
            self._closed.wait(_LOOK_SECONDS)
            return False
        found = self._listing.result(_LOOK_SECONDS)
        if found is None:
            return False
        listed, complaint = listed_of(Outcome(*found))
        # What changed while the list was read is new the next time.
        seen = {**watch.signature(listed.entries), **self._listing.before}
        with self._drawing:
            self._list = ListRead(listed, complaint, seen)
            if not self._handed_over:
                items = arranged(listed, self.state.how)
                self.state = replace(
                    self.state, entries=listed.entries, items=items, complaint=complaint
                )
        return True

    def _look_at_devices(self) -> bool:
        with self._drawing:
            path = None if self._has_devices() else self._recorder.session()
            if path is None:
                return False
            snapshot: Snapshot | None = None
            with suppress(*first_picture.UNREADABLE):
                reader = SessionReader(path)
                try:
                    if reader.last_tick() is not None:
                        collector = Collector(reader, time.time_ns)
                        collector.update()
                        snapshot = collector.snapshot(View(gauges=False))
                finally:
                    if snapshot is None:
                        reader.close()
            if snapshot is None:
                return False
            self.collector = collector
            self.state = replace(self.state, devices=snapshot)
            return True

    def _draw(self) -> None:
        with self._drawing:
            size = None if self._handed_over else first_picture.size()
            if size is not None:
                width, height = size
                with suppress(*first_picture.UNREADABLE):
                    lines, _ = home_rows(self.state, width, height - 1)
                    keys = keys_row(home_keys(self.state), width)
                    first_picture.draw([*lines, keys], self._look)
