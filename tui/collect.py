"""What the feed has read of a session so far, and the snapshot that follows from it.

Everything is read incrementally and in chunks: a session of a million ticks opens with its coarse
tier and its newest minutes.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gpuwatch.metrics import Method
from gpuwatch.session.reader import CHUNK, SessionReader
from gpuwatch.session.rows import ChannelRow, DeviceRow, EventRow, LogRow
from gpuwatch.session.schema import TIER_STATS
from gpuwatch.session.status import State, Status, status
from gpuwatch.tui import checks
from gpuwatch.tui.gauges import Sources, algorithmic_bytes, gauges_of
from gpuwatch.tui.graph import window
from gpuwatch.tui.metric_graph import channel_of, metrics_of, picked_of
from gpuwatch.tui.panels import panels_of
from gpuwatch.tui.rooflines import CORES
from gpuwatch.tui.said import no_gpu, phase, text, trouble
from gpuwatch.tui.series import NS, RECENT_NS, Series
from gpuwatch.tui.snapshot import DeviceNow, Reading, Snapshot, View
from gpuwatch.tui.steps import Steps
from gpuwatch.tui.study_now import StudyNow

_HISTORY = (
    *("hw.gpu.utilization", "hw.gpu.memory.bandwidth", "hw.cpu.utilization"),
    *("hw.gpu.memory.busy", *checks.HISTORY),
)
_CORES = "process.cpu.time"
_MOST_LOG = 400
"""Log lines kept for the screen."""
_SILENT_SECONDS = 5.0


class Collector:
    """Reads one session bit by bit. Lives in the feed's thread."""

    def __init__(self, reader: SessionReader, now_ns: Callable[[], int] = time.time_ns) -> None:
        self._reader = reader
        self._now_ns = now_ns
        self.meta: Mapping[str, Any] = reader.meta()
        self._channels: tuple[ChannelRow, ...] = ()
        self._devices: tuple[DeviceRow, ...] = ()
        self._last_tick = -1
        self._t = 0
        self._latest: dict[int, tuple[int, float]] = {}
        self._series: dict[tuple[str, str], Series] = {}
        self._picked: set[tuple[str, str]] = set()
        """Devices and metrics whose histories were asked for besides those of every session."""
        self._counters: dict[int, deque[tuple[int, float]]] = {}
        self._log: deque[LogRow] = deque(maxlen=_MOST_LOG)
        self._last_log = reader.last_log() - _MOST_LOG
        self._event: EventRow | None = None
        self._last_event = -1
        self._scales: dict[tuple[str, str | None], float] = {}
        self._steps = Steps(reader)
        self._study = StudyNow(reader.path)
        self._interval = _seconds(self.meta.get("interval_seconds"), 1.0)
        self._checks = checks.Checks(reader, self._series, self._steps, self._interval)
        self._load_tier()

    def _load_tier(self) -> None:
        """The whole history in buckets, then ticks from the bucket under way on."""
        self._describe()
        last = self._reader.last_tick()
        wanted = self._history_channels()
        if last is None or not wanted:
            return
        newest = self._read_tier(wanted)
        n, t = last
        after = self._recent(n)
        covered = (newest + 1) * 10 * NS
        if newest < 0 and t <= RECENT_NS:
            after = -1
        self._read_ticks(after, covered)

    def _recent(self, n: int) -> int:
        """The tick after which ticks are kept one by one when ``n`` is the newest."""
        return max(-1, n - int(RECENT_NS / NS / self._interval) - 1)

    def _read_tier(self, wanted: Sequence[ChannelRow]) -> int:
        """All finished buckets of these channels; returns the newest one, -1 without any."""
        ids = [channel.id for channel in wanted]
        counts = {row[0]: row[1:] for row in self._reader.tier(ids, TIER_STATS.index("count"))}
        newest = -1
        for bucket, *means in self._reader.tier(ids, TIER_STATS.index("mean")):
            weights = counts.get(bucket, (None,) * len(ids))
            for channel, mean, weight in zip(wanted, means, weights, strict=True):
                self._of(channel).add_bucket(bucket, mean, weight)
            newest = max(newest, bucket)
        return newest

    def _pick(self, view: View, devices: Sequence[DeviceNow], selected: str | None) -> None:
        """Read the history of the metric that was picked, once; from then on it is kept."""
        wanted = channel_of(view.metric, devices, selected)
        found = [each for each in self._channels if (each.device, each.metric) == wanted]
        if not found or wanted in self._picked or found[0].metric in _HISTORY:
            return
        channel = found[0]
        self._picked.add((channel.device, channel.metric))
        covered = (self._read_tier([channel]) + 1) * 10 * NS
        after, series = self._recent(self._last_tick) if covered else -1, self._of(channel)
        while rows := self._reader.ticks([channel.id], after, CHUNK):
            for n, t, value in rows:
                if n <= self._last_tick:
                    (series.add_recent if t < covered else series.add)(t, value)
            after = rows[-1][0]
            if after >= self._last_tick:
                break

    def update(self) -> None:
        """Read what was written since the last call."""
        self.meta = self._reader.meta()
        self._describe()
        self._read_ticks(self._last_tick, 0)
        self._steps.update(self.meta)
        self._checks.update(self.meta, self._devices)
        self._read_log()
        self._read_events()
        self._study.look(live=status(self.meta, self._reader.path).live)

    def backfill(self) -> bool:
        """Read one more piece of the past; returns whether there may be more."""
        return self._steps.backfill()

    def _describe(self) -> None:
        self._channels = self._reader.channels()
        self._devices = self._reader.devices()

    def _history_channels(self) -> list[ChannelRow]:
        return [channel for channel in self._channels if self._kept(channel)]

    def _kept(self, channel: ChannelRow) -> bool:
        """Its history is needed."""
        return channel.metric in _HISTORY or (channel.device, channel.metric) in self._picked

    def _of(self, channel: ChannelRow) -> Series:
        return self._series.setdefault((channel.device, channel.metric), Series())

    def _read_ticks(self, after: int, covered: int) -> None:
        channels = self._channels
        ids = [channel.id for channel in channels]
        history = [
            (index, self._of(channel))
            for index, channel in enumerate(channels)
            if self._kept(channel)
        ]
        counters = [index for index, channel in enumerate(channels) if channel.kind == "counter"]
        while rows := self._reader.ticks(ids, after, CHUNK):
            for _, t, *values in rows:
                for index, series in history:
                    if t < covered:
                        series.add_recent(t, values[index])
                    else:
                        series.add(t, values[index])
                for index in counters:
                    if values[index] is not None:
                        kept = self._counters.setdefault(ids[index], deque(maxlen=64))
                        if kept and channels[index].metric == _CORES and t > kept[-1][0]:
                            cores = (values[index] - kept[-1][1]) / ((t - kept[-1][0]) / NS)
                            self._cores(channels[index].device).add(t, cores)
                        kept.append((t, values[index]))
            for row in rows[-64:]:
                for id_, value in zip(ids, row[2:], strict=True):
                    if value is not None:
                        self._latest[id_] = (row[1], value)
            after, self._last_tick, self._t = rows[-1][0], rows[-1][0], rows[-1][1]
        for series in self._series.values():
            series.trim()

    def _cores(self, device: str) -> Series:
        return self._series.setdefault((device, CORES), Series())

    def _read_log(self) -> None:
        while rows := self._reader.log(self._last_log):
            self._log.extend(rows)
            self._last_log = rows[-1].n

    def _read_events(self) -> None:
        while rows := self._reader.events(self._last_event):
            self._event = rows[-1]
            self._last_event = rows[-1].n
            self._checks.happened(rows)

    # The snapshot.

    def snapshot(self, view: View) -> Snapshot:
        path = self._reader.path
        state = self._status()
        t = self._now(state)
        devices = tuple(self._device(row, t) for row in self._devices)
        selected = _select(devices, view.device)
        self._pick(view, devices, selected)
        shown = window(t, view.seconds, view.columns, ended=not state.live)
        kind = text(self.meta, "workload", "kind")
        ceilings = self._checks.ceilings
        sources = Sources(
            device=next((d for d in devices if d.row.id == selected), None),
            series=self._series,
            steps=self._steps,
            live=state.live,
            machine_only=kind == "machine",
            imported=kind == "import",
            gpus_used=sum(1 for d in devices if d.row.kind == "gpu" and d.row.used),
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
            )
        warnings = self._checks.warnings(devices, t, live=state.live)
        keys = () if kind == "import" else metrics_of(devices, selected, self._steps)
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
            gauges=gauges_of(sources, shown, self._scales),
            window=shown,
            work=work,
            log=tuple(self._log),
            event=self._event,
            no_gpu=no_gpu(self._reader),
            phase=phase(self.meta, state, stepped=self._steps.any),
            trouble=trouble(self.meta, state),
            notice=self._reader.notice,
            silent_seconds=self._silent(state),
            algorithmic=algorithmic_bytes(sources),
            warnings=warnings,
            roofline=self._checks.rooflines() if view.roofline and kind != "machine" else None,
            counters=self._checks.counters,
            place=self._study.place,
            tally=self._study.tally,
            picked=None
            if view.metric is None
            else picked_of(view.metric, devices, sources, shown, self._scales),
            metrics=keys,
            shares=self._steps.phases.shares(),
            study=self._study.strip,
            panels=panels_of(devices, self._series, shown, self._interval, warnings)
            if view.grid
            else (),
            ahead=self._study.ahead(live=state.live),
            view=view,
        )

    def _status(self) -> Status:
        state = status(self.meta, self._reader.path)
        if state.state is State.LOST:
            # The recorder may have written its result, and ended, since the meta was read.
            self.meta = self._reader.meta()
            state = status(self.meta, self._reader.path)
        return state

    def _now(self, state: Status) -> int:
        """The newest moment that anything was recorded."""
        ended = self.meta.get("result")
        last = max(self._t, self._steps.newest, 1)
        if not state.live and isinstance(ended, dict) and isinstance(ended.get("t"), int):
            return int(max(1, min(ended["t"], last + 3600 * NS)))
        return last

    def _device(self, row: DeviceRow, t: int) -> DeviceNow:
        readings = {}
        for channel in self._channels:
            if channel.device == row.id:
                readings[channel.metric] = self._reading(channel, t)
        return DeviceNow(row, readings)

    def _reading(self, channel: ChannelRow, t: int) -> Reading:
        if channel.method is Method.UNAVAILABLE:
            return Reading(
                None, channel.method, channel.reason or "no reason given", channel.source
            )
        if channel.kind == "counter":
            value = self._rate(channel.id)
        else:
            at, value = self._latest.get(channel.id, (0, None))
            # Slow metrics come less often than every tick; older than this is unknown.
            if self._t - at > max(2.5, 3 * self._interval) * NS:
                value = None
        return Reading(value, channel.method, channel.reason, channel.source)

    def _rate(self, channel: int) -> float | None:
        """A counter's increase per second over about the last two seconds."""
        kept = self._counters.get(channel)
        if not kept or len(kept) < 2:
            return None
        t, value = kept[-1]
        if self._t - t > max(2.5, 3 * self._interval) * NS:
            return None
        first = next((pair for pair in reversed(kept) if t - pair[0] >= 2 * NS), kept[0])
        return (value - first[1]) / ((t - first[0]) / NS) if t > first[0] else None

    def _silent(self, state: Status) -> float | None:
        """How long nothing was recorded, where that is too long."""
        clock = self.meta.get("clock")
        if not state.live or not isinstance(clock, dict):
            return None
        start = clock.get("unix_ns")
        if not isinstance(start, int):
            return None
        silent = (self._now_ns() - start - max(self._t, self._steps.newest)) / NS
        return silent if silent > max(_SILENT_SECONDS, 4 * self._interval) else None


def _select(devices: Sequence[DeviceNow], wanted: str | None) -> str | None:
    gpus = [device.row.id for device in devices if device.row.kind == "gpu"]
    if wanted in gpus:
        return wanted
    used = [device.row.id for device in devices if device.row.kind == "gpu" and device.row.used]
    cpus = [device.row.id for device in devices if device.row.kind == "cpu"]
    return next(iter([*used, *gpus, *cpus]), None)


def _seconds(value: object, default: float) -> float:
    if isinstance(value, (int, float)) and 0 < value < 3600:
        return float(value)
    return default
