"""The home screen: devices and processes now, the sessions and studies, the way to a new run; also
with a recorded card, for who has none at hand: ``gpuwatch demo``."""

from __future__ import annotations

import math
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from textual.timer import Timer

from gpuwatch.analysis.summary.listed_item import GOING_ON
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import mapping, number
from gpuwatch.core.text import clean
from gpuwatch.core.units import NS, binary, clock_time
from gpuwatch.session.reading.reader import read_meta
from gpuwatch.tui.feed.feed import DevicesNow, News, not_recorded
from gpuwatch.tui.feed.machine_recorder import MachineRecorder
from gpuwatch.tui.feed.posting import Delivery
from gpuwatch.tui.feed.snapshot import Alert, DeviceNow, Snapshot, Unreadable, View
from gpuwatch.tui.home.base import LEAST_CORES, Home
from gpuwatch.tui.home.devices import (
    alert_rows,
    device_rows,
    head_row,
    history_columns,
    says_no_gpu,
)
from gpuwatch.tui.home.rows import first_rows, waiting_rows
from gpuwatch.tui.processes.page import ProcessScreen
from gpuwatch.tui.widgets.gauge_rows import graph_columns
from gpuwatch.tui.widgets.line import Line
from gpuwatch.tui.widgets.page import SnapshotPage

_MOST_DEATHS, _DEATHS_SECONDS = 3, 10.0
"""After so many recorders of the devices that died within so long no other one is started."""
_AWAY_SECONDS = 600.0
"""For so long the devices are recorded below another screen: their history is there on return."""
_YOUNG_NS = 3_000_000_000
_FIRST_CONTACT = 24
"""Most rows for what can run here, and those for it before it is known."""
_LEAST_FOR_ONE = 4
"""Rows for one session, with those around the list."""
_LONG_FROM = 80
"""Columns from which on a history is of five minutes, and not of one."""


def here() -> str:
    """``me@gpu7  14:05 CET``."""
    user, host = os.environ.get("USER"), socket.gethostname().partition(".")[0]
    return f"{f'{user}@' if user else ''}{host}  {time.strftime('%H:%M %Z')}"


class HomeScreen(Home):
    """The devices here, the processes on them, and the sessions."""

    def __init__(self, *, refresh: float = 1.0, recorder: MachineRecorder | None = None) -> None:
        """``refresh``: seconds between two pictures of the devices.

        ``recorder``: of the machine, started before this program was loaded.
        """
        super().__init__()
        self._every = refresh
        self._recorder = recorder
        self._devices: DevicesNow | None = None
        self._looks_at: View | None = None
        self._away: Timer | None = None
        """Ends the recorder of the devices, once another screen stood over this one for long."""
        self._deaths: list[float] = []
        """When recorders of the devices died."""
        self._idle: Mapping[str, Idle] | None = None
        """GPUs on which nothing runs; ``None``: there is no snapshot yet."""

    def on_unmount(self) -> None:
        devices, self._devices = self._devices, None
        if devices is not None:
            devices.close()

    def on_screen_resume(self) -> None:
        if self._away is not None:
            self._away.stop()
            self._away = None
        if self._devices is None:
            self._record_devices()
        self.action_refresh()

    def _record_devices(self) -> None:
        def take(news: News) -> None:
            if self._devices is devices:  # not of one that was replaced
                self.take(news)

        devices = self.new_devices(Delivery(self, take).post)
        self._devices, self._recorder = devices, None
        self._looks_at = self._idle = None  # it is another one that has to be told
        devices.start()

    def new_devices(self, post: Callable[[News], None]) -> DevicesNow:
        """What tells of the devices from its start on, by ``post``."""
        return DevicesNow(post, refresh=self._every, recorder=self._recorder)

    def where(self) -> str:
        """Whose screen this is, where and when."""
        return here()

    def warnings(self) -> list[str]:
        """What stands below the first row; not why there is no GPU, which stands in its place."""
        devices = self.state.devices
        told = devices.warnings if devices is not None else ()
        return [text for text in told if devices and not says_no_gpu(devices, text)]

    def _record_again(self, devices: DevicesNow) -> None:
        """In place of a recorder of the devices that died, unless one after another does."""
        now = time.monotonic()
        self._deaths = [*(at for at in self._deaths if now - at < _DEATHS_SECONDS), now]
        if len(self._deaths) < _MOST_DEATHS:
            self._end_devices()
            self.say("the recorder of the devices died: another one was started")
            self._record_devices()
        else:
            self._give_up(not_recorded(devices.last_words()))

    def _give_up(self, why: str) -> None:
        """Record the devices no more, and say why."""
        self._deaths = []
        self._end_devices()
        self.state = replace(self.state, devices=None, devices_trouble=why, message="")

    def action_look_again(self) -> None:
        if self._devices is None:
            self.state = replace(self.state, devices_trouble=None)
            self._record_devices()
        super().action_look_again()

    def _end_devices(self) -> None:
        # The recorder takes a moment to end; what comes next need not wait for it.
        devices, self._devices = self._devices, None
        if devices is not None:
            threading.Thread(target=devices.close, name="devices-end").start()

    def on_screen_suspend(self) -> None:
        over = self.app.screen
        if over.is_modal or isinstance(over, SnapshotPage | ProcessScreen):
            return  # what stands over this screen is of now
        self._away = self.set_timer(_AWAY_SECONDS, self._end_devices)

    def take(self, news: News) -> None:
        """Show what is known of the devices."""
        if isinstance(news, Unreadable):
            self._give_up(news.trouble.text)
        elif not news.status.live and self._devices is not None:
            if self._away is not None:
                self._end_devices()
            else:
                self._record_again(self._devices)
        elif self.state.devices is None or not _begins(news):
            disk = (Alert("disk", "", self.little_room),) if self.little_room else ()
            news = replace(news, alerts=(*news.alerts, *disk))  # the least grave
            self.state = replace(self.state, devices=news, devices_trouble=None)
            self._idle = idle_gpus(self._idle, news)
            self._busy.append(sum((each.cores or 0) >= LEAST_CORES for each in news.processes))
        if self._away is None:
            self.look_around()
            self.paint()

    def top_rows(self, width: int, most: int) -> list[Line]:
        devices = self.state.devices
        if devices is None:
            return waiting_rows(self.state, width)
        running = sum(entry.status in GOING_ON for entry in self.state.entries or ())
        rows = [head_row(devices, running, self.where(), width)]
        rows += alert_rows(self.warnings(), width, self.most_alerts)
        told = held_texts(self._idle or {}, devices)
        rows += alert_rows(told, width, self.most_alerts, "press p")
        if not devices.gpus and not self.state.items:  # what can run here is more than a graph
            first, found = _FIRST_CONTACT, self.state.found
            if found is not None:  # with the heading and the foot
                first = len(first_rows(found, width, _FIRST_CONTACT, read_only=False)) + 2
            most = max(len(rows) + 3, self.room[1] - first)
        if len(devices.gpus) > 1:  # each has its row, and their total, though the list is longer
            most = max(most, min(len(rows) + len(devices.gpus) + 2, self.room[1] * 3 // 5))
        left = self.room[1] - len(rows) - _LEAST_FOR_ONE
        return rows + device_rows(devices, width, max(1, min(left, max(3, most - len(rows)))))

    def look_at(self, width: int) -> None:
        if self.state.devices is None or self._devices is None:
            return
        view = self.view_of(self.state.devices, width)
        if view != self._looks_at:
            self._looks_at = view
            self._devices.look_at(view)

    def view_of(self, devices: Snapshot, width: int) -> View:
        """What is drawn: histories of all GPUs, or gauges of a single one, or of the CPU."""
        count = len(devices.gpus)
        columns = history_columns(count, width) or graph_columns(width)
        return View(
            grid=count > 1,
            gauges=count <= 1,
            metric="hw.gpu.memory.usage" if count else "hw.memory.usage",
            columns=columns,
            seconds=300 if columns >= _LONG_FROM else 60,
        )


def _begins(news: Snapshot) -> bool:
    """Whether a recording is so young that the use of the CPU, a difference, is not known yet."""
    young, cpu = news.t < _YOUNG_NS, news.cpu
    return young and cpu is not None and cpu.value("hw.cpu.utilization") is None


_LEAST_SECONDS = 60.0
"""For so long no kernel ran: a program that saves or validates is no news."""


@dataclass(frozen=True)
class Idle:
    """A GPU on which no kernel runs."""

    since: int
    """Session time in nanoseconds at which that was seen first."""
    before: bool
    """Whether it may have been so before: nobody looked."""


def idle_gpus(before: Mapping[str, Idle] | None, now: Snapshot) -> dict[str, Idle]:
    """By id; ``before``: what this was for the snapshot before, ``None`` for the first one."""
    found = {}
    for gpu in now.gpus:
        use = gpu.value("hw.gpu.utilization")
        if use is None:  # what it does is not seen
            found[gpu.row.id] = Idle(now.t, True)
        elif use == 0:
            known = (before or {}).get(gpu.row.id)
            found[gpu.row.id] = known or Idle(now.t, before is None)
    return found


def held_texts(idle: Mapping[str, Idle], now: Snapshot) -> list[str]:
    """A sentence for each owner of such GPUs: ``GPU 2: 60.0 GiB held without work since at least
    14:02 by ann (python train.py)``."""
    held: dict[str, list[tuple[DeviceNow, int]]] = {}
    for gpu in now.gpus:
        rest = idle.get(gpu.row.id)
        on = [
            (each, use.bytes)
            for each in now.processes
            for use in each.gpus
            if each.running and use.device == gpu.row.id and use.bytes
        ]
        if rest is None or not on:
            continue
        # Nothing was held before the first of them came; one of unknown age may have been there.
        since = max(rest.since, min(each.started or 0 for each, _ in on))
        seconds = (now.t - since) / NS
        if seconds < _LEAST_SECONDS:
            continue
        at_least = "at least " if rest.before and since == rest.since else ""
        then, today = time.localtime(time.time() - seconds), time.localtime()
        clock = time.strftime("%H:%M" if then[:3] == today[:3] else "%m-%d %H:%M", then)
        users = dict.fromkeys(clean(each.user or f"PID {each.pid}") for each, _ in on)
        names = ", ".join(dict.fromkeys(clean(each.name) for each, _ in on if each.name))
        owner = f"since {at_least}{clock} by {', '.join(users)}" + (f" ({names})" if names else "")
        held.setdefault(owner, []).append((gpu, sum(size for _, size in on)))
    texts = []
    for owner, gpus in held.items():
        numbers = ", ".join(gpu.number for gpu, _ in gpus)
        size = binary(sum(size for _, size in gpus))
        texts.append(f"GPU{'s' * (len(gpus) > 1)} {numbers}: {size} held without work {owner}")
    return texts


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


_DEMO_STARTS_S = 12
"""Seconds of the recording that are passed by at first: its GPU does nothing before."""


_NOT_OF_A_DEMO = frozenset({"new", "mark", "compare", "export", "label", "delete"})
"""What cannot be done with its one recording."""


class DemoScreen(HomeScreen):
    """Plays a recording, over and over, as if its machine were this one; says that it does."""

    def __init__(self, path: Path, *, refresh: float) -> None:
        """``path``: a finished session, in the default folder; ``refresh``: as of home."""
        super().__init__(refresh=refresh)
        meta = read_meta(path)
        start = number(mapping(meta.get("clock")).get("unix_ns")) or 0
        ended = number(mapping(meta.get("result")).get("t")) or 0
        self._path, self._length = path, max(NS, int(ended) - NS)
        self._day = datetime.fromtimestamp(start / NS).strftime("%Y-%m-%d")
        self._begun = time.monotonic() - _DEMO_STARTS_S
        self._room_read = math.inf  # the disk here is not that machine's

    @property
    def _at(self) -> int:
        """The moment that is shown, in session time. It moves as often as the screen is drawn: a
        new one at every look would have the feed work without a pause."""
        every = round(self._every * NS)
        return round((time.monotonic() - self._begun) * NS) // every * every % self._length

    def new_devices(self, post: Callable[[News], None]) -> DevicesNow:
        return _Recorded(self._path, post, refresh=self._every)

    def on_mount(self) -> None:
        self.set_interval(self._every, self.paint)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action not in _NOT_OF_A_DEMO and super().check_action(action, parameters)

    def view_of(self, devices: Snapshot, width: int) -> View:
        return replace(super().view_of(devices, width), at=self._at, playing=True)

    def where(self) -> str:
        return f"recorded {self._day}  {clock_time(self._at / NS)}"

    def warnings(self) -> list[str]:
        note = f"a recording of {self._day}, of another machine: Enter plays its run"
        return [note, *super().warnings()]

    def action_open(self) -> None:
        """The run from the moment that is shown, as it was live."""
        if self.state.current is not None:
            start = View(at=self._at, playing=True)
            self.gpuwatch.open_session(self.state.current.path, start=start)
