"""What the feed has read of a session so far, and the snapshot that follows from it.

Everything is read incrementally and in chunks: a session of a million ticks opens with its coarse
tier and its newest minutes.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gpuwatch.analysis.hardware.ceilings import gpus_unknown
from gpuwatch.core.metrics import Method
from gpuwatch.core.models import JSON, LONGEST_INTERVAL, SHORTEST_INTERVAL, number
from gpuwatch.core.units import NS
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.reading.reader_at import PastReader
from gpuwatch.session.reading.status import State, Status
from gpuwatch.session.rows import ChannelRow, DeviceRow, EventRow, LogRow, Processes
from gpuwatch.session.study.progress import StudyPosition
from gpuwatch.tui.feed.gauges import Sources, algorithmic_bytes, gauges_of
from gpuwatch.tui.feed.gpu_panels import panels_of
from gpuwatch.tui.feed.hardware.rooflines import CORES
from gpuwatch.tui.feed.metric_graph import metrics_of, picked_of
from gpuwatch.tui.feed.processes import processes_of
from gpuwatch.tui.feed.series import RECENT_NS, Series
from gpuwatch.tui.feed.session_text import no_gpu, phase, text, trouble
from gpuwatch.tui.feed.snapshot import DeviceNow, Reading, Snapshot
from gpuwatch.tui.feed.steps import Steps
from gpuwatch.tui.feed.study import StudyNow
from gpuwatch.tui.feed.ticks import Buckets, RateSeries, Ticks, TickSeries
from gpuwatch.tui.feed.view import Replay, View
from gpuwatch.tui.feed.warnings import checks
from gpuwatch.tui.feed.warnings.alerts import TOLD
from gpuwatch.tui.feed.warnings.neighbours import uses_none
from gpuwatch.tui.widgets.graph import Window, window

_FIRST = (
    *("hw.gpu.utilization", "hw.gpu.memory.bandwidth", "hw.gpu.memory.busy"),
    *checks.HISTORY,
)
"""Metrics whose buckets are read in one pass when a long session is opened."""
_MOST_LOG = 400
"""Log lines kept for the screen."""
_MOST_EVENTS = 2000
_SILENT_SECONDS = 5.0


class Collector:
    """Reads one session bit by bit. Lives in the feed's thread."""

    def __init__(
        self,
        reader: SessionReader,
        now_ns: Callable[[], int] = time.time_ns,
        *,
        beside: Collector | None = None,
        back_ns: int = RECENT_NS,
    ) -> None:
        """``beside``: of an earlier moment (see ``session.past``) the collector of the same session
        as it is now, which knows what does not depend on the moment. ``back_ns``: how far back step
        lines are looked at one by one.
        """
        self.reader = reader
        self._now_ns = now_ns
        self._beside = beside
        self.meta: Mapping[str, Any] = reader.meta()
        self._channels: tuple[ChannelRow, ...] = ()
        self._by_device: dict[str, list[ChannelRow]] = {}
        self._constant: dict[int, Reading] = {}
        """Of channels that give nothing, until one of them changes."""
        self._devices: tuple[DeviceRow, ...] = ()
        self._log: deque[LogRow] = deque(maxlen=_MOST_LOG)
        self._last_log = reader.last_log() - _MOST_LOG
        self._events: deque[EventRow] = deque(maxlen=_MOST_EVENTS)
        self._last_event = reader.last_event() - _MOST_EVENTS
        self._scales: dict[tuple[str, str | None], float] = {}
        self._steps: Steps = Steps(reader, beside._steps if beside else None, back_ns)
        self._study: StudyNow = beside._study if beside else StudyNow(reader.path)
        self._interval = _interval(self.meta)
        buckets = beside._ticks.buckets if beside else Buckets(reader)
        self._ticks: Ticks = Ticks(reader, self._interval, buckets)
        self._series: dict[tuple[str, str], Series] = {}
        self._no_gpu = no_gpu(reader)
        self._processes = Processes((), ())
        self._checks = checks.Checks(reader, self._series, self._steps, self._interval)
        self._checks.happened(reader.events_of(TOLD, self._last_event))
        self._describe()
        last = reader.last_tick()
        if beside is None and last is not None and last[1] > RECENT_NS:
            buckets.load(self._first_shown())

    def _first_shown(self) -> list[int]:
        """Channels whose history the first snapshot is made from."""
        used = {device.id for device in self._devices if device.used is not False}
        shown = [channel for channel in self._channels if channel.metric in _FIRST]
        return [
            channel.id
            for channel in shown
            if channel.sampled_as is not Method.UNAVAILABLE and channel.device in used
        ]

    def update(self) -> None:
        """Read what was written since the last call."""
        self.meta = self.reader.meta()
        self._describe()
        self._ticks.update([channel.id for channel in self._channels])
        self._steps.update(self.meta)
        self._checks.update(self.meta, self._devices)
        self._read_log()
        self._read_events()
        self._processes = self.reader.processes()
        if self._beside is None and self._study.place is not None:
            self._study.look(live=self.reader.status(self.meta).live)

    def backfill(self) -> bool:
        """Read one more piece of the past; returns whether there may be more."""
        return self._steps.backfill()

    def _describe(self) -> None:
        self._devices = self.reader.devices()
        channels = self.reader.channels()
        if channels is self._channels:
            return
        self._channels = channels
        self._by_device, self._constant = {}, {}
        for channel in channels:
            self._by_device.setdefault(channel.device, []).append(channel)
            if channel.method is Method.UNAVAILABLE:
                reason = channel.reason or "no reason given"
                self._constant[channel.id] = Reading(
                    None, channel.method, reason, channel.source, channel.sampled_as
                )
            cores = channel.metric == "process.cpu.time"
            key = channel.device, CORES if cores else channel.metric
            if key not in self._series and channel.sampled_as is not Method.UNAVAILABLE:
                if cores:
                    self._series[key] = RateSeries(self._ticks, channel.id)
                elif channel.kind != "counter":
                    self._series[key] = TickSeries(self._ticks, channel.id)

    def _read_log(self) -> None:
        while rows := self.reader.log(self._last_log):
            self._log.extend(rows)
            self._last_log = rows[-1].n

    def _read_events(self) -> None:
        while rows := self.reader.events(self._last_event):
            self._events.extend(rows)
            self._last_event = rows[-1].n
            self._checks.happened(rows)

    # The snapshot.

    def snapshot(self, view: View) -> Snapshot:
        path = self.reader.path
        state = self._status()
        t = self._now(state)
        devices = tuple(self._device(row) for row in self._devices)
        kind = text(self.meta, "workload", "kind")
        off_gpus = kind != "machine" and uses_none(self.meta, self._devices)
        selected = _select(devices, view.device, off_gpus=off_gpus)
        shown = self._window(view, t, state)
        ceilings = self._checks.ceilings
        sources = Sources(
            device=next((d for d in devices if d.row.id == selected), None),
            series=self._series,
            steps=self._steps,
            live=state.live,
            machine_only=kind == "machine",
            imported=kind == "import",
            gpus_used=None
            if gpus_unknown(self._devices)
            else sum(1 for d in devices if d.row.kind == "gpu" and d.row.used),
            t=t,
            interval=self._interval,
            of_device=ceilings.of(selected),
            of_run=ceilings.of(None),
            peak_bandwidth=ceilings.peak_bandwidth(selected),
            data_type=ceilings.data_type,
        )
        environment = text(self.meta, "environment", "label") or text(
            self.meta, "environment", "kind"
        )
        work = None
        if kind != "machine":
            work = self._steps.work(
                text(self.meta, "workload", "name") or path.stem,
                environment,
                self.meta,
                state.live,
                t,
            )
        over = not state.live
        processes = processes_of(self._processes, environment, t, over=over)
        alerts = self._checks.warnings(devices, t, live=state.live, processes=processes)
        named = view.gauges and kind != "import"
        keys = metrics_of(devices, selected, self._steps) if named else ()
        return Snapshot(
            path=str(path),
            name=text(self.meta, "workload", "name") or path.stem,
            environment=environment,
            status=state,
            machine_only=kind == "machine",
            imported=kind == "import",
            t=t,
            devices=devices,
            selected=selected,
            off_gpus=off_gpus,
            gauges=gauges_of(sources, shown, self._scales) if view.gauges else (),
            window=shown,
            work=work,
            log=tuple(self._log),
            event=self._events[-1] if self._events else None,
            no_gpu=self._no_gpu,
            phase=phase(self.meta, state, stepped=self._steps.any),
            trouble=trouble(self.meta, state),
            notice=self.reader.notice,
            silent_seconds=self._silent(state),
            algorithmic=algorithmic_bytes(sources),
            alerts=alerts,
            processes=processes,
            roofline=self._checks.rooflines() if view.roofline and kind != "machine" else None,
            counters=self._checks.counters,
            place=self._place(),
            tally=self._study.tally,
            picked=None
            if view.metric is None
            else picked_of(view.metric, devices, sources, shown, self._scales),
            metrics=keys,
            shares=self._steps.phases.shares(),
            # What became of the other runs, and the comparison, is of now.
            study=None if self._beside else self._study.strip,
            panels=panels_of(sources, devices, ceilings.peak_bandwidth, shown, alerts)
            if view.grid
            else (),
            ahead=None if self._beside else self._study.ahead(live=state.live),
            events=tuple((self._beside or self)._events),
            replay=self._replay(view),
            view=view,
        )

    def _window(self, view: View, t: int, state: Status) -> Window:
        if self._beside is not None and view.seconds is None:
            return Window(0, max(self._beside.end, NS), view.columns)
        return window(t, view.seconds, view.columns, ended=not state.live)

    def _replay(self, view: View) -> Replay | None:
        if self._beside is None:
            return None
        live = self._beside._status().live
        return Replay(self._now(self._status()), self._beside.end, view.playing, view.speed, live)

    def _place(self) -> StudyPosition | None:
        place = self._study.place
        # How long the study still takes is known of now alone.
        return replace(place, seconds_left=None) if self._beside and place else place

    @property
    def end(self) -> int:
        """Session time of the newest record in nanoseconds."""
        return self._now(self._status())

    def _status(self) -> Status:
        state = self.reader.status(self.meta)
        if state.state is State.LOST:
            # The recorder may have written its result, and ended, since the meta was read.
            self.meta = self.reader.meta()
            state = self.reader.status(self.meta)
        return state

    def _now(self, state: Status) -> int:
        """The newest moment that anything was recorded."""
        if isinstance(self.reader, PastReader):
            return max(1, self.reader.t_ns)
        ended = self.meta.get("result")
        last = max(self._ticks.newest, self._steps.newest, 1)
        if not state.live and isinstance(ended, dict) and isinstance(ended.get("t"), int):
            return int(max(1, min(ended["t"], last + 3600 * NS)))
        return last

    def _device(self, row: DeviceRow) -> DeviceNow:
        readings = {
            channel.metric: self._constant.get(channel.id) or self._reading(channel)
            for channel in self._by_device.get(row.id, ())
        }
        return DeviceNow(row, readings)

    def _reading(self, channel: ChannelRow) -> Reading:
        counter = channel.kind == "counter"
        found = self._ticks.rate(channel.id) if counter else self._ticks.latest(channel.id)
        # Slow metrics come less often than every tick; older than this is unknown.
        fresh = found and self._ticks.newest - found[0] <= max(2.5, 3 * self._interval) * NS
        value = found[1] if found and fresh else None
        return Reading(value, channel.method, channel.reason, channel.source)

    def _silent(self, state: Status) -> float | None:
        """How long nothing was recorded, where that is too long."""
        clock = self.meta.get("clock")
        if not state.live or isinstance(self.reader, PastReader) or not isinstance(clock, dict):
            return None
        start = clock.get("unix_ns")
        if not isinstance(start, int):
            return None
        silent = (self._now_ns() - start - max(self._ticks.newest, self._steps.newest)) / NS
        return silent if silent > max(_SILENT_SECONDS, 4 * self._interval) else None


def _select(devices: Sequence[DeviceNow], wanted: str | None, *, off_gpus: bool) -> str | None:
    gpus = [device.row.id for device in devices if device.row.kind == "gpu"]
    if wanted in gpus:
        return wanted
    used = [device.row.id for device in devices if device.row.kind == "gpu" and device.row.used]
    cpus = [device.row.id for device in devices if device.row.kind == "cpu"]
    return next(iter([*cpus, *gpus] if off_gpus else [*used, *gpus, *cpus]), None)


def _interval(meta: Mapping[str, JSON]) -> float:
    """Seconds between two samples of a session; one where it tells none that a recorder takes."""
    told = number(meta.get("interval_seconds"))
    return told if told and SHORTEST_INTERVAL <= told <= LONGEST_INTERVAL else 1.0
