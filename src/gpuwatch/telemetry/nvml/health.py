"""GPU health: clock throttling, memory errors, the driver's mean power.

Bits and their meanings are those of ``nvmlClocksEventReason*`` in NVIDIA's ``nvml.h``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gpuwatch.telemetry.base import Value
from gpuwatch.telemetry.nvml.errors import UNREADABLE
from gpuwatch.telemetry.nvml.fields import Numbers, NvmlCall, Reading, field_way

QUIET_S = 5.0
"""Minimum seconds between two events about one GPU's clocks."""

ECC_S = 5.0
"""Interval between two reads of the memory error counts, in seconds."""

_POWER_CAP, _HW_SLOWDOWN, _SW_THERMAL, _HW_THERMAL, _POWER_BRAKE = 0x4, 0x8, 0x20, 0x40, 0x80

HARMFUL = {
    _POWER_CAP: "software power cap",
    _HW_SLOWDOWN: "hardware slowdown",
    0x10: "sync boost",
    _SW_THERMAL: "software thermal slowdown",
    _HW_THERMAL: "hardware thermal slowdown",
    _POWER_BRAKE: "hardware power brake",
    0x200: "board limit",
    0x400: "reliability limit",
}
"""Reasons that hold the clocks down against the user's will. Excludes an idle GPU (1) and clocks
that the user set (2, 0x100)."""
_BITS = 20
"""More than there are reasons: a higher bit is set in what drivers give for "unknown"."""

_CORRECTED, _UNCORRECTED, _VOLATILE = 0, 1, 0


def by_power(reasons: int) -> bool:
    """Whether power holds the clocks down.

    A hardware slowdown without a more precise bit means the power brake or too high a draw; with
    the thermal bit it means heat.
    """
    slowdown = reasons & _HW_SLOWDOWN and not reasons & _HW_THERMAL
    return bool(reasons & (_POWER_CAP | _POWER_BRAKE) or slowdown)


def by_heat(reasons: int) -> bool:
    """Whether temperature holds the clocks down."""
    return bool(reasons & (_SW_THERMAL | _HW_THERMAL))


class ClockWatch:
    """Reports changes in the set of harmful reasons, at most once in ``QUIET_S`` seconds."""

    def __init__(self) -> None:
        self._told = self._seen = 0
        self._told_at = self._changed_at = -math.inf

    def __call__(self, values: Sequence[Value], now: float) -> list[tuple[str, str]]:
        """Events as (kind, text); ``values[2]`` is the bitmask, ``now`` is monotonic seconds."""
        reasons = int(values[2] or 0) & sum(HARMFUL)
        if reasons != self._seen:
            self._seen, self._changed_at = reasons, now
        if reasons == self._told or now - self._told_at < QUIET_S:
            return []
        self._told, self._told_at = reasons, now
        named = ", ".join(name for bit, name in HARMFUL.items() if reasons & bit)
        ago = round(now - self._changed_at)  # events are in the order of their times
        since = f" ({'began' if named else 'ended'} {ago} s ago)" if ago else ""
        text = f"clocks are held down{since}: {named}"
        text = text if named else f"clocks are no longer held down{since}"
        return [("throttle", text)]


class ErrorWatch:
    """Reports new memory errors that could not be corrected."""

    def __init__(self) -> None:
        self._known: int | None = None

    def __call__(self, values: Sequence[Value], now: float) -> list[tuple[str, str]]:
        """Events as (kind, text). ``values[1]`` counts the uncorrected errors."""
        if values[1] is None:
            return []
        count = int(values[1])
        before, self._known = self._known, count
        if before is None or count <= before:
            return []
        return [
            (
                "ecc",
                f"memory errors that could not be corrected: {count - before} more, {count} since "
                "the driver was loaded; results may be wrong, see nvidia-smi -q -d ECC",
            )
        ]


def _reasons(function: str) -> NvmlCall:
    def read(nvml: Any, handle: Any) -> Numbers:
        reasons = int(getattr(nvml, function)(handle))
        if reasons >> _BITS:
            raise nvml.NVMLError(UNREADABLE)
        return int(by_power(reasons)), int(by_heat(reasons)), reasons

    return NvmlCall(f"NVML {function}", read)


def _errors(nvml: Any, handle: Any) -> Numbers:
    return (
        int(nvml.nvmlDeviceGetTotalEccErrors(handle, _CORRECTED, _VOLATILE)),
        int(nvml.nvmlDeviceGetTotalEccErrors(handle, _UNCORRECTED, _VOLATILE)),
    )


HEALTH = (
    Reading(
        ("hw.gpu.power.average",),
        (field_way("NVML nvmlDeviceGetFieldValues 185 (average power)", 185, 1000),),
        slow=True,
    ),
    Reading(
        ("hw.gpu.throttle.power", "hw.gpu.throttle.thermal"),
        (
            _reasons("nvmlDeviceGetCurrentClocksEventReasons"),
            _reasons("nvmlDeviceGetCurrentClocksThrottleReasons"),
        ),
        slow=True,
        watch=ClockWatch,
    ),
    Reading(
        ("hw.gpu.ecc.corrected", "hw.gpu.ecc.uncorrected"),
        (NvmlCall("NVML nvmlDeviceGetTotalEccErrors (volatile; only with ECC on)", _errors),),
        slow=True,
        every_s=ECC_S,
        watch=ErrorWatch,
    ),
)
"""Readings of a GPU's health."""
