"""The sentence of a sweep: the best value, ties, slower values and failures."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.analysis.comparison.verdict import FEWEST
from gpuwatch.analysis.results import SweepPoint
from gpuwatch.core import units
from gpuwatch.core.models import JSON, number
from gpuwatch.core.text import clean

_MOST_NAMED = 6
_LONGEST_VALUE = 30
_LONGEST_WHY = 80
MEMORY = "out of memory"
_NEEDED = f", a verdict needs {FEWEST}"


def sentence(
    parameter: str,
    points: Sequence[SweepPoint],
    best: int | None,
    blocks: int | None,
    *,
    by_time: bool,
) -> str:
    """``batch size 64 is best: 5,120 samples/s; 32 is 11 % slower (9 to 13)``.

    ``blocks``: number of blocks of a complete value; ``None``: no common blocks. ``by_time``: step
    times are compared, as samples are unknown.
    """
    name = clean(parameter, _LONGEST_VALUE).replace("_", " ")
    failed = _failed(points)
    if best is None:
        lacking = any(point.lacking for point in points)
        none = f"no {name} has {'enough runs to be the best' if lacking else 'a figure'}"
        return "; ".join([none, *failed])
    tied = [point for point in points if point.tied]
    others = [
        point
        for at, point in enumerate(points)
        if at != best and not point.tied and point.why is None
    ]
    first = [] if tied else [points[best]]
    figures = _listed([_figure(point, by_time) for point in tied or first])
    values = _listed([_shown(point.value) for point in tied or first])
    unit = " a step" if by_time else " samples/s"
    if not tied and not others:
        clauses = [f"{name} {values}: {figures}{unit}, with no other to compare"]
    else:
        clauses = [f"{name} {values} {'are' if tied else 'is'} best: {figures}{unit}"]
        clauses[0] += " (can't be told apart)" if tied else ""
    clauses += [_slower(point, points[best], blocks) for point in others[:_MOST_NAMED]]
    if len(others) > _MOST_NAMED:
        clauses.append(f"{len(others) - _MOST_NAMED} more are slower")
    clauses += failed
    if tied or others:
        clauses += _fewer([point for point in tied if point.pairs], blocks)
        clauses += _too_few(points, blocks)
    return "; ".join(clauses)


def _too_few(points: Sequence[SweepPoint], blocks: int | None) -> list[str]:
    """A note if there are too few runs for a verdict, or they are not paired."""
    pairs = [point.pairs for point in points if point.pairs is not None]
    if blocks is not None:
        few = max(pairs) < FEWEST
        return [f"{_counted(max(pairs), 'block')}{_NEEDED}"] if few else []
    runs = min(pairs)
    return [f"{_counted(runs, 'run')} of each{_NEEDED if runs < FEWEST else ', not paired'}"]


def _fewer(tied: Sequence[SweepPoint], blocks: int | None) -> list[str]:
    """Notes on tied values that were compared in fewer blocks than others."""
    return [
        f"{_shown(point.value)} in {blocks_used}"
        for point in tied
        if (blocks_used := _rests(point, blocks))
    ]


def _rests(point: SweepPoint, blocks: int | None) -> str | None:
    """``6 of 7 blocks``, if others are compared in more."""
    if blocks is None or point.pairs is None or point.pairs == blocks:
        return None
    few = _NEEDED if point.pairs < FEWEST <= blocks else ""
    return f"{point.pairs} of {_counted(blocks, 'block')}{few}"


def _counted(number: int, one: str) -> str:
    return f"{number} {one}{'' if number == 1 else 's'}"


def _slower(point: SweepPoint, best: SweepPoint, blocks: int | None) -> str:
    value, change = _shown(point.value), point.throughput
    rests = _rests(point, blocks)
    if change is None:
        ratio = _ratio(point, best)
        estimate, between = (0.0 if ratio is None else ratio - 1), ""
    else:
        estimate = change.estimate
        low, high = sorted((abs(change.low), abs(change.high)))
        between = f"{_number(low)} to {_number(high)}"
    word = "faster" if estimate > 0 else "slower"
    beside = "; ".join(filter(None, (between, rests)))
    return f"{value} is {units.percent(abs(estimate))} {word}{f' ({beside})' if beside else ''}"


def _ratio(point: SweepPoint, best: SweepPoint) -> float | None:
    """Ratio of the medians, where single runs give no interval."""
    if point.samples_per_second and best.samples_per_second:
        return point.samples_per_second / best.samples_per_second
    if point.step_seconds and best.step_seconds:
        return best.step_seconds / point.step_seconds
    return None


def _failed(points: Sequence[SweepPoint]) -> list[str]:
    memory = [point for point in points if _ran_out(point)]
    rest = [point for point in points if point.why and not _ran_out(point)]
    texts = [_out_of_memory(memory, points)] if memory else []
    for each in rest:
        reason = clean(each.why, _LONGEST_WHY)
        detail = f" (not compared: {reason})" if each.lacking else f": {reason}"
        texts.append(f"{_shown(each.value)}{detail}")
    return texts


def _ran_out(point: SweepPoint) -> bool:
    return point.why is not None and not point.lacking and MEMORY in point.why.casefold()


def _out_of_memory(memory: Sequence[SweepPoint], points: Sequence[SweepPoint]) -> str:
    """``256 and more ran out of memory``; ``out of memory from 256 on`` if not all of them ran."""
    values = [number(point.value) for point in memory]
    known = [value for value in values if value is not None]
    below = [number(point.value) for point in points if not _ran_out(point)]
    numeric = len(known) == len(memory) > 1
    if numeric and all(value is not None and value < min(known) for value in below):
        least = _shown(memory[values.index(min(known))].value)
        ran = all(point.cell is not None and point.cell.runs for point in memory)
        return f"{least} and more ran {MEMORY}" if ran else f"{MEMORY} from {least} on"
    return f"{_listed([_shown(point.value) for point in memory])} ran {MEMORY}"


def _figure(point: SweepPoint, by_time: bool) -> str:
    if by_time:
        return units.milliseconds(point.step_seconds)
    rate = point.samples_per_second or 0.0
    return units.digits(rate)


def _shown(value: JSON) -> str:
    return clean(value, _LONGEST_VALUE)


def _number(share: float) -> str:
    return units.percent(share).removesuffix(" %")


def _listed(texts: Sequence[str]) -> str:
    """``16, 32 and 64``."""
    return " and ".join(filter(None, (", ".join(texts[:-1]), texts[-1])))
