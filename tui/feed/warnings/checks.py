"""What the feed works out beside the gauges: warnings always, the rooflines while looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gpuwatch.analysis.hardware.ceilings import devices_of_run, missing_of
from gpuwatch.analysis.hardware.crosscheck import findings_of
from gpuwatch.analysis.hardware.profile import Counters, counters_of
from gpuwatch.analysis.hardware.program import Program
from gpuwatch.analysis.samples.cpu_time import logical_cores
from gpuwatch.analysis.summary.notes import out_of_order
from gpuwatch.core.models import mapping, number
from gpuwatch.core.units import NS
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.rows import DeviceRow, EventRow
from gpuwatch.tui.feed.hardware.ceilings import CeilingsNow
from gpuwatch.tui.feed.hardware.rooflines import Record, means, rates, rooflines_of
from gpuwatch.tui.feed.processes import ProcessNow
from gpuwatch.tui.feed.series import Series
from gpuwatch.tui.feed.snapshot import Alert, DeviceNow, Rooflines
from gpuwatch.tui.feed.steps import Steps
from gpuwatch.tui.feed.warnings.alerts import TOLD, LatestEvent, alerts_of
from gpuwatch.tui.feed.warnings.low_memory import low_memory
from gpuwatch.tui.feed.warnings.neighbours import gpus_of_run, shared_now, shared_over

PIPES = (
    *("hw.gpu.tensor.activity", "hw.gpu.fp64.activity", "hw.gpu.fp32.activity"),
    *("hw.gpu.fp16.activity", "hw.gpu.clock.sm"),
)
"""What the cross-check compares counted work with."""
THROTTLES = ("hw.gpu.throttle.power", "hw.gpu.throttle.thermal")
HISTORY = ("hw.gpu.sm.activity", *PIPES, *THROTTLES)
"""Metrics whose histories are needed."""

_EVERY_NS = 10 * NS
"""Between two cross-checks of a run that goes on; and the least that one is of."""


class Checks:
    """Lives in the feed's thread."""

    def __init__(
        self,
        reader: SessionReader,
        series: Mapping[tuple[str, str], Series],
        steps: Steps,
        interval: float,
    ) -> None:
        self._reader = reader
        self._series = series
        self._steps = steps
        self._interval = interval
        self.ceilings = CeilingsNow()
        self._meta: Mapping[str, Any] = {}
        self._devices: tuple[DeviceRow, ...] = ()
        self._happened: dict[tuple[str, str | None], LatestEvent] = {}
        self._stored: object = None
        self.counters: Counters | None = None
        self._threads: int | None = None
        self._findings: tuple[Alert, ...] = ()
        self._checked = -_EVERY_NS
        self._were_there: Mapping[str, str] | None = None
        self._no_gpu = [Alert("no-gpu", "", each) for each in out_of_order(reader.facts())]

    def update(self, meta: Mapping[str, Any], devices: tuple[DeviceRow, ...]) -> None:
        """Take what is known of the session now."""
        self._meta, self._devices = meta, devices
        self.ceilings.update(meta, devices)
        stored = meta.get("counters")
        if stored != self._stored:
            self._stored, self.counters = stored, counters_of(meta)

    def happened(self, events: Sequence[EventRow]) -> None:
        """Remember what warnings are made of."""
        for row in events:
            if row.kind in TOLD:
                before = self._happened.get((row.kind, row.device))
                count = before.count + 1 if before is not None else 1
                self._happened[row.kind, row.device] = LatestEvent(row, count)

    def rooflines(self) -> Rooflines:
        return rooflines_of(self._record(), self.ceilings.of(None), self.ceilings.data_type)

    def warnings(
        self,
        devices: Sequence[DeviceNow],
        t: int,
        *,
        live: bool,
        processes: Sequence[ProcessNow] = (),
    ) -> tuple[Alert, ...]:
        """Of a run that goes on as of now; of one that is over, of all of it."""
        gpus = None
        if mapping(self._meta.get("workload")).get("kind") not in ("machine", "import"):
            gpus = gpus_of_run(self._meta, self._devices)
        if not live or self._steps.newest >= self._checked + _EVERY_NS:
            self._findings = self._cross_check(live=live)
            self._checked = self._steps.newest
        throttled = {} if live else self._throttled(t)
        doubts = [Alert("ceiling", str(at), text) for at, text in enumerate(self.ceilings.doubts())]
        rest = [Alert("left-out", str(at), text) for at, text in enumerate(self._reader.left_out)]
        findings = (*self._no_gpu, *self._findings, *doubts, *rest)
        limit = number(mapping(self._meta.get("environment")).get("memory_limit_bytes"))
        return alerts_of(
            devices,
            self._happened,
            throttled,
            findings,
            live=live,
            shared={} if gpus is None else self._shared(processes, gpus, t, live=live),
            full=low_memory(devices, gpus, limit) if live else (),
        )

    def _shared(
        self, processes: Sequence[ProcessNow], gpus: frozenset[str], t: int, *, live: bool
    ) -> Mapping[str, str]:
        """By GPU who else is on it; of a run that is over, who was, read once."""
        if live:
            self._were_there = None
            return shared_now(processes, gpus)
        if self._were_there is None:
            launched = int(number(mapping(self._meta.get("launch")).get("t")) or 0)
            found = self._reader.presences(launched, t)
            self._were_there = shared_over(found, gpus, t - launched)
        return self._were_there

    def _cross_check(self, *, live: bool) -> tuple[Alert, ...]:
        """Hold counted work against the counters of the run's GPUs: the last minute, or all of it.
        What a GPU on which the run has no process does is not the run's."""
        record = self._record()
        start, end = record.minute if live else record.timed
        if end - start < _EVERY_NS:
            return ()
        held = self._series.get(("workload", "process.gpu.memory.usage"))
        absent = held is not None and held.mean(start, end, self._interval) == 0
        record = replace(record, gpus=() if absent else record.gpus)
        now = rates(record, start, end)
        found = findings_of(
            [device for device in self._devices if device.id in record.gpus],
            means(record, PIPES, start, end),
            self.ceilings.data_type,
            now.flop,
            now.bytes,
            now.measured_bytes,
            mapping(self._meta.get("count")),
            self.counters,
        )
        return tuple(Alert(each.kind, "", each.text) for each in found if each.warning)

    def _throttled(self, t: int) -> dict[str, float]:
        """By device the share of the session in which its clocks were held down."""
        found: dict[str, float] = {}
        for (device, metric), series in self._series.items():
            share = series.mean(0, t, self._interval) if metric in THROTTLES else None
            if share is not None:
                found[device] = max(share, found.get(device, 0.0))
        return found

    def _record(self) -> Record:
        of_run = devices_of_run(self._meta, self._devices)
        workload = mapping(self._meta.get("workload"))
        return Record(
            program=Program(
                str(workload.get("name") or self._reader.path.stem),
                str(workload.get("kind")),
                self._steps.any,
                self._steps.timed_start is not None,
                mapping(self._meta.get("count")),
                missing_of(self._meta, self._devices),
            ),
            gpus=tuple(device.id for device in of_run if device.kind == "gpu"),
            series=self._series,
            interval=self._interval,
            steps=self._steps,
            threads=self._threads_now(),
            cores=logical_cores(self._devices),
            counters=self.counters,
        )

    def _threads_now(self) -> int | None:
        """Of the workload's products on the CPU, once it has told."""
        if self._threads is None:
            told = str(self._reader.facts().get("workload", {}).get("threads") or "")
            if told.isdecimal() and 0 < len(told) < 6:
                self._threads = int(told)
        return self._threads
