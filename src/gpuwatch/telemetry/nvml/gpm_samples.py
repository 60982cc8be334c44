"""GPM's calls: two samples of a GPU, and the metrics between them.

Every method raises ``NVMLError`` like the binding unless stated otherwise.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.telemetry.nvml.errors import FUNCTION_NOT_FOUND, INVALID_ARGUMENT, NOT_SUPPORTED
from gpuwatch.telemetry.nvml.gpm_metrics import WANTED

Watched = Callable[..., Any]
"""Calls ``function(*arguments)`` for ``watched(name, function, *arguments)``."""


class GpmUnsupported(Exception):
    """``nvmlGpmQueryDeviceSupport`` says that the GPU has no GPM."""


@dataclass(frozen=True)
class Pair:
    """The metrics between two samples: (return code, value) in the order of ``WANTED``."""

    begin: float
    end: float
    """Monotonic seconds."""
    raw: tuple[tuple[int, float], ...]


class GpmSamples:
    """The samples of one GPU or GPU instance; for use by one thread.

    Two sample buffers are used in turn: the second sample of a pair is the first of the next.
    """

    def __init__(self, nvml: Any, watched: Watched, mig: bool) -> None:
        self.linked = True
        """Whether an NVLink of the GPU is up; also where nobody can say, or of a MIG device."""
        self._nvml = nvml
        self._watched = watched
        self._mig = mig
        self._target: Any = None
        self._instance = 0
        self._samples: list[Any] = []
        self._first: float | None = None
        self._request: Any = None

    @property
    def aimed(self) -> bool:
        """Whether :meth:`take` may be called."""
        return self._target is not None

    @property
    def since(self) -> float | None:
        """When the first sample of the next pair was taken, in monotonic seconds."""
        return self._first

    @property
    def held(self) -> bool:
        """Whether driver memory is held."""
        return bool(self._samples)

    def aim(self, handle: Any) -> None:
        """Check for GPM and allocate two samples; a MIG device is read through its GPU.

        Raises ``GpmUnsupported`` if the GPU has no GPM.
        """
        target, instance = handle, 0
        if self._mig:
            target = self._call("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", handle)
            instance = int(self._call("nvmlDeviceGetGpuInstanceId", handle))
        if not self._call("nvmlGpmQueryDeviceSupport", target).isSupportedDevice:
            raise GpmUnsupported
        while len(self._samples) < 2:
            self._samples.append(self._call("nvmlGpmSampleAlloc"))
        self._request = self._new_request()
        self.linked = self._mig or self._has_nvlink(target)
        self._instance = instance
        self._target = target

    def take(self) -> Pair | None:
        """Take a sample; returns the pair that it completes, or ``None`` for the first."""
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
        return Pair(begin, self._first, raw)

    def drop(self) -> None:
        """Make the next sample the first of a pair."""
        self._first = None

    def free(self) -> None:
        """Release driver memory; :meth:`aim` comes next. Never raises."""
        self.drop()
        self._target = None
        while self._samples:
            try:
                self._call("nvmlGpmSampleFree", self._samples.pop())
            except self._nvml.NVMLError:
                continue

    def _has_nvlink(self, target: Any) -> bool:
        for link in range(self._nvml.NVML_NVLINK_MAX_LINKS):
            try:
                if self._call("nvmlDeviceGetNvLinkState", target, link):
                    return True
            except self._nvml.NVMLError as error:
                if error.value == FUNCTION_NOT_FOUND:
                    return True
                if error.value not in (NOT_SUPPORTED, INVALID_ARGUMENT):
                    raise
        return False

    def _new_request(self) -> Any:
        try:
            request = self._nvml.c_nvmlGpmMetricsGet_t()
        except AttributeError:
            raise self._nvml.NVMLError(FUNCTION_NOT_FOUND) from None
        request.version = self._nvml.NVML_GPM_METRICS_GET_VERSION
        request.numMetrics = len(WANTED)
        for place, metric in enumerate(WANTED):
            request.metrics[place].metricId = metric.number
        return request

    def _call(self, function: str, *arguments: Any) -> Any:
        return self._watched(function, getattr(self._nvml, function), *arguments)
