"""One GPU as NVML shows it: what can be read, what cannot and why, whether it is there at all."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gpuwatch.metrics import CATALOGUE, Method
from gpuwatch.telemetry.base import Change, Channel, Event, Value
from gpuwatch.telemetry.health import HEALTH
from gpuwatch.telemetry.health_processes import FUNCTION, ProcessShares, ProcessUtilization
from gpuwatch.telemetry.nvml_errors import LOST, NOT_FOUND, PERMANENT, describe
from gpuwatch.telemetry.nvml_fields import (
    BANDWIDTH,
    NO_BANDWIDTH,
    READINGS,
    GpuProcess,
    Numbers,
    Reading,
    call,
)

RETRY_S = 1.0
"""How long a failed call is left alone, in seconds."""
FRESH_S = 3.0
"""Age in seconds up to which a slow value is given, and silence after which a call is reported."""


class GpuLost(Exception):
    """A call answered that the whole GPU, or the driver under it, is gone."""

    def __init__(self, code: int) -> None:
        super().__init__(describe(code).reason)
        self.code = code


@dataclass
class Journal:
    """Changes and events of a source since somebody asked; appended to by several threads."""

    changes: deque[Change]
    events: deque[Event]


class _Probe:
    """One reading of one GPU: the way that works, the last values, the next time to try."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.watch = reading.watch() if reading.watch is not None else None
        self.values: Numbers = ()
        self.at = -math.inf
        self.reset()

    def reset(self) -> None:
        self.way = 0
        self.worked = False
        self.retry_at = -math.inf

    @property
    def source(self) -> str:
        ways = self.reading.ways
        return ways[min(self.way, len(ways) - 1)].source


class Gpu:
    """A GPU or MIG device. One thread reads the fast readings, another the slow ones.

    ``reopen`` gives the handle anew, by UUID where that is known; it raises ``NVMLError``.
    """

    def __init__(
        self, nvml: Any, device: str, handle: Any, reopen: Callable[[], Any], journal: Journal
    ) -> None:
        self.id = device
        self.reopen = reopen
        self.lost: str | None = "the GPU has not answered yet"
        """Why no call is made on this GPU; ``None`` while it is there."""
        self.calling: tuple[str, float] | None = None
        """The slow call in progress and the monotonic time at which it began."""
        self.handle = handle
        self._nvml = nvml
        self._journal = journal
        self._lock = threading.Lock()
        self._epoch = 0
        self._announced = False
        self._no_processes: str | None = None
        self._processes: tuple[float, tuple[GpuProcess, ...]] | None = None
        self._utilization = ProcessUtilization()
        self._utilization_at = -math.inf
        self.probes = tuple(_Probe(reading) for reading in (*READINGS, *HEALTH))
        self._fast = tuple(probe for probe in self.probes if not probe.reading.slow)
        self._slow = tuple(probe for probe in self.probes if probe.reading.slow)
        self._channels = {
            metric: Channel(device, metric, Method.UNAVAILABLE, probe.source, self.lost)
            for probe in self.probes
            for metric in probe.reading.metrics
        }
        self._channels[BANDWIDTH] = Channel(
            device, BANDWIDTH, Method.UNAVAILABLE, "NVML", NO_BANDWIDTH
        )
        self._order = [name for name in CATALOGUE if name in self._channels]
        places = {
            metric: (probe, k)
            for probe in self.probes
            for k, metric in enumerate(probe.reading.metrics)
        }
        self._places = [places.get(name) for name in self._order]

    @property
    def channels(self) -> tuple[Channel, ...]:
        """The channels as they are now, in the catalogue's order."""
        with self._lock:
            return tuple(self._channels[name] for name in self._order)

    @property
    def processes(self) -> tuple[GpuProcess, ...] | None:
        """The processes on this GPU; ``None`` where that is not known, or no longer."""
        known = self._processes
        if known is None or time.monotonic() - known[0] > FRESH_S:
            return None
        return known[1]

    @property
    def process_shares(self) -> ProcessShares:
        """How much of this GPU's time each process used during about the last second."""
        if self.lost is not None:
            return ProcessShares({}, self.lost)
        known = self._utilization.shares
        if known.reason is None and time.monotonic() - self._utilization_at > FRESH_S:
            return ProcessShares({}, f"{FUNCTION} has not answered for over {FRESH_S:g} s")
        return known

    def values(self, since: float) -> list[Value]:
        """Every channel's value, if read after ``since`` (monotonic) or slow and still fresh."""
        slow_since = time.monotonic() - FRESH_S
        given: list[Value] = []
        for place in self._places:
            if place is None:
                given.append(None)
                continue
            probe, k = place
            fresh = probe.at >= (slow_since if probe.reading.slow else since)
            given.append(probe.values[k] if fresh and self.lost is None else None)
        return given

    def read_fast(self) -> None:
        """Read the fast readings that are not waiting for another try."""
        if self.lost is None:
            self._read(self._fast, watched=False)

    def read_slow(self) -> None:
        """Read the slow readings, the processes and their utilization."""
        if self.lost is None and self._read((*self._slow, None), watched=True):
            self._read_utilization()

    def open(self) -> None:
        """Get the handle if there is none, try every reading; for the start and after a loss."""
        with self._lock:
            self._epoch += 1
            self._no_processes = None
            for probe in self.probes:
                probe.reset()
        try:
            if self.handle is None or self._announced:
                self.handle = self._watched("nvmlDeviceGetHandleByUUID", self.reopen)
            self._watched("nvmlDeviceGetUUID", self._nvml.nvmlDeviceGetUUID, self.handle)
        except self._nvml.NVMLError as error:
            self.lose(error.value)
            return
        if self._read((*self.probes, None), watched=True):
            self.lost = None
            if self._announced:
                self._announced = False
                self._journal.events.append(Event("gpu-back", "the GPU answers again", self.id))

    def lose(self, code: int) -> None:
        """Note that the GPU is gone: all its channels unavailable, once one event."""
        meaning = describe(code)
        with self._lock:
            self._epoch += 1
            self._processes = None
            self.lost = meaning.reason
            for name in self._order:
                if name != BANDWIDTH:
                    self._set(name, self._channels[name].source, meaning.reason)
            first, self._announced = not self._announced, True
        if first:
            self._journal.events.append(
                Event("gpu-lost", f"{meaning.reason}; {meaning.mend}", self.id)
            )

    def report_silence(self, slow: bool, reason: str) -> None:
        """A call hangs: its readings' channels are unavailable until a call returns."""
        with self._lock:
            if self.lost is not None:
                return
            for probe in self._slow if slow else self._fast:
                if probe.retry_at == math.inf:
                    continue
                for name in probe.reading.metrics:
                    self._set(name, probe.source, reason)

    def _read(self, probes: Sequence[_Probe | None], watched: bool) -> bool:
        """Read each, ``None`` being the processes; whether the GPU is still there."""
        try:
            for probe in probes:
                if probe is None:
                    self._read_processes()
                elif probe.retry_at <= time.monotonic():
                    self._attempt(probe, watched)
        except GpuLost as error:
            self.lose(error.code)
            return False
        return True

    def _attempt(self, probe: _Probe, watched: bool) -> None:
        """Call once, or in the order of the ways until one works that has not been tried yet."""
        epoch = self._epoch
        ways = probe.reading.ways
        while True:
            way = ways[probe.way]
            try:
                if watched:
                    values = self._watched(way.source, way.read, self._nvml, self.handle)
                else:
                    values = way.read(self._nvml, self.handle)
            except self._nvml.NVMLError as error:
                code: int = error.value
                if epoch != self._epoch:
                    return
                if code in LOST:
                    raise GpuLost(code) from error
                if code in PERMANENT and not probe.worked and probe.way + 1 < len(ways):
                    probe.way += 1
                    continue
                self._failed(probe, code, epoch)
                return
            with self._lock:
                if epoch != self._epoch:
                    return
                probe.values = values
                probe.at = time.monotonic()
                probe.worked = True
                if probe.watch is not None:
                    for kind, text in probe.watch(values, probe.at):
                        self._journal.events.append(Event(kind, text, self.id))
                for name in probe.reading.metrics:
                    if self._channels[name].reason is not None:
                        self._set(name, way.source, None)
            return

    def _failed(self, probe: _Probe, code: int, epoch: int) -> None:
        for_good = code in PERMANENT and not probe.worked
        if for_good:
            tried = ", ".join(way.source.removeprefix("NVML ") for way in probe.reading.ways)
        else:
            tried = probe.source.removeprefix("NVML ")
        with self._lock:
            if epoch != self._epoch:
                return
            probe.at = -math.inf
            probe.retry_at = math.inf if for_good else time.monotonic() + RETRY_S * 0.99
            for name in probe.reading.metrics:
                self._set(name, probe.source, f"{tried}: {describe(code).reason}")

    def _set(self, metric: str, source: str, reason: str | None) -> None:
        method = Method.MEASURED if reason is None else Method.UNAVAILABLE
        channel = Channel(self.id, metric, method, source, reason)
        if channel != self._channels[metric]:
            self._channels[metric] = channel
            self._journal.changes.append(Change(channel))

    def _watched(self, name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call on the slow thread, so that others can see which call hangs and since when."""
        self.calling = (name.removeprefix("NVML "), time.monotonic())
        try:
            return function(*arguments)
        finally:
            self.calling = None

    def _read_processes(self) -> None:
        """The processes of both kinds; those with graphics alone are missed where unsupported."""
        if self._no_processes is not None:
            return
        epoch = self._epoch
        found: list[GpuProcess] = []
        for kind in ("Compute", "Graphics"):
            name = f"nvmlDeviceGet{kind}RunningProcesses"
            try:
                listed = self._watched(name, call, self._nvml, name, self.handle)
            except self._nvml.NVMLError as error:
                if error.value in LOST:
                    raise GpuLost(error.value) from error
                if kind == "Compute" and error.value != NOT_FOUND:
                    if error.value in PERMANENT:
                        self._no_processes = f"{name}: {describe(error.value).reason}"
                    return
            else:
                found += [GpuProcess(p.pid, p.usedGpuMemory, kind.lower()) for p in listed]
        with self._lock:
            if epoch == self._epoch:
                self._processes = (time.monotonic(), tuple(found))

    def _read_utilization(self) -> None:
        try:
            self._watched(FUNCTION, self._utilization.read, self._nvml, self.handle)
        except self._nvml.NVMLError as error:
            if error.value in LOST:
                self.lose(error.value)
        else:
            self._utilization_at = time.monotonic()
