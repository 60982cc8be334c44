"""What every telemetry source looks like to the recorder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Protocol

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import Method

Value = float | int | None
"""One sampled number in its metric's unit, or ``None`` when it could not be had."""


@dataclass(frozen=True)
class Device:
    """Something whose telemetry is sampled: ``gpu0``, ``cpu``, ``workload``."""

    id: str
    kind: str
    name: str
    uuid: str | None = None
    attributes: Mapping[str, str | int | float | bool | None] = field(default_factory=dict)
    """Facts that do not change: memory size, core count, driver version (SI base units)."""


@dataclass(frozen=True)
class Channel:
    """One number that a source samples, or the reason why it cannot."""

    device: str
    metric: str
    method: Method
    source: str
    """Who gives the number, as precisely as possible: ``NVML nvmlDeviceGetPowerUsage``."""
    reason: str | None = None
    """Why the number is unavailable; ``None`` while it is available."""


@dataclass(frozen=True)
class Change:
    """A channel became available or unavailable during the run."""

    channel: Channel
    """The channel as it is from now on (same device and metric as before)."""


@dataclass(frozen=True)
class Event:
    """Something that happened at a moment: ``gpu-lost``, ``gpu-back``, ``interval-missed``."""

    kind: str
    text: str
    device: str | None = None


class Source(Protocol):
    """A set of channels sampled together. No method raises for what hardware or drivers do."""

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices, fixed for the life of the source."""
        ...

    @property
    def channels(self) -> tuple[Channel, ...]:
        """The channels as they were at the start; their order is that of :meth:`sample`."""
        ...

    def sample(self) -> Sequence[Value]:
        """Read every channel once, in order; slow readings come from a thread of the source."""
        ...

    def drain(self) -> tuple[Sequence[Change], Sequence[Event]]:
        """Changes and events since the last call."""
        ...

    def close(self) -> None:
        """Release threads and handles. Idempotent."""
        ...
