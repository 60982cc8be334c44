"""The rows that a session file gives, frozen.

Times ``t`` are nanoseconds since the session's start; values are in their metric's unit; ``None``
is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpuwatch.metrics import Method
from gpuwatch.models import JSON


@dataclass(frozen=True)
class DeviceRow:
    id: str
    kind: str
    """``gpu``, ``cpu`` or ``workload``."""
    name: str
    uuid: str | None
    used: bool
    """Whether the run used this device; without a workload every device counts as used."""
    attributes: Mapping[str, JSON]


@dataclass(frozen=True)
class ChannelRow:
    """One sampled number as it stands now, after all changes."""

    id: int
    device: str
    metric: str
    unit: str
    kind: str
    """``gauge`` or ``counter``."""
    method: Method
    source: str
    reason: str | None
    sampled_as: Method
    """The method of what was sampled so far, even if the channel is unavailable by now."""


@dataclass(frozen=True)
class StepRow:
    """One step line: a step, or a batch of steps."""

    n: int
    t: int
    step: int
    count: int
    warmup: bool
    samples: float | None
    seconds: tuple[float, ...] | None
    loss: tuple[float, ...] | None
    acc1: tuple[float, ...] | None
    acc5: tuple[float, ...] | None
    phases: Mapping[str, float]
    partial: tuple[int, ...]
    flop: float | None
    bytes: float | None


@dataclass(frozen=True)
class LogRow:
    n: int
    t: int
    stream: str
    text: str


@dataclass(frozen=True)
class EventRow:
    n: int
    t: int
    kind: str
    device: str | None
    text: str


@dataclass(frozen=True)
class GpuProcessRow:
    """A process that held memory on a GPU, as last seen."""

    t: int
    device: str
    pid: int
    name: str | None
    owned: bool
    """It belongs to the recorded workload."""
    bytes: int | None
    running: bool
