"""One GPU through NVML: available readings, reasons for missing ones, and loss of the GPU."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gpuwatch.core.metrics import CATALOGUE, Method, checked
from gpuwatch.core.peaks import Peak
from gpuwatch.core.units import binary
from gpuwatch.telemetry.base import Change, Channel, Device, Event, Value, same
from gpuwatch.telemetry.counters import OF_THE_WHOLE_GPU, is_mig
from gpuwatch.telemetry.nvml.driver_samples import power_over
from gpuwatch.telemetry.nvml.errors import LOST, PERMANENT, describe
from gpuwatch.telemetry.nvml.fields import READINGS, GpuProcess, energy_rarely
from gpuwatch.telemetry.nvml.gpm import PATIENCE_S, Gpm
from gpuwatch.telemetry.nvml.gpm_metrics import METRICS, PCIE, source_of
from gpuwatch.telemetry.nvml.health import HEALTH
from gpuwatch.telemetry.nvml.probe import GpuLost, Journal, Probe
from gpuwatch.telemetry.nvml.process_utilization import ProcessShares
from gpuwatch.telemetry.nvml.processes import SHARES_RARELY_S, SHARES_S, ProcessLists
from gpuwatch.telemetry.nvml.unified import LINK, NO_LINK, is_unified, with_host_memory

RETRY_S = 1.0
"""Delay before a failed call is retried, in seconds."""
RECENT_S = 2.0
"""Maximum age of a utilization that says whether the GPU is busy, in seconds."""


class Gpu:
    """A GPU or MIG device. One thread reads the fast readings, one the slow ones, one GPM.

    ``reopen`` returns a new handle, by UUID if that is known; it raises ``NVMLError``. ``peak`` is
    the peak DRAM bandwidth. GPM is sampled for a recording every ``interval_s`` seconds, or not at
    all for ``None``. ``sparing``: what takes milliseconds of processor time is asked rarely.
    """

    def __init__(
        self,
        nvml: Any,
        device: Device,
        handle: Any,
        reopen: Callable[[], Any],
        journal: Journal,
        peak: Peak,
        interval_s: float | None,
        gpm_wake: threading.Event,
        sparing: bool,
    ) -> None:
        self.id = device.id
        self.reopen = reopen
        self.lost: str | None = "the GPU has not answered yet"
        """Why no calls are made on this GPU; ``None`` while it is present."""
        self.fast_call = ""
        """The most recent call of the fast readings."""
        self.calling: tuple[str, float] | None = None
        """The slow call in progress and its start in monotonic seconds."""
        self.handle = handle
        self._nvml = nvml
        self._journal = journal
        self._lock = threading.Lock()
        self._epoch = 0
        self._announced = False
        self._processes = ProcessLists(
            nvml, self._watched, self._is_busy, SHARES_RARELY_S if sparing else SHARES_S
        )
        self._untold: str | None = None
        readings = (*power_over(interval_s, READINGS), *HEALTH)
        if sparing:
            readings = energy_rarely(readings)
        self._never: dict[str, str] = {}
        """Why metrics are unavailable on this device, whatever NVML answers."""
        if is_unified(device.attributes):
            readings = with_host_memory(readings)
            self._never = dict.fromkeys(LINK, NO_LINK)
        if is_mig(device):
            whole = [name for each in readings if not each.of_a_part for name in each.metrics]
            self._never |= dict.fromkeys(whole, OF_THE_WHOLE_GPU)
        self.probes = tuple(
            Probe(reading) for reading in readings if not self._never.keys() & {*reading.metrics}
        )
        self._memory_total = device.attributes.get("memory.total")
        self._contradicted = False
        self._fast = tuple(probe for probe in self.probes if not probe.reading.slow)
        self._slow = tuple(probe for probe in self.probes if probe.reading.slow)
        self._contested = tuple(probe for probe in self._slow if probe.reading.metrics[0] in PCIE)
        self._by_gpm = frozenset(METRICS) - frozenset(PCIE)
        self._gpm_sources = {metric: source_of(metric, peak) for metric in METRICS}
        sources = self._gpm_sources | {
            metric: reading.ways[0].source for reading in readings for metric in reading.metrics
        }
        self._channels = {
            metric: Channel(self.id, metric, Method.UNAVAILABLE, source, self._reason(metric))
            for metric, source in sources.items()
        }
        self._order = [name for name in CATALOGUE if name in self._channels]
        self._place = {name: place for place, name in enumerate(self._order)}
        self._places = [
            (probe, tuple(enumerate(self._place[name] for name in probe.reading.metrics)))
            for probe in self.probes
        ]
        """For each probe, pairs of (index of the value, index of the channel)."""
        self.gpm = (
            Gpm(nvml, self, interval_s, peak, device, gpm_wake) if interval_s is not None else None
        )

    @property
    def epoch(self) -> int:
        """Changes whenever the GPU is opened or lost."""
        return self._epoch

    @property
    def channels(self) -> tuple[Channel, ...]:
        """The current channels, in the catalogue's order."""
        with self._lock:
            return tuple(self._channels[name] for name in self._order)

    @property
    def processes(self) -> tuple[GpuProcess, ...] | None:
        """The processes on this GPU; ``None`` if unknown, outdated or not believed."""
        return self._processes.listed

    @property
    def processes_doubted(self) -> bool:
        """Whether a process may be on this GPU though its list is empty."""
        return self._processes.doubts > 0

    @property
    def process_shares(self) -> ProcessShares:
        """The shares of this GPU's time that each process used in the last seconds."""
        if self.lost is not None:
            return ProcessShares({}, self.lost)
        return self._processes.shares

    def values(self, since: float) -> list[Value]:
        """Every channel's value, if read after ``since`` (monotonic) or slow and still fresh.

        GPM's values since the last call are returned only once.
        """
        now = time.monotonic()
        by_gpm = self.gpm.taken() if self.gpm is not None else {}
        result: list[Value] = [None] * len(self._order)
        if self.lost is not None:
            return result
        for probe, places in self._places:
            if probe.at >= (now - probe.fresh_s if probe.fresh_s else since):
                values = probe.values
                for k, place in places:
                    result[place] = values[k]
        for name in self._by_gpm if self.gpm is not None else ():
            result[self._place[name]] = by_gpm.get(name)
        return result

    def read_fast(self) -> None:
        """Read the fast readings that are not waiting for a retry."""
        if self.lost is None:
            self._read(self._fast, watched=False)

    def read_slow(self) -> None:
        """Read the slow readings, the processes and their utilization."""
        if self.lost is None and self._read((*self._slow, None), watched=True):
            try:
                self._processes.read_shares(self.handle)
            except GpuLost as error:
                self.lose(error.code)

    def open(self) -> None:
        """Get a handle if necessary and try every reading, at the start and after a loss."""
        with self._lock:
            self._epoch += 1
            epoch = self._epoch
            self._processes.forget()
            self._by_gpm = self._by_gpm.difference(PCIE)
            for probe in self.probes:
                probe.reset()
        try:
            if self.handle is None or self._announced:
                self.handle = self._watched("nvmlDeviceGetHandleByUUID", self.reopen)
            self._watched("nvmlDeviceGetUUID", self._nvml.nvmlDeviceGetUUID, self.handle)
        except self._nvml.NVMLError as error:
            self.lose(error.value)
            return
        if self.gpm is not None:
            self.gpm.begin(epoch)
        others = (probe for probe in self.probes if probe not in self._contested)
        if self._read((*others, None), watched=True):
            self.lost = None
            if self._announced:
                self._announced = False
                self.announce(Event("gpu-back", "the GPU answers again", self.id))
            if self.gpm is not None:
                self.gpm.settled.wait(PATIENCE_S)
            self._read(self._contested, watched=True)

    def lose(self, code: int) -> None:
        """Mark the GPU as gone: all channels unavailable, and one event for the loss."""
        meaning = describe(code)
        with self._lock:
            self._epoch += 1
            self._processes.forget()
            self.lost = meaning.reason
            for name in self._order:
                self._set(name, self._channels[name].source, meaning.reason)
            first, self._announced = not self._announced, True
        if self.gpm is not None:
            self.gpm.rest()
        if first:
            self.announce(Event("gpu-lost", f"{meaning.reason}; {meaning.hint}", self.id))

    def announce(self, event: Event) -> None:
        """Queue an event for the next sample."""
        self._journal.events.append(event)

    def set_gpm_reasons(self, epoch: int, reasons: Mapping[str, str | None]) -> None:
        """Why GPM does not provide a metric, ``None`` if it does; ignored for an old ``epoch``.

        PCIe comes from GPM from its first value on; until then NVML's own 20 ms window is shown.
        """
        with self._lock:
            if epoch != self._epoch:
                return
            for name, reason in reasons.items():
                if name in self._never:
                    continue
                if reason is None and name not in self._by_gpm:
                    self._by_gpm = self._by_gpm | {name}
                    for probe in self._contested:
                        if name in probe.reading.metrics:
                            probe.next_at = math.inf
                if name in self._by_gpm:
                    self._set(name, self._gpm_sources[name], reason)

    def report_silence(self, slow: bool, reason: str, since: float = math.inf) -> None:
        """Mark a hanging call's channels as unavailable until a call returns, but for what was read
        since (monotonic seconds)."""
        with self._lock:
            if self.lost is not None:
                return
            for probe in self._slow if slow else self._fast:
                if probe.next_at == math.inf or probe.at >= since:
                    continue
                for name in probe.reading.metrics:
                    self._set(name, probe.source, reason)

    def _read(self, probes: Sequence[Probe | None], watched: bool) -> bool:
        """Read every probe (``None`` stands for the processes); whether the GPU is still there."""
        try:
            for probe in probes:
                if probe is None:
                    self._processes.read(self.handle)
                    self._tell_of_processes(self._processes.untold)
                elif probe.next_at <= time.monotonic():
                    self._attempt(probe, watched)
        except GpuLost as error:
            self.lose(error.code)
            return False
        return True

    def _tell_of_processes(self, untold: str | None) -> None:
        """An event whenever the driver begins or ceases to tell which processes are here, and once
        if they hold more memory than there is."""
        held = self._processes.held
        if isinstance(self._memory_total, int) and held > self._memory_total > 0:
            if not self._contradicted:
                text = (
                    f"by NVML its processes hold {binary(held)}, more than its memory, "
                    f"{binary(self._memory_total)}: one of the two is wrong"
                )
                self.announce(Event("memory-contradiction", text, self.id))
            self._contradicted = True
        if untold == self._untold:
            return
        self._untold = untold
        if untold is None:
            self.announce(Event("processes-back", "NVML lists the processes again", self.id))
        else:
            text = f"NVML does not tell which processes are on it: {untold}"
            self.announce(Event("processes-lost", text, self.id))

    def _is_busy(self) -> bool:
        """Whether kernels ran at the last look, if that was just now."""
        for probe in self._fast:
            if probe.reading.metrics[0] == "hw.gpu.utilization":
                recent = time.monotonic() - probe.at < RECENT_S
                return recent and bool(probe.values) and bool(probe.values[0])
        return False

    def _attempt(self, probe: Probe, watched: bool) -> None:
        """Make the call; until one has worked, try the alternatives in order."""
        epoch = self._epoch
        ways = probe.reading.ways
        while True:
            way = ways[probe.way]
            try:
                if watched:
                    values = self._watched(way.source, way.read, self._nvml, self.handle)
                else:
                    self.fast_call = way.source.removeprefix("NVML ")
                    values = way.read(self._nvml, self.handle)
            except self._nvml.NVMLError as error:
                code: int = error.value
                if epoch != self._epoch:
                    return
                if code in LOST:
                    raise GpuLost(code) from error
                passed_on = way.gives_way or (code in PERMANENT and not probe.worked)
                if passed_on and probe.way + 1 < len(ways):
                    probe.way += 1
                    continue
                self._failed(probe, code, epoch)
                return
            metrics = probe.reading.metrics
            possible = [checked(name, value) for name, value in zip(metrics, values, strict=False)]
            whole = all(reason is None for _, reason in possible)
            if not whole and (way.gives_way or not probe.worked) and probe.way + 1 < len(ways):
                probe.way += 1
                continue
            with self._lock:
                if epoch != self._epoch:
                    return
                probe.values = (*(value for value, _ in possible), *values[len(metrics) :])
                probe.at = time.monotonic()
                probe.worked = True
                # Opening a GPU reads all, which is no sample of the fast ones.
                rarely = probe.reading.every_s > RETRY_S and watched == probe.reading.slow
                if rarely and probe.next_at != math.inf:
                    probe.next_at = probe.at + probe.reading.every_s - RETRY_S / 2
                if probe.watch is not None:
                    for kind, text in probe.watch(probe.values, probe.at):
                        self.announce(Event(kind, text, self.id))
                for name, (_, reason) in zip(metrics, possible, strict=True):
                    channel = self._channels[name]
                    told = channel.reason is reason is None and channel.source == way.source
                    if not told and name not in self._by_gpm:
                        said = reason and f"{way.source.removeprefix('NVML ')}: {reason}"
                        self._set(name, way.source, said)
            return

    def _failed(self, probe: Probe, code: int, epoch: int) -> None:
        for_good = code in PERMANENT and not probe.worked
        if for_good:
            tried = ", ".join(way.source.removeprefix("NVML ") for way in probe.reading.ways)
        else:
            tried = probe.source.removeprefix("NVML ")
        with self._lock:
            if epoch != self._epoch or self._by_gpm.issuperset(probe.reading.metrics):
                return
            probe.at = -math.inf
            probe.next_at = math.inf if for_good else time.monotonic() + RETRY_S * 0.99
            for name in probe.reading.metrics:
                self._set(name, probe.source, f"{tried}: {describe(code).reason}")

    def _reason(self, metric: str) -> str | None:
        """Why a metric is unavailable before the first read."""
        return self._never.get(metric, self.lost)

    def _set(self, metric: str, source: str, reason: str | None) -> None:
        reason = self._never.get(metric, reason)
        method = Method.MEASURED if reason is None else Method.UNAVAILABLE
        channel, before = Channel(self.id, metric, method, source, reason), self._channels[metric]
        if not same(before, channel):
            self._channels[metric] = channel
            self._journal.changes.append(Change(channel))

    def _watched(self, name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call on the slow thread; other threads see which call hangs and since when."""
        self.calling = (name.removeprefix("NVML "), time.monotonic())
        try:
            return function(*arguments)
        finally:
            self.calling = None
