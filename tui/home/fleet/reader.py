"""The thread that reads what arrives of several machines and posts it together; their rows."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from gpuwatch.core.errors import GpuwatchError
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.text import clean
from gpuwatch.core.units import clock_time, counted
from gpuwatch.session.machine_now import MachineNow, Now
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.tui.feed.collector import Collector
from gpuwatch.tui.feed.snapshot import Snapshot, View
from gpuwatch.tui.home.devices import gpu_layout, gpu_rows, host_texts
from gpuwatch.tui.widgets.line import Line, fit

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
        read = self._read.get(place)
        snapshot = read.last if read is not None else None
        if place in due:
            snapshot = self._snapshot(place, session)
        alerts = tuple(each.text for each in snapshot.alerts) if snapshot is not None else ()
        return Host(place, session, None, age, snapshot if place in shown else None, alerts)

    def _snapshot(self, place: str, session: Path) -> Snapshot | None:
        read = self._read.get(place)
        if read is not None and read.path != session:
            self._read.pop(place).close()
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


@dataclass(frozen=True)
class Host:
    """What is known of one machine."""

    place: str
    session: Path | None
    """What was recorded there; ``None``: nothing is here."""
    trouble: str | None
    """Why it is away."""
    age: float | None
    """Seconds since something came from it; ``None``: never."""
    snapshot: Snapshot | None
    """As of now; ``None``: not known, or not looked at."""
    alerts: tuple[str, ...] = ()
    """Its alerts when it was looked at last, also where it is out of sight now."""

    @property
    def rows(self) -> int:
        """How many rows it takes."""
        return 1 + (len(self.snapshot.gpus) if self.snapshot is not None else 0)


def matching(hosts: Sequence[Host], query: str) -> Sequence[Host]:
    """Those whose name has every word of ``query``; ``away`` stands for those that are."""
    words = query.casefold().split()
    named = ((host, f"{host.place} {'away' if host.trouble is not None else ''}") for host in hosts)
    return [host for host, name in named if all(word in name.casefold() for word in words)]


def head_row(hosts: Sequence[Host], query: str, hidden: int, running: int, width: int) -> Line:
    """How many machines there are, are away and have no room below, and how many runs go on."""
    away = sum(host.trouble is not None for host in hosts)
    text = counted(len(hosts), "machine") + (f", {away} away" if away else "")
    text += f", {hidden} not in sight" if hidden else ""
    text += f"  /{fit(query, 24)}" if query else ""
    row = Line(width).add(" gpuwatch ", "brand").add(text, "strong")
    right = f"▶ {running} running " if running else ""
    return row.end(right, "good") if right and len(right) < row.left else row


def host_rows(host: Host, selected: bool, width: int) -> list[Line]:
    """The machine, and its GPUs."""
    row = Line(width).add("▸" if selected else " ", "key")
    row.add(fit(clean(host.place), max(12, width // 3)), "strong").add("  ")
    if host.trouble is not None:
        heard = f", last heard {clock_time(host.age)} ago" if host.age is not None else ""
        why = fit(f"away: {clean(host.trouble)}", max(8, row.left - len(heard)))
        return [row.add(why, "bad").add(heard)]
    if host.snapshot is None:
        return [row.add("" if host.session is not None else "is being reached ...", "muted")]
    cpu, none = host.snapshot.cpu, ["no GPU"] if not host.snapshot.gpus else []
    row.add("  ".join([*(host_texts(cpu) if cpu is not None else []), *none]))
    warnings = f"! {counted(len(host.alerts), 'warning')} " if host.alerts else ""
    if warnings and len(warnings) < row.left:
        row.end(warnings, "warn")
    layout = gpu_layout(width, bandwidth=False, history=False)
    rows = [row]
    for gpu in host.snapshot.gpus:
        rows += gpu_rows(gpu, None, host.snapshot.processes, layout, width)
    return rows


def first_shown(hosts: Sequence[Host], selected: int, first: int, rows: int) -> int:
    """The first machine on a list of so many ``rows``, on which the selected one is whole if it
    can be; it is ``first`` where that is possible."""
    first = min(first, selected)
    while first < selected and sum(host.rows for host in hosts[first : selected + 1]) > rows:
        first += 1
    return first
