"""The home screen with a recorded card, for who has none at hand: ``gpuwatch demo``."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from gpuwatch.core.models import mapping, number
from gpuwatch.core.units import NS, clock_time
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.tui.feed.feed import DevicesNow, News
from gpuwatch.tui.feed.snapshot import Snapshot, View
from gpuwatch.tui.home.screen import HomeScreen

RECORDING = Path(__file__).with_name("recorded_h200.gpuwatch")
"""A training of ResNet-50 on an NVIDIA H200, of 53 seconds."""


class _Recorded(DevicesNow):
    """A recording in the place of one that is made."""

    def __init__(self, path: Path, post: Callable[[News], None], *, refresh: float) -> None:
        super().__init__(post, refresh=refresh)
        self._path = path

    def start(self) -> None:
        self.look_at(View(gauges=False, at=0, playing=True))
        self._feed.start()

    def _session(self) -> Path:
        return self._path


class DemoScreen(HomeScreen):
    """Plays a recording, over and over, as if its machine were this one; says that it does."""

    def __init__(self, path: Path, *, refresh: float) -> None:
        """``path``: a finished session, in the default folder; ``refresh``: as of home."""
        super().__init__(refresh=refresh)
        with SessionReader(path) as reader:
            start = number(mapping(reader.meta().get("clock")).get("unix_ns")) or 0
            ended = number(mapping(reader.meta().get("result")).get("t")) or 0
        self._path, self._length = path, max(NS, int(ended) - NS)
        self._day = datetime.fromtimestamp(start / NS).strftime("%Y-%m-%d")
        self._begun = time.monotonic()

    @property
    def _at(self) -> int:
        """The moment that is shown, in session time."""
        return round((time.monotonic() - self._begun) * NS) % self._length

    def new_devices(self, post: Callable[[News], None]) -> DevicesNow:
        return _Recorded(self._path, post, refresh=self._every)

    def on_mount(self) -> None:
        self.set_interval(self._every, self.paint)

    def view_of(self, devices: Snapshot, width: int) -> View:
        return replace(super().view_of(devices, width), at=self._at, playing=True)

    def where(self) -> str:
        return f"recorded {self._day}  {clock_time(self._at / NS)}"

    def warnings(self) -> list[str]:
        note = f"a recording of {self._day}, of another machine: Enter plays its run"
        return [note, *super().warnings()]

    def action_open(self) -> None:
        """The run from its start, as it was live."""
        if self.state.current is not None:
            self.gpuwatch.open_session(self.state.current.path, start=View(at=0, playing=True))
