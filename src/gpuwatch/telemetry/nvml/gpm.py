"""GPM of one GPU: true DRAM bandwidth and pipe activity, as means between two samples of it.

GPM counts as available if a real pair of samples has values, whatever the driver reports. It can
disappear and come back during a run.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from gpuwatch.core.peaks import Peak
from gpuwatch.telemetry.base import Device
from gpuwatch.telemetry.counters import is_mig, no_bandwidth, not_offered
from gpuwatch.telemetry.nvml.errors import (
    FUNCTION_NOT_FOUND,
    INVALID_ARGUMENT,
    LOST,
    NO_PERMISSION,
    NOT_SUPPORTED,
    PERMANENT,
    GpuLost,
    describe,
)
from gpuwatch.telemetry.nvml.fields import FRESH_S
from gpuwatch.telemetry.nvml.gpm_metrics import (
    METRICS,
    NO_NVLINK,
    NVLINK,
    WANTED,
    reading_of,
    with_bandwidth,
)

SHORTEST_S = 0.11
"""Minimum seconds between two samples of a GPU: GPM needs more than 0.1."""
LONGEST_S = 1.5
"""The thread of a GPU samples at least so often; what is FRESH_S longer is no pair."""
RETRY_S, RETRY_LONGEST_S = 1.0, 10.0
"""Delay before a failed GPM is retried, in seconds: doubles with every failure, up to a limit."""
CALM_S = 60.0
"""After working for this many seconds, the next failure counts as the first."""
_SUPPORT = "nvmlGpmQueryDeviceSupport"


class GpmSamples:
    """The samples of one GPU or GPU instance; methods raise ``NVMLError`` as the binding does.

    Two sample buffers are used in turn: the second sample of a pair is the first of the next.
    ``call(name, function, *arguments)`` makes a call of the driver.
    """

    def __init__(self, nvml: Any, call: Callable[..., Any], mig: bool) -> None:
        self.linked = True
        """Whether an NVLink of the GPU is up; also where nobody can say, or of a MIG device."""
        self.aimed = False
        """Whether :meth:`take` may be called."""
        self._nvml = nvml
        self._call_by_name = call
        self._mig = mig
        self._target: Any = None
        self._instance = 0
        self._samples: list[Any] = []
        self._first: float | None = None
        self._request: Any = None

    def aim(self, handle: Any) -> bool:
        """Allocate two samples, unless the GPU says that it has no GPM: then returns False.

        A MIG device is read through its GPU.
        """
        self._target, self._instance = handle, 0
        if self._mig:
            self._target = self._call("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", handle)
            self._instance = int(self._call("nvmlDeviceGetGpuInstanceId", handle))
        if not self._call(_SUPPORT, self._target).isSupportedDevice:
            return False
        while len(self._samples) < 2:
            self._samples.append(self._call("nvmlGpmSampleAlloc"))
        try:
            self._request = self._nvml.c_nvmlGpmMetricsGet_t()
        except AttributeError:
            raise self._nvml.NVMLError(FUNCTION_NOT_FOUND) from None
        self._request.version = self._nvml.NVML_GPM_METRICS_GET_VERSION
        self._request.numMetrics = len(WANTED)
        for place, metric in enumerate(WANTED):
            self._request.metrics[place].metricId = metric.number
        self.linked = self._mig or self._has_nvlink()
        self.aimed = True
        return True

    def take(self) -> tuple[float, tuple[tuple[int, float], ...]] | None:
        """Take a sample. Returns the pair that it completes, ``None`` for the first: its length in
        seconds, and (return code, value) in the order of ``WANTED``."""
        begin, earlier, later = self._first, self._samples[0], self._samples[1]
        if self._mig:
            self._call("nvmlGpmMigSampleGet", self._target, self._instance, later)
        else:
            self._call("nvmlGpmSampleGet", self._target, later)
        self._first = time.monotonic()
        self._samples.reverse()
        if begin is None:
            return None
        self._request.sample1, self._request.sample2 = earlier, later
        self._call("nvmlGpmMetricsGet", self._request)
        answers = (self._request.metrics[place] for place in range(len(WANTED)))
        raw = tuple((int(answer.nvmlReturn), float(answer.value)) for answer in answers)
        return self._first - begin, raw

    def free(self) -> None:
        """Release driver memory; :meth:`aim` comes next. Never raises."""
        self.aimed = False
        self._first = None
        while self._samples:
            with suppress(self._nvml.NVMLError, GpuLost):
                self._call("nvmlGpmSampleFree", self._samples.pop())

    def _has_nvlink(self) -> bool:
        for link in range(self._nvml.NVML_NVLINK_MAX_LINKS):
            try:
                if self._call("nvmlDeviceGetNvLinkState", self._target, link):
                    return True
            except self._nvml.NVMLError as error:
                if error.value == FUNCTION_NOT_FOUND:
                    return True
                if error.value not in (NOT_SUPPORTED, INVALID_ARGUMENT):
                    raise
        return False

    def _call(self, function: str, *arguments: Any) -> Any:
        return self._call_by_name(function, getattr(self._nvml, function), *arguments)


class Gpm:
    """GPM of one GPU or MIG device; belongs to the thread of that GPU.

    ``call(name, function, *arguments)`` makes a call of the driver; ``tell(reasons)`` is told why
    there are no values of metrics from now on, ``None`` for those that there are;
    ``announce(kind, text)`` makes an event. Methods raise ``GpuLost``.
    """

    def __init__(
        self,
        nvml: Any,
        device: Device,
        peak: Peak,
        interval_s: float,
        call: Callable[..., Any],
        tell: Callable[[Mapping[str, str | None]], None],
        announce: Callable[[str, str], None],
    ) -> None:
        self._nvml = nvml
        self._device = device
        self._peak = peak
        self._by_itself = 0.75 * interval_s < SHORTEST_S
        """Whether samples come too fast to end a pair each."""
        self._call = call
        self._tell = tell
        self._announce = announce
        self._samples = GpmSamples(nvml, self._named, is_mig(device))
        self._handle: Any = None
        self._due = math.inf
        """When the next sample may be taken, in monotonic seconds."""
        self._sums: dict[str, tuple[float, float]] = {}
        """By metric: value times seconds, and seconds, of the pairs since :meth:`taken`."""
        self._newest = -math.inf
        self._last_call = ""
        self._told: Mapping[str, str | None] | None = None
        self._worked = False
        self._missed = False
        self._retry_s = RETRY_S
        self._well_since = math.inf

    @property
    def rest_s(self) -> float:
        """Seconds for which nothing needs to be done, if no sample of the recording comes."""
        return max(0.0, self._due - time.monotonic()) if self._by_itself else math.inf

    def open(self, handle: Any) -> None:
        """Begin the first pair of a GPU that was opened."""
        self._handle = handle
        self._told = None
        self._worked = False
        self._due = -math.inf
        self.step()

    def settle(self) -> None:
        """End the first pair, unless the first sample failed: then it is known what is there."""
        wait_s = self._due - time.monotonic()
        if wait_s <= SHORTEST_S:
            time.sleep(max(0.0, wait_s))
            self.step()

    def close(self) -> None:
        """Discard what was read and release driver memory; :meth:`open` comes next."""
        self._due = math.inf
        self._sums = {}
        self._samples.free()

    def taken(self) -> dict[str, float]:
        """Means over the pairs since the last call, by metric; empty if no pair is fresh.

        Pairs are weighted by their length.
        """
        sums, self._sums = self._sums, {}
        if time.monotonic() - self._newest > FRESH_S:
            return {}
        return {metric: total / seconds for metric, (total, seconds) in sums.items()}

    def step(self) -> None:
        """Take a sample if it is due; its values go to :meth:`taken`."""
        if time.monotonic() < self._due:
            return
        try:
            if not self._samples.aimed and not self._samples.aim(self._handle):
                self._refuse(not_offered(self._device))
                return
            pair = self._samples.take()
        except self._nvml.NVMLError as error:
            self._failed(error.value)
            return
        self._due = time.monotonic() + SHORTEST_S
        if pair is not None and pair[0] <= LONGEST_S + FRESH_S:
            self.take_in(*pair)

    def take_in(self, seconds: float, raw: tuple[tuple[int, float], ...]) -> None:
        """Add a pair of that length, given as (return code, value) in the order of ``WANTED``."""
        codes = [code for code, _ in raw]
        if all(codes):
            self._failed(codes[0])
            return
        readings = with_bandwidth(
            {
                metric.metric: reading_of(metric, code, value, is_mig(self._device))
                for metric, (code, value) in zip(WANTED, raw, strict=True)
            },
            self._peak,
            no_bandwidth(self._device, self._peak),
        )
        if not self._samples.linked:
            readings |= dict.fromkeys(NVLINK, NO_NVLINK)
        now = time.monotonic()
        if now - self._newest > FRESH_S:
            self._sums = {}
        self._newest = now
        for name, reading in readings.items():
            if reading.value is not None:
                total, length = self._sums.get(name, (0.0, 0.0))
                self._sums[name] = (total + reading.value * seconds, length + seconds)
        reasons = {name: reading.reason for name, reading in readings.items()}
        if self._told != reasons:
            self._told = reasons
            self._tell(reasons)
        self._worked = True
        self._well_since = min(self._well_since, now)
        if now - self._well_since > CALM_S:
            self._retry_s = RETRY_S
        if self._missed:
            self._missed = False
            self._announce("gpm-back", "GPM gives values again")

    def _failed(self, code: int) -> None:
        """Handle a failed call, or a pair in which every metric failed."""
        if code in LOST:
            raise GpuLost(code)
        name, aimed = self._last_call, self._samples.aimed
        reason = f"{name}: {describe(code).reason}"
        if code in PERMANENT and not self._worked:
            if name == _SUPPORT and code == NOT_SUPPORTED:
                reason = not_offered(self._device)
            elif aimed:
                reason += f" (tried on the GPU, whose {_SUPPORT} says yes: seen on virtual GPUs)"
            self._refuse(reason)
            return
        self._samples.free()
        self._due = time.monotonic() + self._retry_s
        self._retry_s = min(2 * self._retry_s, RETRY_LONGEST_S)
        self._well_since = math.inf
        self._unavailable(reason)
        if self._worked and not self._missed:
            self._missed = True
            hint = (
                "record from outside containers, where it may be taken back, or ask the "
                "administrator"
                if code == NO_PERMISSION
                else describe(code).hint
            )
            text = f"GPM gives no values: {reason}; {hint} (it is tried again by itself)"
            self._announce("gpm-lost", text)

    def _refuse(self, reason: str) -> None:
        """Turn GPM off until the GPU is opened again."""
        self.close()
        self._unavailable(reason)

    def _unavailable(self, reason: str) -> None:
        self._told = None
        self._tell(dict.fromkeys(METRICS, reason))

    def _named(self, name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        self._last_call = name
        return self._call(name, function, *arguments)
