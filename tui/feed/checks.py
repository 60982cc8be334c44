"""What the analysis says of a session's histories: ceilings, rooflines, cross-checks, warnings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, cached_property, partial
from typing import Any

from gpuwatch.analysis.hardware.ceilings import (
    BANDWIDTH,
    PEAK,
    ceilings_of,
    data_type_of,
    devices_of_run,
    every_ceiling_of,
    missing_of,
)
from gpuwatch.analysis.hardware.crosscheck import Means, clocks_of, findings_of, limit_of
from gpuwatch.analysis.hardware.mfu import mfu_peaks
from gpuwatch.analysis.hardware.pipes import METRICS as PIPES
from gpuwatch.analysis.hardware.pipes import TENSOR, busiest, pipes_of
from gpuwatch.analysis.hardware.points import Rates, of_phases
from gpuwatch.analysis.hardware.profile import (
    Counters,
    Profile,
    counters_of,
    how_to_see,
    profile_of,
)
from gpuwatch.analysis.hardware.program import Program
from gpuwatch.analysis.hardware.roofline import roofline_of
from gpuwatch.analysis.samples.channels import FULL
from gpuwatch.analysis.samples.cpu_time import MOST_SECONDS, TICK_SECONDS, cpu_shares
from gpuwatch.analysis.samples.rates import pause_share
from gpuwatch.analysis.samples.step_lines import no_steps, untimed
from gpuwatch.analysis.summary import gpu_sharing
from gpuwatch.analysis.summary.notes import out_of_order
from gpuwatch.core.aggregate import average_of, total_of
from gpuwatch.core.models import mapping, number
from gpuwatch.core.units import NS, percent
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.rows import DeviceRow, GpuPresence
from gpuwatch.tui.feed.alerts import (
    MIN_SHARE,
    THROTTLES,
    LatestEvents,
    Shared,
    alerts_of,
    left_unused,
    low_memory,
    shared_with,
)
from gpuwatch.tui.feed.processes import ProcessNow
from gpuwatch.tui.feed.samples import NOTHING, Derived, Histories
from gpuwatch.tui.feed.snapshot import Alert, DeviceNow, Rooflines
from gpuwatch.tui.feed.steps import Steps

HISTORY = ("hw.gpu.sm.activity", "hw.gpu.clock.sm", *PIPES, *THROTTLES)
"""Metrics that need a history."""

_CHECK_NS = 10 * NS
"""Time between two cross-checks of a live run, and the shortest that one covers."""
_MINUTE_NS = 60 * NS
_OFF_GPUS_NS = 30 * NS
"""After so long a run without steps that uses no GPU is told of."""
_BUSY = 0.5
"""Share of the CPU's time from which on other programs are a warning."""
CPU_SHARED = "cpu-shared"
"""Kind of that warning."""


class Ceilings:
    """The ceilings of a session's devices, each worked out when it is first asked for."""

    def __init__(self, meta: Mapping[str, Any], devices: tuple[DeviceRow, ...]) -> None:
        self.data_type = data_type_of(meta, devices)
        """Data type of the run's matrix products."""
        self.mfu_peaks = mfu_peaks(meta, devices)
        self.of = cache(partial(ceilings_of, meta, devices))
        """Ceilings of one device by name; ``None``: of all devices of the run together."""
        self._every = cache(partial(every_ceiling_of, meta, devices))

    def doubts(self) -> tuple[str, ...]:
        """Disturbances while the run's ceilings were measured."""
        ceilings = [self.of(None).get(name) for name in (BANDWIDTH, self.data_type or "")]
        return tuple(f"{each.text}: {each.doubt}" for each in ceilings if each and each.doubt)

    def peak_bandwidth(self, device: str) -> float | None:
        """Peak bandwidth of the device's memory in By/s, never a measured one."""
        ceilings = self._every(device).get(BANDWIDTH, ())
        return next((ceiling.value for ceiling in ceilings if ceiling.kind == PEAK), None)


class Checks:
    """Lives in the feed's thread."""

    def __init__(self, reader: SessionReader, series: Histories, steps: Steps) -> None:
        self._reader = reader
        self._series = series
        self._steps = steps
        self.ceilings = Ceilings({}, ())
        self.events = LatestEvents()
        self._meta: Mapping[str, Any] = {}
        self._devices: tuple[DeviceRow, ...] = ()
        self._inputs: object = None
        """What the ceilings and counters follow from."""
        self.counters: Counters | None = None
        self.profile: Profile | None = None
        self._findings: tuple[Alert, ...] = ()
        self._checked = -_CHECK_NS
        self._past_sharing: Shared | None = None
        self._facts = reader.facts()
        self._no_gpu = [Alert("no-gpu", "", text) for text in out_of_order(self._facts)]

    def update(self, meta: Mapping[str, Any], devices: tuple[DeviceRow, ...]) -> None:
        """Use the session's current meta data and devices."""
        self._meta, self._devices = meta, devices
        inputs = devices, *map(meta.get, ("ceilings", "run", "counters", "profile"))
        if inputs != self._inputs:
            self._inputs = inputs
            self.ceilings, self.counters = Ceilings(meta, devices), counters_of(meta)
            self.profile = profile_of(meta)

    def warnings(
        self, devices: Sequence[DeviceNow], t: int, *, live: bool, processes: Sequence[ProcessNow]
    ) -> tuple[Alert, ...]:
        """Warnings at session time ``t`` in nanoseconds; of a finished run over all of it."""
        gpus = None
        if mapping(self._meta.get("workload")).get("kind") not in ("machine", "import"):
            gpus = frozenset(gpu.id for gpu in self._gpus())
        if not live or self._steps.newest >= self._checked + _CHECK_NS:
            self._findings = self._cross_check(t, live=live)
            self._checked = self._steps.newest
        doubts = [Alert("ceiling", str(n), text) for n, text in enumerate(self.ceilings.doubts())]
        omitted = [Alert("left-out", str(n), text) for n, text in enumerate(self._reader.left_out)]
        doubt = self._steps.doubt  # lines that tell no time are no trouble: the figures say so
        steps = [Alert("steps", "", doubt)] if doubt and doubt != untimed(self._meta) else []
        told = gpu_sharing.told_of_pods(self._facts, sorted(gpus or ()))
        pods = [Alert("pods", "", text) for text in told]
        launched = number(mapping(self._meta.get("launch")).get("t"))
        late = launched is not None and t - launched >= _OFF_GPUS_NS
        if not live:  # of one that is over no GPU is used without a word of its own, too
            late = mapping(self._meta.get("run")).get("device") is not None
        unused = ""
        if gpus is not None and (late or self._steps.any):
            unused = left_unused(self._meta, self._devices, self._visible, live=live)
        limit = number(mapping(self._meta.get("environment")).get("memory_limit_bytes"))
        alerts = alerts_of(
            devices,
            self.events,
            {} if live else self._throttled(t),
            (*self._no_gpu, *pods, *steps, *self._findings, *doubts, *omitted),
            live=live,
            shared=() if gpus is None else self._shared(processes, gpus, t, live=live),
            full=low_memory(devices, gpus, limit) if live else (),
        )
        return (Alert("unused", "", unused), *alerts) if unused else alerts

    @cached_property
    def _visible(self) -> object:
        """The run's ``CUDA_VISIBLE_DEVICES``, read once it runs; ``None``: it has none."""
        return self._reader.facts().get("process", {}).get("process.env.CUDA_VISIBLE_DEVICES")

    def _shared(
        self, processes: Sequence[ProcessNow], gpus: frozenset[str], t: int, *, live: bool
    ) -> Shared:
        """The other processes on the run's GPUs; of a finished run read once."""
        if live:
            self._past_sharing = None
            now = [
                GpuPresence(gpu, pid, each.name, each.user, each.place, kind, size, share, 0)
                for each in processes
                if each.owned is False and each.running
                for gpu, pid, kind, size, share in (
                    (use.device, each.pid, use.kind, use.bytes, use.share) for use in each.gpus
                )
            ]
            return shared_with(now, gpus, None)
        if self._past_sharing is None:
            launched = int(number(mapping(self._meta.get("launch")).get("t")) or 0)
            presences = self._reader.presences(launched, t)
            self._past_sharing = shared_with(presences, gpus, t - launched)
        return self._past_sharing

    def _throttled(self, t: int) -> dict[str, str]:
        """By device id, how long and by what clocks were held down in the timed steps."""
        start, end = self._timed(t)
        causes: dict[str, list[str]] = {}
        for (device, metric), series in self._series.items():
            share = series.mean(start, end) if metric in THROTTLES else None
            if share is not None and share >= MIN_SHARE:
                causes.setdefault(device, []).append(f"by {THROTTLES[metric]} {percent(share)}")
        of = "timed steps" if self._steps.any else "time"
        return {
            device: f"clocks held down {' and '.join(each)} of the {of}"
            for device, each in causes.items()
        }

    def _cross_check(self, t: int, *, live: bool) -> tuple[Alert, ...]:
        """Compare counted work with the counters of the run's GPUs: over the last minute, or all
        of a finished run. GPUs without memory of the run are left out."""
        start, end = self._timed(t)
        start = max(start, end - _MINUTE_NS) if live else start
        if end - start < _CHECK_NS:
            return ()
        absent = self._mean("workload", "process.gpu.memory.usage", start, end) == 0
        gpus = () if absent else self._gpus()
        found = self._rates(gpus, start, end)
        data_type = self.ceilings.data_type
        # Of an unknown data type the bound is too far above to be compared with a count.
        most = found.most_executed if data_type is not None else None
        means = self._means(gpus, (TENSOR,), start, end)
        findings = findings_of(gpus, means, data_type, found.flop, most)
        alerts = [Alert(each.kind, "", each.text) for each in findings if each.warning]
        cpu = self._cpu_shares(start, end)
        if None not in (cpu["own_cores"], cpu["cores_busy"]):
            others = cpu["cores_busy"] - cpu["own_cores"]
            if others >= _BUSY:
                word = "use" if live else "used"
                text = f"other programs {word} {percent(others)} of the CPU's time"
                alerts.append(Alert(CPU_SHARED, "", text))
        return tuple(alerts)

    # The roofline.

    def rooflines(self, t: int) -> Rooflines:
        """The rooflines of the last minute and of all timed steps at session time ``t`` (ns)."""
        workload = mapping(self._meta.get("workload"))
        program = Program(
            str(workload.get("name") or self._reader.path.stem),
            str(workload.get("kind")),
            self._steps.any,
            self._steps.timed_start is not None,
            mapping(self._meta.get("count")),
            missing_of(self._meta, self._devices),
            self._steps.doubt,
            no_steps(self._meta),
        )
        (start, end), gpus = self._timed(t), self._gpus()
        minute, whole = (
            roofline_of(program, each, self.ceilings.of(None), self.ceilings.data_type)
            for each in (
                self._rates(gpus, max(start, end - _MINUTE_NS), end),
                self._rates(gpus, start, end, self.counters),
            )
        )
        return Rooflines(minute, whole, "timed steps" if self._steps.any else "whole run")

    def _timed(self, t: int) -> tuple[int, int]:
        """Start and end of the timed steps in nanoseconds; all of a program that reports none."""
        return self._steps.timed if self._steps.any else (0, t)

    def _gpus(self) -> tuple[DeviceRow, ...]:
        """The run's GPUs; empty: it runs on the CPU."""
        of_run = devices_of_run(self._devices)
        return tuple(device for device in of_run if device.kind == "gpu")

    def _rates(
        self, gpus: Sequence[DeviceRow], start: int, end: int, counters: Counters | None = None
    ) -> Rates:
        """Means from ``start`` to ``end`` in nanoseconds; ``counters``: those of ncu per step."""
        steps, per_second = self._steps, None
        executed = size = None
        if counters is not None and (per_second := steps.per_second()) is not None:
            executed, size = counters.flop_per_step, counters.dram_bytes_per_step
        shares = steps.shares(self._meta)
        pipes = [of_pipes(gpu, self.ceilings.data_type, self._series) for gpu in gpus]

        def each(metric: str, least: float = 0.0) -> list[float | None]:
            return [self._mean(gpu.id, metric, start, end, least) for gpu in gpus]

        use: dict[str, Any] = {"busy": average_of(each("hw.gpu.utilization"))}
        return Rates(
            flop=_plausible(steps.flop.mean(start, end)),
            bytes=_plausible(steps.bytes.mean(start, end)),
            measured_bytes=total_of(each("hw.gpu.memory.bandwidth", FULL)),
            clocks=clocks_of(gpus, self._means(gpus, (*THROTTLES, "hw.gpu.clock.sm"), start, end)),
            limit=limit_of(gpus, self.ceilings.data_type),
            most_executed=total_of([each and each[0].mean(start, end, FULL) for each in pipes]),
            executed_flop=None if executed is None else executed * (per_second or 0.0),
            executed_bytes=None if size is None else size * (per_second or 0.0),
            on_gpu=bool(gpus),
            **(use if gpus else self._cpu_shares(start, end)),
            sm_activity=average_of(each("hw.gpu.sm.activity")),
            pipe=busiest(lambda metric: average_of(each(metric))) if gpus else None,
            **of_phases({} if shares is None else dict(shares.parts)),
            kernels=how_to_see(self._meta),
            pause=pause_share([row for row in steps.timed_lines() if start <= row.t <= end]),
        )

    def _cpu_shares(self, start: int, end: int) -> dict[str, Any]:
        """The fields of :class:`Rates` for a run on the CPU."""
        own, seconds = self._mean("workload", "process.cpu.time", start, end), (end - start) / NS
        at_most = own is not None and own * seconds < TICK_SECONDS
        return cpu_shares(
            MOST_SECONDS / seconds if at_most else own,
            self._mean("workload", "process.cpu.wait", start, end),
            at_most,
            self._reader.facts(),
            len(self._reader.ranks()),
            self._devices,
            self._mean("cpu", "hw.cpu.utilization", start, end),
            mapping(self._meta.get("run")).get("device") == "cpu",
        )

    def _means(
        self, gpus: Sequence[DeviceRow], metrics: Sequence[str], start: int, end: int
    ) -> Means:
        """By GPU id and metric, the mean from ``start`` to ``end`` in nanoseconds where known."""
        return {
            gpu.id: {
                metric: mean
                for metric in metrics
                if (mean := self._mean(gpu.id, metric, start, end)) is not None
            }
            for gpu in gpus
        }

    def _mean(
        self, device: str, metric: str, start: int, end: int, least: float = 0.0
    ) -> float | None:
        """``None``: less than the share ``least`` of the period is known."""
        return self._series.get((device, metric), NOTHING).mean(start, end, least)


def of_pipes(
    gpu: DeviceRow, data_type: str | None, series: Histories
) -> tuple[Derived, str] | None:
    """What the pipes of ``gpu`` executed at most in FLOP/s, and the convention in words; ``None``:
    their peaks are not known."""
    pipes = pipes_of(gpu, data_type)
    if isinstance(pipes, str):
        return None

    def rate(values: Sequence[float | None]) -> float | None:
        known = zip(PIPES, values, strict=True)
        most: float | None = pipes.rate({name: v for name, v in known if v is not None})
        return most

    return Derived(rate, *(series.get((gpu.id, name), NOTHING) for name in PIPES)), pipes.text


def _plausible(rate: float | None) -> float | None:
    """A rate that a machine can reach; a foreign file may contain any."""
    return rate if rate is not None and (rate == 0 or 1e-6 < rate < 1e24) else None
