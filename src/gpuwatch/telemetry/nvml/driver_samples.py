"""The samples of power that the driver takes by itself between ours, with ``nvmlDeviceGetSamples``.

A single reading shows one moment, so a load whose period is that of the readings looks constant.
The mean of the driver's samples since the last reading does not. Its samples of utilization are
left alone: a call takes milliseconds of processor time, and what ``nvmlDeviceGetUtilizationRates``
gives for microseconds is a mean already.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from gpuwatch.core.metrics import checked
from gpuwatch.telemetry.nvml.errors import NOT_FOUND
from gpuwatch.telemetry.nvml.fields import Numbers, NvmlCall, Reading, field_way, number_of

FUNCTION = "nvmlDeviceGetSamples"
_METRIC, _RUNNING_MEAN = "hw.gpu.power", "hw.gpu.power.average"
_POWER = 0
"""``nvmlSamplingType_t``."""
_MILLIWATTS = 1000
STALE_S = 3.0
"""Seconds without a new sample after which the driver is taken to have stopped."""

RUNNING_MEAN_S = 1.0
"""Window of the driver's running mean (Ampere and later)."""
LONGEST_APART_S = 1.0
"""The driver's samples are never further apart, but for a pause."""


class DriverSamples:
    """The samples of power of one GPU.

    Time stamps are microseconds, and compared with each other only: ``nvml.h`` does not say of
    which clock they are. A call takes a third of a millisecond on a data-centre card, so there is
    none before the driver can have a new sample.
    """

    def __init__(self) -> None:
        self._newest = 0
        """Time stamp of the newest sample that was read; 0: none was."""
        self._mean = math.nan
        self._at = -math.inf
        """When a new sample was last found, in monotonic seconds."""
        self._apart = 0.0
        """Seconds between two samples of the driver."""

    def read(self, nvml: Any, handle: Any) -> Numbers:
        """Mean of the samples since the last read, in watts; of the first read, the newest sample.

        Where the driver has no new one, the last mean again. A sample that cannot be stands for
        all. Raises ``NVMLError``, also after
        ``STALE_S`` seconds without a new sample.
        """
        if time.monotonic() - self._at < self._apart:
            return (self._mean,)
        try:
            kind, found = nvml.nvmlDeviceGetSamples(handle, _POWER, self._newest)
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
            values = [number_of(sample.sampleValue, kind) / _MILLIWATTS for sample in counted]
            wrong = (value for value in values if checked(_METRIC, value)[0] is None)
            self._mean = next(wrong, sum(values) / len(values))
        elif time.monotonic() - self._at > STALE_S:
            raise nvml.NVMLError(NOT_FOUND)
        return (self._mean,)


def power_over(interval_s: float | None, readings: Iterable[Reading]) -> tuple[Reading, ...]:
    """``readings`` for one GPU that is read every ``interval_s`` seconds: power is its mean since
    the last reading by the driver's samples, or from a second on by its running mean, whose call
    takes microseconds, and which then stands there alone."""
    way = field_way("NVML field 185 (average power of a second)", 185, _MILLIWATTS)
    running = interval_s is not None and interval_s >= RUNNING_MEAN_S
    if not running:
        source = f"NVML {FUNCTION} (mean since the last sample)"
        way = NvmlCall(source, DriverSamples().read, gives_way=True)
    return tuple(
        replace(reading, ways=(way, *reading.ways)) if reading.metrics == (_METRIC,) else reading
        for reading in readings
        if not (running and reading.metrics == (_RUNNING_MEAN,))
    )
