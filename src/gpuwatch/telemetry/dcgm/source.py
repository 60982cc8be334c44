"""NVIDIA's DCGM beside NVML: bandwidth and pipe activity of Volta, Turing and Ampere GPUs.

Uses DCGM's own client ``dcgmi``, which talks to a host engine (``nv-hostengine``).
"""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpuwatch.core.metrics import checked
from gpuwatch.core.peaks import Peak, dram_peak
from gpuwatch.telemetry.base import Change, Channel, Device, Event, Source, Value, measured, same
from gpuwatch.telemetry.counters import no_bandwidth
from gpuwatch.telemetry.dcgm.fields import BASIC, DRAM_ACTIVE, FIELDS, gpu_ids, hint, trouble
from gpuwatch.telemetry.dcgm.stream import DcgmStream, Reading
from gpuwatch.telemetry.nvml.errors import Unavailable

START_PATIENCE_S = 20.0
"""How long to wait for the first two lines of ``dcgmi dmon``, in seconds."""
FRESH_S = 3.0
"""Maximum age of a reported value, in seconds (or three periods)."""
SHORTEST_S, LONGEST_S = 0.1, 1.0
"""Limits of the period, in seconds; DCGM reads profiling fields at most ten times a second."""

_NO_CLIENT = Unavailable(
    "dcgmi, the client of NVIDIA's DCGM, is not installed",
    "install the package datacenter-gpu-manager (of DCGM 4: datacenter-gpu-manager-4-core), then "
    "start its host engine as root: nv-hostengine",
)

NOT_NEEDED = "GPM measures every GPU that is watched, so DCGM is not started"

LOCK = (
    "DCGM holds a lock on the GPUs' counters on the whole machine while it is read: ncu, nsys and "
    "other users of CUPTI counters fail meanwhile"
)
"""Applies before Hopper; DCGM reads later GPUs through GPM, which takes no lock."""

BANDWIDTH = "hw.gpu.memory.bandwidth"
_DRAM = FIELDS[DRAM_ACTIVE]

_Key = tuple[str, str]


def check_dcgm(host: str) -> Unavailable | None:
    """Check that ``dcgmi`` is installed and reaches a host engine. Quick; takes no lock."""
    program = shutil.which("dcgmi")
    if program is None:
        return _NO_CLIENT
    command = [program, "discovery", "--host", host, "-l"]
    try:
        result = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            errors="replace", timeout=START_PATIENCE_S,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Unavailable(
            f"dcgmi discovery did not answer within {START_PATIENCE_S:g} s", hint("host engine")
        )
    except OSError as error:
        return Unavailable(f"{program}: {error.strerror}", "see: dcgmi discovery -l")
    if gpu_ids(result.stdout):
        return None
    problem = trouble(f"{result.stdout}\n{result.stderr}".splitlines())
    problem = problem or "DCGM's host engine has no GPU"
    return Unavailable(problem, hint(problem))


def open_dcgm(inner: Source, host: str, interval_s: float) -> DcgmSource | Unavailable:
    """Add DCGM's values for everything that ``inner``, the GPUs' own source, cannot get from GPM.

    ``host`` is ``HOST[:PORT]`` of the host engine, or ``unix://SOCKET``. DCGM is not started if GPM
    measures every GPU. Returns ``Unavailable`` if ``dcgmi`` is missing, no host engine answers
    within ``START_PATIENCE_S`` seconds, or it does not provide the fields; the caller then keeps
    ``inner``.
    """
    program = shutil.which("dcgmi")
    if program is None:
        return _NO_CLIENT
    by_gpm = {c.device for c in inner.channels if c.metric == _DRAM and _measured_by_gpm(c)}
    whole_gpus = [gpu for gpu in inner.devices if gpu.uuid and gpu.uuid.startswith("GPU-")]
    gpus = [gpu for gpu in whole_gpus if gpu.id not in by_gpm]
    if not whole_gpus:
        return Unavailable("DCGM is read for whole GPUs, and none is watched", "leave out --dcgm")
    period = min(max(interval_s, SHORTEST_S), LONGEST_S)
    if not gpus:
        return DcgmSource(inner, None, (), period)
    stream = DcgmStream(program, host, [str(gpu.uuid) for gpu in gpus], period)
    if not stream.settled.wait(START_PATIENCE_S):
        stream.close()
        return Unavailable(
            f"dcgmi gave no values within {START_PATIENCE_S:g} s", hint("host engine")
        )
    if stream.reason is not None:
        stream.close()
        return Unavailable(stream.reason, hint(stream.reason))
    return DcgmSource(inner, stream, gpus, period)


class DcgmSource:
    """A source, with DCGM where it has no GPM; made by :func:`open_dcgm`.

    Replaces the source that it wraps, so that each channel has one source.
    """

    def __init__(
        self, inner: Source, stream: DcgmStream | None, gpus: Sequence[Device], period_s: float
    ) -> None:
        self.notice = NOT_NEEDED if stream is None else LOCK
        """What the user should know before reading DCGM, on one line."""
        self._inner = inner
        self.devices = inner.devices
        self._stream = stream
        self._fresh_s = max(FRESH_S, 3 * period_s)
        self._gpus = {gpu.id: gpu for gpu in gpus}
        self._peaks = {gpu.id: dram_peak(gpu.attributes, gpu.name) for gpu in gpus}
        self._own = {(c.device, c.metric): c for c in inner.channels}
        ours = [(gpu.id, metric) for gpu in gpus for metric in (*FIELDS.values(), BANDWIDTH)]
        keys = [*self._own, *(key for key in ours if key not in self._own)]
        self._filled = frozenset(ours)
        self._changes: list[Change] = []
        self._events = [Event("dcgm", self.notice)]
        readings = self._readings()
        self._now = {
            key: better(self._own.get(key), self._offer(key, readings)[0])
            if key in self._filled
            else self._own[key]
            for key in keys
        }
        self.channels = tuple(self._now.values())

    def sample(self) -> Sequence[Value]:
        values = dict(zip(self._own, self._inner.sample(), strict=True))
        readings = self._readings()
        for key in self._filled:
            offer, value = self._offer(key, readings)
            best = better(self._own.get(key), offer)
            if best is offer:
                values[key] = value
            if not same(self._now[key], best):
                self._now[key] = best
                self._changes.append(Change(best))
        return [values[key] for key in self._now]

    def drain(self) -> tuple[Sequence[Change], Sequence[Event]]:
        changes, events = self._inner.drain()
        passed = []
        for change in changes:
            key = (change.channel.device, change.channel.metric)
            self._own[key] = change.channel
            if key not in self._filled:
                passed.append(change)
        own_changes, self._changes = self._changes, []
        own_events, self._events = self._events, []
        if self._stream is not None:
            queue = self._stream.events
            own_events += [queue.popleft() for _ in range(len(queue))]
        return [*passed, *own_changes], [*events, *own_events]

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
        self._inner.close()

    def _readings(self) -> Mapping[str, Reading]:
        return {} if self._stream is None else self._stream.readings()

    def _offer(self, key: _Key, readings: Mapping[str, Reading]) -> tuple[Channel, Value]:
        """DCGM's channel for ``key``, available or with the reason why not, and its value."""
        device, metric = key
        if metric == BANDWIDTH:
            return self._bandwidth(device, readings)
        field = next(number for number, name in FIELDS.items() if name == metric)
        source = f"DCGM field {field}"
        assert self._stream is not None, "without it nothing is filled"
        refused = self._stream.refused
        value: Value = None
        reading = readings.get(str(self._gpus[device].uuid))
        if refused is not None and field not in BASIC:
            reason: str | None = f"DCGM does not give field {field} together with others: {refused}"
        elif reading is None:
            reason = self._stream.reason or "DCGM's host engine does not know this GPU"
        elif time.monotonic() - reading.at > self._fresh_s:
            reason = f"DCGM has given no value for over {self._fresh_s:g} s"
        else:
            given = reading.values.get(field)
            if given is None:
                reason = f"DCGM has no value of field {field} here (N/A)"
            else:
                value, reason = checked(metric, given)
                reason = reason and f"{source}: {reason}"
        return measured(device, metric, source, reason), value

    def _bandwidth(self, device: str, readings: Mapping[str, Reading]) -> tuple[Channel, Value]:
        offer, activity = self._offer((device, _DRAM), readings)
        peak: Peak = self._peaks[device]
        source = f"{offer.source} (DRAM active) x peak DRAM bandwidth"
        if peak.value is None:
            reason = no_bandwidth(self._gpus[device], peak)
            return measured(device, BANDWIDTH, source, offer.reason or reason), None
        source = f"{source} {peak.value / 1e9:.0f} GB/s ({peak.basis})"
        value = None if activity is None else activity * peak.value
        return replace(offer, metric=BANDWIDTH, source=source), value


def better(own: Channel | None, dcgm: Channel) -> Channel:
    """Choose between two sources of one channel.

    GPM comes before DCGM (it takes no lock), and DCGM before NVML's other readings (a 20 ms window
    for PCIe). If nothing measures, DCGM's reason is kept.
    """
    if own is None or own.reason is not None:
        return dcgm
    return own if _measured_by_gpm(own) or dcgm.reason is not None else dcgm


def _measured_by_gpm(channel: Channel) -> bool:
    return channel.reason is None and "GPM" in channel.source
