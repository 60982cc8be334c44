"""Which ranks are slower than the others, beyond noise.

A rank's *excess* is its own time per step less that of the median of the other ranks, taken in the
same blocks of time, so that whatever slows all ranks alike cancels. The median rank is the one
whose own time over the run is the median: with two ranks it is the other one. A rank is a straggler
if the interval of its excess lies above a margin, by Holm's procedure over all ranks, or if its
excess rose by more than the margin at some moment of the run. Blocks are as long as the run allows,
and the standard error allows for correlation from block to block.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from gpuwatch.analysis.ranks.own_time import WAITING, Cells
from gpuwatch.analysis.statistics.changepoints import without_spikes
from gpuwatch.analysis.statistics.intervals import ALPHA, Mean, holm_levels, mean_of, welch
from gpuwatch.core import units
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.text import clean

MARGIN = 0.01
"""Share of the step time that a straggler's excess exceeds."""
FEWEST_BLOCKS = 8
_MOST_BLOCKS = 20
_CELLS = 4
"""Cells in a block, if the run is long enough for :data:`FEWEST_BLOCKS` of them."""
_LEAST_SIDE = 4
"""Fewest blocks before and after a rank became slower."""
_LEAST_CORRELATED, _MOST_CORRELATED = 0.25, 0.8
"""Correlation of neighbouring blocks that is assumed where the estimate is lower or higher: a few
blocks hide it."""
_LEAST_AT_A_CHANGE = 0.5
"""The same where the moment of a change is searched: correlated noise looks like one."""
_CLOCK = 1e-9
"""Floor of a standard error, as a share of the step time: exactly equal values have none."""


@dataclass(frozen=True)
class Excess:
    """Own seconds of a step beyond the median of the other ranks."""

    rank: int
    seconds: float
    low: float
    high: float
    level: float
    """Confidence of ``low`` to ``high``, adjusted for the number of ranks."""
    median: float
    """Own seconds of a step of the median of the other ranks."""
    since: int | None = None
    """Session nanoseconds from which on the rank is slower than before, and the figures hold;
    ``None``: over all blocks."""
    before: float | None = None
    """Excess before that."""

    @property
    def relative(self) -> float:
        """Excess over the median's own time: 0.12 is 12 % longer."""
        return self.seconds / self.median if self.median > 0 else math.inf


@dataclass(frozen=True)
class Judged:
    """Every rank against the others."""

    excesses: tuple[Excess, ...]
    """By rank, over all blocks; empty if there are too few."""
    stragglers: tuple[Excess, ...]
    """The slowest first."""
    blocks: int


def judge(cells: Cells, step_seconds: float) -> Judged:
    """Compare the ranks; ``step_seconds`` is the mean time of a step."""
    count = cells.edges.shape[0]
    blocks = max(FEWEST_BLOCKS, min(_MOST_BLOCKS, count // _CELLS))
    parts = np.array_split(np.arange(count), min(count, blocks))
    if len(parts) < FEWEST_BLOCKS:
        return Judged((), (), len(parts))
    margin = MARGIN * step_seconds
    series = [
        _against_others(cells.per_step, index, parts, step_seconds)
        for index in range(len(cells.ranks))
    ]
    means = [_mean(values, step_seconds) for values, _ in series]
    levels = holm_levels([min(1.0, 2 * mean.p_above(margin)) for mean in means])
    excesses = tuple(
        Excess(rank, mean.value, *mean.bounds(1 - level), 1 - level, median)
        for rank, mean, level, (_, median) in zip(cells.ranks, means, levels, series, strict=True)
    )
    named = []
    for excess, (values, _) in zip(excesses, series, strict=True):
        later = _became_slower(values, len(cells.ranks), step_seconds)
        if later is not None:
            split, mean = later
            low, high = mean.bounds(excess.level)
            later_on = replace(excess, seconds=mean.value, low=low, high=high)
            since, before = int(cells.edges[parts[split][0], 0]), float(values[:split].mean())
            named.append(replace(later_on, since=since, before=before))
        elif excess.low > margin:
            named.append(excess)
    return Judged(excesses, tuple(sorted(named, key=lambda each: -each.seconds)), len(parts))


def _against_others(
    per_step: np.ndarray, index: int, blocks: Sequence[np.ndarray], step_seconds: float
) -> tuple[np.ndarray, float]:
    """Excess of a rank in each block (blocks,), and the own time of the median of the others.

    Single cells far from their neighbours, such as a checkpoint, are replaced first.
    """
    others = np.delete(per_step, index, axis=0)
    order = np.argsort(np.median(others, axis=1), kind="stable")
    middle = order[(len(order) - 1) // 2 : len(order) // 2 + 1]
    median = others[middle].mean(axis=0)
    excess = without_spikes((per_step[index] - median) / step_seconds) * step_seconds
    return np.array([excess[part].mean() for part in blocks]), float(np.median(median))


def _mean(values: np.ndarray, step_seconds: float) -> Mean:
    mean = mean_of(values)
    assert mean is not None
    return _wider(mean, [values], step_seconds)


def _wider(
    mean: Mean, parts: Sequence[np.ndarray], step_seconds: float, least: float = _LEAST_CORRELATED
) -> Mean:
    """``mean`` with a standard error that allows for correlation within ``parts``."""
    rest = [part - part.mean() for part in parts]
    square = sum(float(part @ part) for part in rest)
    product = sum(float(part[1:] @ part[:-1]) for part in rest)
    count = sum(part.size for part in parts)
    measured = product / square if square > 0 else 0.0
    # The estimate from a few values is too low by about this much (Marriott and Pope 1954).
    correlation = measured + (1 + 3 * measured) * len(parts) / count
    correlation = min(max(correlation, least), _MOST_CORRELATED)
    factor = math.sqrt((1 + correlation) / (1 - correlation))
    return replace(mean, error=max(mean.error * factor, _CLOCK * step_seconds))


def _became_slower(values: np.ndarray, ranks: int, step_seconds: float) -> tuple[int, Mean] | None:
    """The block from which on a rank's excess (blocks,) is higher by more than the margin, and its
    mean from there on; ``None`` if no moment stands out among all moments and ranks."""
    margin = MARGIN * step_seconds

    def p_of(split: int) -> float:
        sides = values[:split], values[split:]
        rise = welch(*sides)
        assert rise is not None
        return _wider(rise, sides, step_seconds, _LEAST_AT_A_CHANGE).p_above(margin)

    splits = range(_LEAST_SIDE, values.size - _LEAST_SIDE + 1)
    p, split = min((p_of(split), split) for split in splits)
    if p * 2 * len(splits) * ranks > ALPHA:
        return None
    mean = _mean(values[split:], step_seconds)
    return (split, mean) if mean.value > margin else None


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
    _Check(
        "hw.gpu.throttle.thermal", "clocks held down by temperature", 1, _by(SHARE), _of_the_time
    ),
    _Check("hw.gpu.throttle.power", "clocks held down by power", 1, _by(SHARE), _of_the_time),
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
        name: seconds - statistics.median(each.phases.get(name, 0.0) for each in others)
        for name, seconds in own.phases.items()
        if name not in WAITING
    }
    total = sum(seconds for seconds in more.values() if seconds > 0)
    found = []
    for name in sorted(more, key=lambda name: -more[name]):
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
        middle = statistics.median(known)
        beyond = all(check.sign * (value - other) > 0 for other in known)
        if beyond and check.enough(value, middle):
            text = f"{check.name} {check.format(value)}, others {check.format(middle)}"
            found.append(Reason(check.name, text, metric=check.metric))
    return found


def _cores(own: Measured, others: Sequence[Measured]) -> list[Reason]:
    known = [each.cores for each in others if each.cores is not None]
    if own.cores is None or len(known) < len(others):
        return []
    middle = statistics.median(known)
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
