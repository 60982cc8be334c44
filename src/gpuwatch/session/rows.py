"""Frozen row types of a session file.

Times ``t`` are nanoseconds since the session's start; values are in their metric's unit; ``None``
is unknown.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import Method
from gpuwatch.core.models import JSON

SAMPLED = "sampled steps"
"""In the column ``phases``: of how many steps they are, where not of all."""
PHASES = ("data", "copy", "forward", "backward", "optimizer")
"""The phases of gpuwatch's own workloads, in the order of a step; a program's own names follow."""
NOT_KNOWN = -1
"""Unknown, in the column ``used`` of ``device``."""

MPS_SERVER = "mps-server"
"""Part of the name of NVIDIA's MPS server. It runs the kernels of its clients, which NVML does not
list."""

Query = Callable[[str, Sequence[object]], list[tuple[JSON, ...]]]
"""Runs one statement and returns its rows."""


@dataclass(frozen=True)
class DeviceRow:
    id: str
    kind: str
    """``gpu``, ``cpu`` or ``workload``."""
    name: str
    uuid: str | None
    used: bool | None
    """Whether the run used this device; without a workload every device counts as used.
    ``None``: not known (yet), and then for no GPU of the session."""
    attributes: Mapping[str, JSON]


@dataclass(frozen=True)
class ChannelRow:
    """A sampled quantity, with its state after all changes."""

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
    """The method of the samples so far, even if the channel is unavailable now."""


StepPlace = tuple[bool, int]
"""The number of a step, behind whether it comes after the warm-up, which has its own count."""


def step_words(place: StepPlace) -> str:
    """``step 1,000``, ``warm-up step 5``."""
    return f"{'' if place[0] else 'warm-up '}step {place[1]:,}"


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
    evaluation: float = 0.0
    """Seconds of evaluations until the training went on; not in ``seconds``."""
    sampled: float | None = None
    """Of how many of its steps ``phases`` are, drawn at random; ``None``: of all."""


@dataclass(frozen=True)
class StepBucket:
    """The step lines of ten seconds, all in the warm-up or all after it; sums, if known."""

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
    """Seconds of all its steps."""
    times: array[float]
    """Seconds of the full steps in order, shape (steps,); each is above 0."""
    loss: tuple[float, ...] | None
    """The first and the last loss."""
    phases: Mapping[str, float]
    flop: float | None
    bytes: float | None
    evaluation: float = 0.0
    sampled: float | None = None
    """Both as in :class:`StepRow`."""


@dataclass(frozen=True)
class RankRow:
    """A process of a run of several, such as ``torchrun`` starts."""

    rank: int
    local_rank: int | None = None
    world_size: int | None = None
    pid: int | None = None
    """As the process itself sees it."""
    device: str | None = None
    """The UUID of the GPU that it uses, or ``cpu``."""
    cpu_nodes: tuple[int, ...] = ()
    """NUMA nodes of the CPUs that it may use; empty: unknown."""
    gpu_node: int | None = None
    """NUMA node of its GPU."""
    sharded: bool = False
    """Whether its parameters are sharded, so that it waits for other ranks in ``forward``, too."""


@dataclass(frozen=True)
class RankStepRow:
    """The steps of one rank in about two seconds; sums, if known."""

    n: int
    t: int
    """When the last of them ended."""
    rank: int
    step: int
    """Number of the last one."""
    count: int
    warmup: bool
    samples: float | None
    tokens: float | None
    seconds: float | None
    phases: Mapping[str, float]
    flop: float | None
    sampled: float | None = None
    """As in :class:`StepRow`."""


class _Steps(Protocol):
    @property
    def count(self) -> int: ...
    @property
    def sampled(self) -> float | None: ...
    @property
    def phases(self) -> Mapping[str, float]: ...


def with_phases(rows: Iterable[_Steps]) -> float:
    """Of how many steps the phases of the rows are."""
    return sum(row.count if row.sampled is None else row.sampled for row in rows)


def mean_phases(rows: Iterable[_Steps]) -> dict[str, float]:
    """Seconds of each phase per step.

    Steps that were drawn at random stand for all since the drawn ones before: of slow steps more
    are drawn, as the hook costs them less.
    """
    totals: dict[str, float] = {}
    steps = since = 0
    for row in rows:
        since += row.count
        if drawn := with_phases([row]):
            for name, seconds in row.phases.items():
                totals[name] = totals.get(name, 0.0) + seconds * since / drawn
            steps, since = steps + since, 0
    return {name: total / steps for name, total in totals.items()}


@dataclass(frozen=True)
class LogRow:
    n: int
    t: int
    stream: str
    """``stdout`` or ``stderr``."""
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
    """Whether it belongs to the recorded workload; ``None``: unknown."""
    bytes: int | None
    running: bool
    kind: str | None = None
    """``compute``, ``graphics`` or ``compute, graphics``."""
    share: float | None = None
    """Share of the GPU's time in which its kernels ran, 0 to 1, over about the last second."""
    memory_share: float | None = None
    """Share of the same time in which it read or wrote device memory."""
    reason: str | None = None
    """Why the bytes, a share or the name are unknown."""


@dataclass(frozen=True)
class ProcessRow:
    """A process on a watched GPU or in the workload's tree, as last seen."""

    t: int
    pid: int
    started: int | None
    """Session time in nanoseconds; negative: before the session's start."""
    name: str | None
    user: str | None
    place: str | None
    """Its container or job: ``docker 3f2a9c1b4d5e``."""
    owned: bool | None
    """Whether it belongs to the workload; ``None``: unknown, or there is no workload."""
    running: bool
    reason: str | None
    """Why something about it is unknown."""
    cores: float | None
    """CPU seconds per second, without its children."""
    resident: int | None
    """Resident memory in bytes."""


@dataclass(frozen=True)
class Processes:
    """The processes at one moment, and those that ended in the minute before."""

    all: tuple[ProcessRow, ...] = ()
    on_gpus: tuple[GpuProcessRow, ...] = ()


@dataclass(frozen=True)
class GpuPresence:
    """How long a foreign process was on a GPU."""

    device: str
    pid: int
    name: str | None
    user: str | None
    place: str | None
    kind: str | None
    bytes: int | None
    """The most memory that it held."""
    share: float | None
    """The largest share of the GPU's time."""
    ns: int
