"""One GPU through NVML: what is read when, reasons for what is missing, and loss of the GPU.

All calls of a GPU are made by one thread, a ``GpuThread`` of :mod:`gpuwatch.telemetry.nvml.source`.
Other threads only look at what it left behind, and say of a call that does not return that it does
not.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import CATALOGUE, Method, checked
from gpuwatch.core.peaks import dram_peak
from gpuwatch.core.units import binary
from gpuwatch.telemetry.base import Change, Channel, Device, Event, Value, measured, same
from gpuwatch.telemetry.counters import OF_THE_WHOLE_GPU, is_mig
from gpuwatch.telemetry.nvml.driver_samples import power_over
from gpuwatch.telemetry.nvml.errors import LOST, PERMANENT, GpuLost, describe
from gpuwatch.telemetry.nvml.fields import ENERGY_RARELY_S, FRESH_S, READINGS, Reading, changed
from gpuwatch.telemetry.nvml.gpm import Gpm
from gpuwatch.telemetry.nvml.gpm_metrics import METRICS, PCIE, source_of
from gpuwatch.telemetry.nvml.health import HEALTH
from gpuwatch.telemetry.nvml.processes import SHARES_RARELY_S, SHARES_S, ProcessLists, ProcessShares
from gpuwatch.telemetry.nvml.unified import HOST_MEMORY, LINK, NO_LINK, is_unified

RETRY_S = 1.0
"""Delay before a failed call is retried, in seconds."""
LISTED_EVERY_S = 1.0
"""Interval between two lists of processes, in seconds."""
RECENT_S = 2.0
"""Maximum age of a utilization that says whether the GPU is busy, in seconds."""


@dataclass
class Journal:
    """Changes and events of a source since the last drain; several threads append to it."""

    changes: deque[Change]
    events: deque[Event]


class Probe:
    """One reading of one GPU: the call that works, the last values, the time of the next try."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.watch = reading.watch() if reading.watch is not None else None
        self.values: tuple[Value, ...] = ()
        self.at = -math.inf
        self.reset()

    def reset(self) -> None:
        """Start over, as after a loss."""
        self.way = 0
        self.worked = False
        self.next_at = -math.inf

    @property
    def source(self) -> str:
        """The call that works, or the last one tried."""
        ways = self.reading.ways
        return ways[min(self.way, len(ways) - 1)].source


class Gpu:
    """A GPU or MIG device.

    ``reopen`` returns a new handle, by UUID if that is known; it raises ``NVMLError``. GPM is
    sampled for a recording every ``interval_s`` seconds, or not at all for ``None``; ``sparing``:
    what takes milliseconds of processor time is asked rarely.
    """

    def __init__(
        self,
        nvml: Any,
        device: Device,
        handle: Any,
        reopen: Callable[[], Any],
        journal: Journal,
        interval_s: float | None,
        sparing: bool,
    ) -> None:
        self.id = device.id
        self.handle = handle
        self.lost: str | None = "the GPU has not answered yet"
        """Why no calls are made on this GPU; ``None`` while it is present."""
        self.epoch = 0
        """Changes whenever the GPU is opened or lost."""
        self.calling: tuple[str, float] | None = None
        """The call in progress and its start in monotonic seconds."""
        self._nvml = nvml
        self._reopen = reopen
        self._journal = journal
        self._lock = threading.Lock()
        """Of the channels and the changes made to them."""
        self._hung: tuple[str, float] | None = None
        self._announced = False
        self._early_s = min(interval_s or 0.5, 0.5) / 2
        """How much too early what is read between samples may be read, in seconds: it is read with
        the sample next to its time, for which the thread is awake anyway."""
        shares_s = SHARES_RARELY_S if sparing else SHARES_S
        self.processes = ProcessLists(nvml, self._call, self._is_busy, shares_s)
        self._list_at = -math.inf
        self._untold: str | None = None
        self._memory_total = device.attributes.get("memory.total")
        self._contradicted = False
        readings = power_over(interval_s, (*READINGS, *HEALTH))
        if sparing:
            readings = changed(readings, "hw.gpu.energy", every_s=ENERGY_RARELY_S)
        self._never: dict[str, str] = {}
        """Why metrics are unavailable on this device, whatever NVML answers."""
        if is_unified(device.attributes):
            readings = changed(readings, "hw.gpu.memory.usage", ways=(HOST_MEMORY,))
            self._never = dict.fromkeys(LINK, NO_LINK)
        if is_mig(device):
            whole = [name for each in readings if not each.of_a_part for name in each.metrics]
            self._never |= dict.fromkeys(whole, OF_THE_WHOLE_GPU)
        self._probes = tuple(
            Probe(reading) for reading in readings if not self._never.keys() & {*reading.metrics}
        )
        self._fast = tuple(probe for probe in self._probes if not probe.reading.slow)
        self._slow = tuple(probe for probe in self._probes if probe.reading.slow)
        self._contested = tuple(probe for probe in self._slow if probe.reading.metrics[0] in PCIE)
        """Read by calls that block, unless GPM has the metric."""
        self._by_gpm = frozenset(METRICS) - frozenset(PCIE)
        peak = dram_peak(device.attributes, device.name)
        self._gpm_sources = {metric: source_of(metric, peak) for metric in METRICS}
        sources = self._gpm_sources | {
            metric: reading.ways[0].source for reading in readings for metric in reading.metrics
        }
        self._channels = {
            name: Channel(
                self.id, name, Method.UNAVAILABLE, sources[name], self._never.get(name, self.lost)
            )
            for name in CATALOGUE
            if name in sources
        }
        self._place = {name: place for place, name in enumerate(self._channels)}
        self._gpm = (
            None
            if interval_s is None
            else Gpm(nvml, device, peak, interval_s, self._call, self._by_gpm_now, self._announce)
        )

    @property
    def channels(self) -> tuple[Channel, ...]:
        """The current channels, in the catalogue's order."""
        with self._lock:
            return tuple(self._channels.values())

    @property
    def process_shares(self) -> ProcessShares:
        """The shares of this GPU's time that each process used in the last seconds."""
        if self.lost is not None:
            return ProcessShares({}, self.lost)
        return self.processes.shares

    @property
    def rest_s(self) -> float:
        """How long the thread may wait for GPM's next sample, in seconds."""
        return math.inf if self._gpm is None or self.lost is not None else self._gpm.rest_s

    def open(self) -> None:
        """Get a handle if necessary and try every reading, at the start and after a loss."""
        self.epoch += 1
        self.processes.forget()
        self._by_gpm = self._by_gpm.difference(PCIE)
        for probe in self._probes:
            probe.reset()
        try:
            if self.handle is None or self._announced:
                self.handle = self._call("nvmlDeviceGetHandleByUUID", self._reopen)
            self._call("nvmlDeviceGetUUID", self._nvml.nvmlDeviceGetUUID, self.handle)
            if self._gpm is not None:
                self._gpm.open(self.handle)
            for probe in self._probes:
                if probe not in self._contested:
                    self._attempt(probe, opening=True)
            self._list_processes()
            if self._gpm is not None:
                self._gpm.settle()
            for probe in self._contested:
                if probe.next_at != math.inf:
                    self._attempt(probe, opening=True)
        except GpuLost as error:
            self.lose(error.code)
            return
        except self._nvml.NVMLError as error:
            self.lose(error.value)
            return
        self.lost = None
        if self._announced:
            self._announced = False
            self._announce("gpu-back", "the GPU answers again")

    def read(self) -> list[Value]:
        """Every channel's value: fast ones read now, slow ones if they are fresh, GPM's of the time
        since the last call."""
        values: list[Value] = [None] * len(self._place)
        begun = time.monotonic()
        try:
            self.read_gpm()
            for probe in self._fast if self.lost is None else ():
                if probe.next_at <= time.monotonic():
                    self._attempt(probe)
        except GpuLost as error:
            self.lose(error.code)
        if self.lost is not None:
            return values
        now = time.monotonic()
        for probe in self._probes:
            extra_s = max(0.0, probe.reading.every_s - 1.0)
            oldest = now - FRESH_S - extra_s if probe.reading.slow else max(begun, now - FRESH_S)
            if probe.at >= oldest:
                for name, value in zip(probe.reading.metrics, probe.values, strict=False):
                    values[self._place[name]] = value
        if self._gpm is not None:
            given = self._gpm.taken()
            for name in self._by_gpm:
                values[self._place[name]] = given.get(name)
        return values

    def read_gpm(self) -> None:
        """Sample GPM if it is due."""
        if self._gpm is not None and self.lost is None:
            try:
                self._gpm.step()
            except GpuLost as error:
                self.lose(error.code)

    def read_slow(self, free: Callable[[], bool]) -> None:
        """Read what is due of the slow readings and the processes, while ``free()``."""
        try:
            for probe in self._slow:
                if probe.next_at <= time.monotonic():
                    self._attempt(probe)
                    if not free():
                        return
            if self._list_at <= time.monotonic():
                self._list_processes()
                self.processes.read_shares(self.handle)
        except GpuLost as error:
            self.lose(error.code)

    def lose(self, code: int) -> None:
        """Mark the GPU as gone: all channels unavailable, and one event for the loss."""
        meaning = describe(code)
        self.epoch += 1
        self.processes.forget()
        self.lost = meaning.reason
        for name, channel in self._channels.items():
            self._set(name, channel.source, meaning.reason)
        self.close()
        if not self._announced:
            self._announced = True
            self._announce("gpu-lost", f"{meaning.reason}; {meaning.hint}")

    def close(self) -> None:
        """Release the driver's memory."""
        if self._gpm is not None:
            self._gpm.close()

    def note_silence(self, owing: bool) -> None:
        """Say when a call has not returned for ``FRESH_S`` seconds, and when it has after all.

        For the sampling thread. ``owing``: the GPU has not answered an earlier sample either, so
        this program did not merely stand still.
        """
        calling, now = self.calling, time.monotonic()
        with self._lock:
            measured = [channel for channel in self._channels.values() if channel.reason is None]
            if self._hung is not None and calling is not self._hung:
                name, since = self._hung
                self._hung = None
                if self.lost is None:
                    self._journal.changes.extend(map(Change, measured))
                    self._announce("nvml-back", f"{name} answered after {now - since:.0f} s")
            elif self._hung is None and owing and calling is not None and self.lost is None:
                name, since = calling
                if now - since > FRESH_S:
                    self._hung = calling
                    reason = f"{name} has not answered for over {FRESH_S:g} s"
                    self._journal.changes.extend(
                        Change(replace(channel, method=Method.UNAVAILABLE, reason=reason))
                        for channel in measured
                    )
                    text = f"{reason}; until it does, nothing of this GPU is sampled"
                    self._announce("nvml-lost", f"{text}; look for Xid errors in the kernel log")

    def _announce(self, kind: str, text: str) -> None:
        self._journal.events.append(Event(kind, text, self.id))

    def _by_gpm_now(self, reasons: Mapping[str, str | None]) -> None:
        """Why GPM does not provide a metric, ``None`` if it does.

        PCIe comes from GPM from its first value on; until then NVML's own 20 ms window is shown.
        """
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

    def _list_processes(self) -> None:
        """List the processes, with an event whenever the driver begins or ceases to tell them, and
        once if they hold more memory than there is."""
        self._list_at = time.monotonic() + LISTED_EVERY_S - self._early_s
        self.processes.read(self.handle)
        held, untold = self.processes.held, self.processes.untold
        if isinstance(self._memory_total, int) and held > self._memory_total > 0:
            if not self._contradicted:
                text = (
                    f"by NVML its processes hold {binary(held)}, more than its memory, "
                    f"{binary(self._memory_total)}: one of the two is wrong"
                )
                self._announce("memory-contradiction", text)
            self._contradicted = True
        if untold == self._untold:
            return
        self._untold = untold
        if untold is None:
            self._announce("processes-back", "NVML lists the processes again")
        else:
            text = f"NVML does not tell which processes run there: {untold}"
            self._announce("processes-lost", text)

    def _is_busy(self) -> bool:
        """Whether kernels ran at the last look, if that was just now."""
        for probe in self._fast:
            if probe.reading.metrics[0] == "hw.gpu.utilization":
                recent = time.monotonic() - probe.at < RECENT_S
                return recent and bool(probe.values) and bool(probe.values[0])
        return False

    def _attempt(self, probe: Probe, opening: bool = False) -> None:
        """Make the call; until one has worked, try the alternatives in order."""
        reading = probe.reading
        while True:
            way = reading.ways[probe.way]
            another = probe.way + 1 < len(reading.ways)
            try:
                values = self._call(way.source, way.read, self._nvml, self.handle)
            except self._nvml.NVMLError as error:
                code: int = error.value
                if another and (way.gives_way or (code in PERMANENT and not probe.worked)):
                    probe.way += 1
                    continue
                self._failed(probe, code)
                return
            # Beyond the metrics there is what a watch wants to see.
            possible = [checked(n, v) for n, v in zip(reading.metrics, values, strict=False)]
            whole = all(reason is None for _, reason in possible)
            if whole or not another or (probe.worked and not way.gives_way):
                break
            probe.way += 1
        probe.values = (*(value for value, _ in possible), *values[len(possible) :])
        probe.at = time.monotonic()
        probe.worked = True
        if reading.slow:
            probe.next_at = probe.at + reading.every_s - self._early_s
        elif reading.every_s > RETRY_S and not opening:  # opening a GPU is no sample
            probe.next_at = probe.at + reading.every_s - RETRY_S / 2
        if probe.watch is not None:
            for kind, text in probe.watch(probe.values, probe.at):
                self._announce(kind, text)
        for name, (_, reason) in zip(reading.metrics, possible, strict=True):
            channel = self._channels[name]
            told = channel.reason is reason is None and channel.source == way.source
            if not told and name not in self._by_gpm:
                said = reason and f"{way.source.removeprefix('NVML ')}: {reason}"
                self._set(name, way.source, said)

    def _failed(self, probe: Probe, code: int) -> None:
        for_good = code in PERMANENT and not probe.worked
        sources = [way.source for way in probe.reading.ways] if for_good else [probe.source]
        tried = ", ".join(source.removeprefix("NVML ") for source in sources)
        probe.at = -math.inf
        probe.next_at = math.inf if for_good else time.monotonic() + RETRY_S * 0.99
        for name in probe.reading.metrics:
            if name not in self._by_gpm:
                self._set(name, probe.source, f"{tried}: {describe(code).reason}")

    def _set(self, metric: str, source: str, reason: str | None) -> None:
        channel = measured(self.id, metric, source, self._never.get(metric, reason))
        with self._lock:
            if not same(self._channels[metric], channel):
                self._channels[metric] = channel
                self._journal.changes.append(Change(channel))

    def _call(self, name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Make a call; the other threads see which one hangs and since when. Raises ``GpuLost`` for
        an error of the whole GPU."""
        self.calling = (name.removeprefix("NVML "), time.monotonic())
        try:
            return function(*arguments)
        except self._nvml.NVMLError as error:
            if error.value in LOST:
                raise GpuLost(error.value) from error
            raise
        finally:
            self.calling = None
