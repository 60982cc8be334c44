"""What goes with a slow rank: phases and sampled metrics that differ for it from the other ranks.

Nothing here is said to be a cause: two things that differ for the same rank go together, no more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median

from gpuwatch.analysis.ranks.own_time import WAITING
from gpuwatch.core import units
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.text import clean

PHASE_SHARE = 0.3
"""Share of the excess from which on a phase is named."""
RELATIVE = 0.02
SHARE = 0.05
"""Difference of a share of the time (5 points)."""
_DEGREES = 5.0
_TRAFFIC = 0.2
_CORES = 0.2
_LEAST_CORES = 0.1
_LONGEST = 40
"""Characters of a phase's name."""

DATA_WAIT = "data wait"
_PHASES = {"data": DATA_WAIT, "other": "time between the phases"}


@dataclass(frozen=True)
class Measured:
    """What is known of one rank, over the stretch that is judged."""

    phases: Mapping[str, float]
    """Mean seconds of a step by phase."""
    device: str | None = None
    """Its GPU; ``None``: none, or unknown."""
    metrics: Mapping[str, float] | None = None
    """Means of that GPU's metrics."""
    cores: float | None = None
    """CPU seconds per second of its process."""
    neighbours: tuple[str, ...] = ()
    """Processes of others on its GPU."""
    cpu_nodes: tuple[int, ...] = ()
    """NUMA nodes of its CPUs; empty: unknown."""
    gpu_node: int | None = None


@dataclass(frozen=True)
class Reason:
    """Something that differs for a rank."""

    name: str
    """``data wait``, ``SM clock``."""
    text: str
    """With the rank's value and the others'."""
    phase: str | None = None
    metric: str | None = None
    """In the catalogue; ``None`` for a phase, the cores of a process, or a shared GPU."""


@dataclass(frozen=True)
class _Check:
    metric: str
    name: str
    sign: int
    """1: a slow rank has more of it; -1: less."""
    enough: Callable[[float, float], bool]
    """Whether a value and that of the others are far apart."""
    format: Callable[[float], str]


def _apart(share: float) -> Callable[[float, float], bool]:
    return lambda value, others: others > 0 and abs(value / others - 1) >= share


def _by(least: float) -> Callable[[float, float], bool]:
    return lambda value, others: abs(value - others) >= least


def _plain(unit: str) -> Callable[[float], str]:
    return lambda value: units.quantity(value, unit)


def _of_the_time(value: float) -> str:
    return f"{units.percent(min(1.0, value))} of the time"


_CHECKS = (
    _Check("hw.gpu.clock.sm", "SM clock", -1, _apart(RELATIVE), _plain("Hz")),
    _Check("hw.gpu.clock.memory", "memory clock", -1, _apart(RELATIVE), _plain("Hz")),
    _Check("hw.gpu.throttle.thermal", "throttled by temperature", 1, _by(SHARE), _of_the_time),
    _Check("hw.gpu.throttle.power", "throttled by power", 1, _by(SHARE), _of_the_time),
    _Check("hw.gpu.temperature", "temperature", 1, _by(_DEGREES), _plain("Cel")),
    _Check("hw.gpu.pcie.generation", "PCIe generation", -1, _by(0.5), _plain("{generation}")),
    _Check("hw.gpu.pcie.width", "PCIe width", -1, _by(0.5), _plain("{lane}")),
    _Check("hw.gpu.pcie.receive", "PCIe received", 1, _apart(_TRAFFIC), _plain("By/s")),
    _Check("hw.gpu.pcie.transmit", "PCIe sent", 1, _apart(_TRAFFIC), _plain("By/s")),
)
METRICS = tuple(check.metric for check in _CHECKS)
"""Metrics of a GPU that are compared between ranks."""


def reasons(rank: int, measured: Mapping[int, Measured]) -> tuple[Reason, ...]:
    """What differs for ``rank`` from the other ranks: phases first, then metrics.

    A metric differs if the rank's value is beyond that of every other rank and far from their
    median. Ranks that share one GPU are not compared by it.
    """
    own = measured[rank]
    others = [each for number, each in measured.items() if number != rank]
    return (
        *_phases(own, others),
        *_metrics(own, others),
        *_cores(own, others),
        *_shared(own, others),
        *_numa(own, others),
    )


def _phases(own: Measured, others: Sequence[Measured]) -> list[Reason]:
    more = {
        name: seconds - median(each.phases.get(name, 0.0) for each in others)
        for name, seconds in own.phases.items()
        if name not in WAITING
    }
    total = sum(seconds for seconds in more.values() if seconds > 0)
    longest = sorted(more, key=lambda name: -more[name])
    found = []
    for name in longest:
        if more[name] > 0 and more[name] >= PHASE_SHARE * total:
            shown = _PHASES.get(name, clean(name, _LONGEST))
            text = f"{shown} +{units.milliseconds(more[name])} a step"
            found.append(Reason(shown, text, phase=name))
    return found


def _metrics(own: Measured, others: Sequence[Measured]) -> list[Reason]:
    devices = [each.device for each in (own, *others)]
    if own.device is None or devices.count(own.device) > 1:
        return []
    found = []
    for check in _CHECKS:
        value = (own.metrics or {}).get(check.metric)
        known = [
            other
            for each in others
            if each.device is not None
            and (other := (each.metrics or {}).get(check.metric)) is not None
        ]
        if value is None or len(known) < len(others):
            continue
        middle = median(known)
        beyond = all(check.sign * (value - other) > 0 for other in known)
        if beyond and check.enough(value, middle):
            text = f"{check.name} {check.format(value)}, others {check.format(middle)}"
            found.append(Reason(check.name, text, metric=check.metric))
    return found


def _cores(own: Measured, others: Sequence[Measured]) -> list[Reason]:
    known = [each.cores for each in others if each.cores is not None]
    if own.cores is None or len(known) < len(others):
        return []
    middle = median(known)
    extreme = own.cores < min(known) or own.cores > max(known)
    least = max(_LEAST_CORES, _CORES * middle)
    if not extreme or abs(own.cores - middle) < least:
        return []
    text = f"CPU of its process {own.cores:.2f} cores, others {middle:.2f}"
    return [Reason("CPU of its process", text)]


def _shared(own: Measured, others: Sequence[Measured]) -> list[Reason]:
    if not own.neighbours or any(each.neighbours for each in others):
        return []
    return [Reason("shared GPU", f"its GPU is shared with {', '.join(own.neighbours)}")]


def _numa(own: Measured, others: Sequence[Measured]) -> list[Reason]:
    if _far(own) is not True or any(_far(each) is not False for each in others):
        return []
    nodes = ", ".join(map(str, own.cpu_nodes))
    text = f"NUMA: its GPU is on node {own.gpu_node}, its CPUs on {nodes}; others have both on one"
    return [Reason("NUMA", text)]


def _far(measured: Measured) -> bool | None:
    """Whether all CPUs of a rank are on other nodes than its GPU."""
    if measured.gpu_node is None or not measured.cpu_nodes:
        return None
    return measured.gpu_node not in measured.cpu_nodes
