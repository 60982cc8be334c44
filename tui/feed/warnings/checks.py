"""Warnings of every snapshot, and the rooflines of those that show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gpuwatch.analysis.hardware.ceilings import devices_of_run, missing_of
from gpuwatch.analysis.hardware.crosscheck import findings_of
from gpuwatch.analysis.hardware.pipes import METRICS as PIPES
from gpuwatch.analysis.hardware.pipes import TENSOR
from gpuwatch.analysis.hardware.profile import Counters, counters_of
from gpuwatch.analysis.hardware.program import Program
from gpuwatch.analysis.samples.cpu_time import logical_cores
from gpuwatch.analysis.summary import gpu_sharing
from gpuwatch.analysis.summary.notes import out_of_order
from gpuwatch.core.models import mapping, number
from gpuwatch.core.units import NS
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.rows import DeviceRow, EventRow
from gpuwatch.tui.feed.hardware.ceilings import CurrentCeilings
from gpuwatch.tui.feed.hardware.rooflines import Record, means, rates, rooflines_of
from gpuwatch.tui.feed.processes import ProcessNow
from gpuwatch.tui.feed.series import Series
from gpuwatch.tui.feed.snapshot import Alert, DeviceNow, Rooflines
from gpuwatch.tui.feed.steps import Steps
from gpuwatch.tui.feed.warnings.alerts import ALERT_EVENTS, LatestEvent, alerts_of
from gpuwatch.tui.feed.warnings.low_memory import low_memory
from gpuwatch.tui.feed.warnings.neighbours import gpus_of_run, shared_during, shared_now

THROTTLES = ("hw.gpu.throttle.power", "hw.gpu.throttle.thermal")
HISTORY = ("hw.gpu.sm.activity", *PIPES, *THROTTLES)
"""Metrics that need a history."""

_CHECK_NS = 10 * NS
"""Time between two cross-checks of a live run, and the shortest that one covers."""


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
        self.ceilings = CurrentCeilings()
        self._meta: Mapping[str, Any] = {}
        self._devices: tuple[DeviceRow, ...] = ()
        self._events: dict[tuple[str, str | None], LatestEvent] = {}
        self._stored: object = None
        self.counters: Counters | None = None
        self._threads: int | None = None
        self._findings: tuple[Alert, ...] = ()
        self._checked = -_CHECK_NS
        self._past_sharing: Mapping[str, str] | None = None
        self._facts = reader.facts()
        self._no_gpu = [Alert("no-gpu", "", text) for text in out_of_order(self._facts)]

    def update(self, meta: Mapping[str, Any], devices: tuple[DeviceRow, ...]) -> None:
        """Use the session's current meta data and devices."""
        self._meta, self._devices = meta, devices
        self.ceilings.update(meta, devices)
        stored = meta.get("counters")
        if stored != self._stored:
            self._stored, self.counters = stored, counters_of(meta)

    def add_events(self, events: Sequence[EventRow]) -> None:
        """Keep the events that warnings are made from."""
        for row in events:
            if row.kind in ALERT_EVENTS:
                before = self._events.get((row.kind, row.device))
                count = before.count + 1 if before is not None else 1
                self._events[row.kind, row.device] = LatestEvent(row, count)

    def rooflines(self, t: int) -> Rooflines:
        """At session time ``t`` in nanoseconds."""
        return rooflines_of(self._record(t), self.ceilings.of(None))

    def warnings(
        self,
        devices: Sequence[DeviceNow],
        t: int,
        *,
        live: bool,
        processes: Sequence[ProcessNow] = (),
    ) -> tuple[Alert, ...]:
        """Warnings at session time ``t`` in nanoseconds; of a finished run over all of it."""
        gpus = None
        if mapping(self._meta.get("workload")).get("kind") not in ("machine", "import"):
            gpus = gpus_of_run(self._meta, self._devices)
        if not live or self._steps.newest >= self._checked + _CHECK_NS:
            self._findings = self._cross_check(t, live=live)
            self._checked = self._steps.newest
        throttled = {} if live else self._throttled(t)
        doubts = [Alert("ceiling", str(n), text) for n, text in enumerate(self.ceilings.doubts())]
        omitted = [Alert("left-out", str(n), text) for n, text in enumerate(self._reader.left_out)]
        steps = [Alert("steps", "", self._steps.doubt)] if self._steps.doubt else []
        told = gpu_sharing.told_of_pods(self._facts, sorted(gpus or ()))
        pods = [Alert("pods", "", text) for text in told]
        findings = (*self._no_gpu, *pods, *steps, *self._findings, *doubts, *omitted)
        limit = number(mapping(self._meta.get("environment")).get("memory_limit_bytes"))
        return alerts_of(
            devices,
            self._events,
            throttled,
            findings,
            live=live,
            shared={} if gpus is None else self._shared(processes, gpus, t, live=live),
            full=low_memory(devices, gpus, limit) if live else (),
        )

    def _shared(
        self, processes: Sequence[ProcessNow], gpus: frozenset[str], t: int, *, live: bool
    ) -> Mapping[str, str]:
        """By GPU id, a text about other processes on it; of a finished run read once."""
        if live:
            self._past_sharing = None
            return shared_now(processes, gpus)
        if self._past_sharing is None:
            launched = int(number(mapping(self._meta.get("launch")).get("t")) or 0)
            presences = self._reader.presences(launched, t)
            self._past_sharing = shared_during(presences, gpus, t - launched)
        return self._past_sharing

    def _cross_check(self, t: int, *, live: bool) -> tuple[Alert, ...]:
        """Compare counted work with the counters of the run's GPUs: over the last minute, or all
        of a finished run. GPUs without memory of the run are left out."""
        record = self._record(t)
        start, end = record.minute if live else record.timed
        if end - start < _CHECK_NS:
            return ()
        memory = self._series.get(("workload", "process.gpu.memory.usage"))
        absent = memory is not None and memory.mean(start, end, self._interval) == 0
        record = replace(record, gpus=() if absent else record.gpus)
        mean_rates = rates(record, start, end)
        findings = findings_of(
            record.gpus,
            means(record, (TENSOR,), start, end),
            self.ceilings.data_type,
            mean_rates.flop,
            # Of an unknown data type the bound is too far above to be compared with a count.
            mean_rates.most_executed if self.ceilings.data_type is not None else None,
        )
        return tuple(Alert(item.kind, "", item.text) for item in findings if item.warning)

    def _throttled(self, t: int) -> dict[str, float]:
        """By device id, the share of the session with throttled clocks."""
        shares: dict[str, float] = {}
        for (device, metric), series in self._series.items():
            share = series.mean(0, t, self._interval) if metric in THROTTLES else None
            if share is not None:
                shares[device] = max(share, shares.get(device, 0.0))
        return shares

    def _record(self, t: int) -> Record:
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
                self._steps.doubt,
            ),
            gpus=tuple(device for device in of_run if device.kind == "gpu"),
            data_type=self.ceilings.data_type,
            series=self._series,
            interval=self._interval,
            steps=self._steps,
            threads=self._thread_count(),
            cores=logical_cores(self._devices),
            counters=self.counters,
            newest=t,
        )

    def _thread_count(self) -> int | None:
        """Threads of the workload on the CPU; ``None``: it has not reported them."""
        if self._threads is None:
            threads = str(self._reader.facts().get("workload", {}).get("threads") or "")
            if threads.isdecimal() and 0 < len(threads) < 6:
                self._threads = int(threads)
        return self._threads
