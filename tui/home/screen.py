"""The home screen: devices and processes now, the sessions and studies, the way to a new run."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from gpuwatch.core.units import NS
from gpuwatch.tui.feed.feed import Delivery, DevicesNow, News, not_recorded
from gpuwatch.tui.feed.machine_recorder import MachineRecorder
from gpuwatch.tui.feed.snapshot import Snapshot, Unreadable, View
from gpuwatch.tui.home import held
from gpuwatch.tui.home.base import Home
from gpuwatch.tui.home.devices import (
    alert_rows,
    device_rows,
    head_row,
    history_columns,
    says_no_gpu,
)
from gpuwatch.tui.home.list import GOING_ON
from gpuwatch.tui.home.rows import waiting_rows
from gpuwatch.tui.processes.page import ProcessScreen
from gpuwatch.tui.widgets.gauge_rows import graph_columns
from gpuwatch.tui.widgets.line import Line
from gpuwatch.tui.widgets.numbers import SnapshotPage

_MOST_DEATHS, _DEATHS_SECONDS = 3, 10.0
"""After so many recorders of the devices that died within so long no other one is started."""
_YOUNG_NS = 3_000_000_000
_FIRST_CONTACT = 24
"""Rows for what can run here, where nothing was recorded yet."""
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
        self._deaths: list[float] = []
        """When recorders of the devices died."""
        self._idle: Mapping[str, held.Idle] | None = None
        """GPUs on which nothing runs; ``None``: there is no snapshot yet."""

    def on_unmount(self) -> None:
        devices, self._devices = self._devices, None
        if devices is not None:
            devices.close()

    def on_screen_resume(self) -> None:
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
        self._end_devices()

    def take(self, news: News) -> None:
        """Show what is known of the devices."""
        if isinstance(news, Unreadable):
            self._give_up(news.trouble.text)
        elif not news.status.live and self._devices is not None:
            self._record_again(self._devices)
        elif self.state.devices is None or not _begins(news):
            self.state = replace(self.state, devices=news, devices_trouble=None)
            self._idle = held.idle_gpus(self._idle, news)
        self.look_around()
        self.paint()

    def top_rows(self, width: int, most: int) -> list[Line]:
        devices = self.state.devices
        if devices is None:
            return waiting_rows(self.state, width)
        running = sum(entry.status in GOING_ON for entry in self.state.entries or ())
        rows = [head_row(devices, running, self.where(), width)]
        rows += alert_rows(self.warnings(), width, self.most_alerts)
        told = held.held_texts(self._idle or {}, devices)
        rows += alert_rows(told, width, self.most_alerts, "press p")
        if not devices.gpus and not self.state.items:  # what can run here is more than a graph
            most = max(len(rows) + 3, self.room[1] - _FIRST_CONTACT)
        if len(devices.gpus) > 1:  # each has its row, and their total, though the list is longer
            most = max(most, min(len(rows) + len(devices.gpus) + 2, self.room[1] * 3 // 5))
        return rows + device_rows(devices, width, max(3, most - len(rows)))

    def look_at(self, width: int) -> None:
        if self.state.devices is None or self._devices is None:
            return
        view = self.view_of(self.state.devices, width)
        if view != self._looks_at:
            self._looks_at = view
            self._devices.look_at(view)

    def view_of(self, devices: Snapshot, width: int) -> View:
        """What is drawn: histories of all GPUs, or gauges of a single one, or of the CPU.

        A history begins with the recording, and is of the last minutes once there are more.
        """
        count = len(devices.gpus)
        columns = history_columns(count, width) or graph_columns(width)
        longest = 300 if columns >= _LONG_FROM else 60
        return View(
            grid=count > 1,
            gauges=count <= 1,
            metric="hw.gpu.memory.usage" if count else "hw.memory.usage",
            columns=columns,
            seconds=longest if devices.t > longest * NS else None,
        )


def _begins(news: Snapshot) -> bool:
    """Whether a recording is so young that the use of the CPU, a difference, is not known yet."""
    cpu = news.cpu
    young = news.t < _YOUNG_NS
    return young and cpu is not None and cpu.value("hw.cpu.utilization") is None
