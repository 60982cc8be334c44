"""The interface between telemetry sources and the recorder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Protocol

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import IMPOSSIBLE, Method

Value = float | int | None
"""One sampled number in its metric's unit; ``None`` if it is unavailable."""


@dataclass(frozen=True)
class Device:
    """A sampled device: ``gpu0``, ``cpu``, ``workload``."""

    id: str
    kind: str
    name: str
    uuid: str | None = None
    attributes: Mapping[str, str | int | float | bool | None] = field(default_factory=dict)
    """Constant facts: memory size, core count, driver version (SI base units)."""


@dataclass(frozen=True)
class Channel:
    """One number that a source samples, or the reason why it cannot."""

    device: str
    metric: str
    method: Method
    source: str
    """Origin of the number, as precise as possible: ``NVML nvmlDeviceGetPowerUsage``."""
    reason: str | None = None
    """Why the number is unavailable; ``None`` while it is available."""


def measured(device: str, metric: str, source: str, reason: str | None = None) -> Channel:
    """A channel that is measured, or unavailable for a reason."""
    method = Method.MEASURED if reason is None else Method.UNAVAILABLE
    return Channel(device, metric, method, source, reason)


def same(before: Channel, now: Channel) -> bool:
    """Whether ``now`` is no news after ``before``; another impossible value is none."""
    reasons = before.reason or "", now.reason or ""
    if before.source == now.source and all(reason.endswith(IMPOSSIBLE) for reason in reasons):
        return True
    return before == now


@dataclass(frozen=True)
class Change:
    """A channel became available or unavailable during the run."""

    channel: Channel
    """The channel from now on (same device and metric)."""


@dataclass(frozen=True)
class Event:
    """Something that happened at one moment: ``gpu-lost``, ``gpu-back``, ``interval-missed``."""

    kind: str
    text: str
    device: str | None = None


class Source(Protocol):
    """A set of channels sampled together. Failures of hardware or drivers never raise."""

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices, fixed for the life of the source."""

    @property
    def channels(self) -> tuple[Channel, ...]:
        """The channels at the start, in the order of :meth:`sample`."""

    def sample(self) -> Sequence[Value]:
        """Read every channel once, in order; slow reads happen on a thread of the source."""

    def drain(self) -> tuple[Sequence[Change], Sequence[Event]]:
        """Changes and events since the last call."""

    def close(self) -> None:
        """Release threads and handles. Idempotent."""
