"""The thread that reads what arrives of several machines, and posts it together."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from pathlib import Path

from gpuwatch.core.errors import GpuwatchError
from gpuwatch.session.machine_now import MachineNow, Now
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.tui.feed.collector import Collector
from gpuwatch.tui.feed.snapshot import Snapshot, View
from gpuwatch.tui.home.fleet.rows import Host

_PATIENCE_SECONDS = 0.2
_SILENT_SECONDS = 15.0
"""A machine of which nothing came for so long is away."""
_VIEW = View(gauges=False)


class FleetReader:
    """Reads the machines on the screen where their recording has grown, and each time one of the
    others, for its alerts."""

    def __init__(
        self, now: Now, post: Callable[[tuple[Host, ...]], None], *, refresh: float
    ) -> None:
        """``post`` is called in this thread, every ``refresh`` seconds."""
        self._machines, self._post, self._refresh = now, post, refresh
        self._shown: frozenset[str] = frozenset()
        self._read: dict[str, _Read] = {}
        self._turn = 0
        self._closed, self._wake = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="fleet", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def look_at(self, shown: frozenset[str]) -> None:
        """The machines on the screen from now on."""
        if shown != self._shown:
            self._shown = shown
            self._wake.set()

    def close(self) -> None:
        """End the thread and wait for it."""
        self._closed.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._closed.is_set():
            shown = self._shown
            machines = self._machines()
            hidden = [each.place for each in machines if each.place not in shown]
            self._turn += 1
            due = shown | {hidden[self._turn % len(hidden)]} if hidden else shown
            self._post(tuple(self._host(each, shown, due) for each in machines))
            self._wake.wait(self._refresh)
            self._wake.clear()
        for each in self._read.values():
            each.close()

    def _host(self, machine: MachineNow, shown: frozenset[str], due: frozenset[str]) -> Host:
        place, session, trouble = machine.place, machine.session, machine.trouble
        age = None if machine.heard is None else time.monotonic() - machine.heard
        if trouble is None and age is not None and age > _SILENT_SECONDS:
            trouble = "nothing is heard of it"
        if trouble is not None or session is None:
            return Host(place, session, trouble, age, None)
        if place in due:
            snapshot = self._snapshot(place, session)
        else:
            read = self._read.get(place)
            snapshot = read.last if read is not None else None
        alerts = tuple(each.text for each in snapshot.alerts) if snapshot is not None else ()
        return Host(place, session, None, age, snapshot if place in shown else None, alerts)

    def _snapshot(self, place: str, session: Path) -> Snapshot | None:
        read = self._read.get(place)
        if read is not None and read.path != session:
            read.close()
            del self._read[place]
            read = None
        # What arrives is untrusted, and may be half written: the next look reads it again.
        with contextlib.suppress(
            GpuwatchError, OSError, ArithmeticError, LookupError, TypeError, ValueError
        ):
            if read is None:
                read = self._read[place] = _Read(session)
            return read.snapshot()
        return read.last if read is not None else None


class _Read:
    """One recording, as it was read last."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.last: Snapshot | None = None
        self._reader = SessionReader(path)
        self._reader.wait_at_most(_PATIENCE_SECONDS)
        self._collector = Collector(self._reader)
        self._changed: int | None = None

    def snapshot(self) -> Snapshot:
        changed = self.path.stat().st_mtime_ns
        if self.last is None or changed != self._changed:
            self._collector.update()
            self.last, self._changed = self._collector.snapshot(_VIEW), changed
        return self.last

    def close(self) -> None:
        self._reader.close()
