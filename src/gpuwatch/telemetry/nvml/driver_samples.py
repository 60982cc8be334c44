"""The samples that the driver takes by itself between ours, with ``nvmlDeviceGetSamples``.

A single reading shows one moment, so a load whose period is that of the readings looks constant.
The mean of the driver's samples since the last reading does not.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gpuwatch.core.metrics import checked
from gpuwatch.telemetry.nvml.errors import NOT_FOUND
from gpuwatch.telemetry.nvml.fields import Numbers, NvmlCall, Reading, number_of

FUNCTION = "nvmlDeviceGetSamples"
_POWER, _GPU_UTILIZATION, _MEMORY_UTILIZATION = 0, 1, 2
"""``nvmlSamplingType_t``."""
_KINDS = {
    ("hw.gpu.utilization", "hw.gpu.memory.busy"): (_GPU_UTILIZATION, _MEMORY_UTILIZATION),
    ("hw.gpu.power",): (_POWER,),
}
"""By the metrics of the reading that they improve."""
_PER_UNIT = {_POWER: 1000, _GPU_UTILIZATION: 100, _MEMORY_UTILIZATION: 100}
"""The driver's units (milliwatts, per cent) in one of ours."""
STALE_S = 3.0
"""Seconds without a new sample after which the driver is taken to have stopped."""

LONGEST_APART_S = 1.0
"""Products take a utilization sample every sixth of a second to a second (``nvml.h``)."""


class DriverSamples:
    """One kind of samples of one GPU.

    Time stamps are microseconds, and compared with each other only: ``nvml.h`` does not say of
    which clock they are. A call takes milliseconds on a data-centre card (docs/validation.md), so
    there is none before the driver can have a new sample.
    """

    def __init__(self, metric: str, kind: int) -> None:
        self._metric = metric
        self._kind = kind
        self._newest = 0
        """Time stamp of the newest sample that was read; 0: none was."""
        self._mean = math.nan
        self._at = -math.inf
        """When a new sample was last found, in monotonic seconds."""
        self._apart = 0.0
        """Seconds between two samples of the driver."""

    def read(self, nvml: Any, handle: Any) -> float:
        """Mean of the samples since the last read; of the first read, the newest sample.

        Where the driver has no new one, the last mean again. A sample that cannot be stands for
        all. Raises ``NVMLError``, also after
        ``STALE_S`` seconds without a new sample.
        """
        if time.monotonic() - self._at < self._apart:
            return self._mean
        try:
            kind, found = nvml.nvmlDeviceGetSamples(handle, self._kind, self._newest)
        except nvml.NVMLError as error:
            if error.value != NOT_FOUND:
                raise
            kind, found = 0, ()
        new = [sample for sample in found if sample.timeStamp > self._newest]
        if new:
            new.sort(key=lambda sample: sample.timeStamp)
            counted = new if self._newest else new[-1:]
            if self._newest:
                apart_s = (new[-1].timeStamp - self._newest) / len(new) / 1e6
                self._apart = min(apart_s, LONGEST_APART_S)
            self._newest, self._at = new[-1].timeStamp, time.monotonic()
            per_unit = _PER_UNIT[self._kind]
            values = [number_of(sample.sampleValue, kind) / per_unit for sample in counted]
            wrong = (value for value in values if checked(self._metric, value)[0] is None)
            self._mean = next(wrong, sum(values) / len(values))
        elif time.monotonic() - self._at > STALE_S:
            raise nvml.NVMLError(NOT_FOUND)
        return self._mean


def with_driver_samples(readings: Sequence[Reading]) -> tuple[Reading, ...]:
    """``readings`` for one GPU: those of power and utilization by the driver's samples first."""
    return tuple(
        replace(reading, ways=(_way(reading.metrics), *reading.ways))
        if reading.metrics in _KINDS
        else reading
        for reading in readings
    )


def _way(metrics: tuple[str, ...]) -> NvmlCall:
    samples = [
        DriverSamples(metric, kind) for metric, kind in zip(metrics, _KINDS[metrics], strict=True)
    ]

    def read(nvml: Any, handle: Any) -> Numbers:
        return tuple(each.read(nvml, handle) for each in samples)

    return NvmlCall(f"NVML {FUNCTION} (mean since the last sample)", read, gives_way=True)
