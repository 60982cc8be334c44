"""The rows that a session file gives, frozen.

Times ``t`` are nanoseconds since the session's start; values are in their metric's unit; ``None``
is unknown.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import Method
from gpuwatch.core.models import JSON

NOT_KNOWN = -1
"""In the column ``used`` of ``device``."""

MPS_SERVER = "mps-server"
"""In the name of NVIDIA's MPS, which runs the kernels of its clients, whose processes NVML does not
list."""

Query = Callable[[str, Sequence[object]], list[tuple[JSON, ...]]]
"""Runs one statement and gives its rows."""


def columns_of(channels: Sequence[int]) -> str:
    """The columns of these channels in ``tick`` and ``tier``, for a statement."""
    return "".join(f", c{int(channel)}" for channel in channels)


@dataclass(frozen=True)
class DeviceRow:
    id: str
    kind: str
    """``gpu``, ``cpu`` or ``workload``."""
    name: str
    uuid: str | None
    used: bool | None
    """Whether the run used this device; without a workload every device counts as used.
    ``None``: that is not known (yet), then of no GPU."""
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
class StepBucket:
    """The step lines of ten seconds, all of the warm-up or all not; sums, as far as known."""

    n: int
    """Of its last line."""
    lines: int
    t: int
    """When its last step ended."""
    start: int
    """When its first step began."""
    step: int
    count: int
    warmup: bool
    partial: int
    """Steps with a smaller batch."""
    samples: float | None
    taken: float
    """Seconds of all its steps; 0 where ``times`` is ``None``."""
    times: array[float] | None
    """Seconds of the full steps in their order; or, with ``weights``, means of times that hardly
    differ, the smallest first. ``None``: not every line has times that steps can take. As the
    file has them: of one from elsewhere they may be anything."""
    weights: array[int] | None
    """How many steps each of ``times`` is the mean of."""
    loss: tuple[float, ...] | None
    """The first and the last."""
    phases: Mapping[str, float]
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
    """A process that held a context on a GPU, as last seen."""

    t: int
    device: str
    pid: int
    name: str | None
    owned: bool | None
    """It belongs to the recorded workload; ``None``: that cannot be told."""
    bytes: int | None
    running: bool
    kind: str | None = None
    """``compute``, ``graphics`` or ``compute, graphics``."""
    share: float | None = None
    """Share of the GPU's time, 0 to 1, over about the last second."""
    reason: str | None = None
    """Why the bytes, the share or the name are not known."""


@dataclass(frozen=True)
class ProcessRow:
    """A process on a watched GPU or of the workload's tree, as last seen."""

    t: int
    pid: int
    started: int | None
    """Negative: before the session's start."""
    name: str | None
    user: str | None
    place: str | None
    """The container or job that it runs in: ``docker 3f2a9c1b4d5e``."""
    owned: bool | None
    """It belongs to the workload; ``None``: there is none, or it cannot be told."""
    running: bool
    reason: str | None
    """Why something of it is not known."""
    cores: float | None
    """CPU seconds per second of the process itself."""
    resident: int | None
    """Bytes."""


@dataclass(frozen=True)
class Processes:
    """What ran at one moment, and what ended in the minute before."""

    all: tuple[ProcessRow, ...] = ()
    on_gpus: tuple[GpuProcessRow, ...] = ()


@dataclass(frozen=True)
class GpuPresence:
    """How long a process that is not the workload's was on a GPU."""

    device: str
    pid: int
    name: str | None
    user: str | None
    place: str | None
    kind: str | None
    bytes: int | None
    """The most it held."""
    share: float | None
    """The largest share of the GPU's time."""
    ns: int
