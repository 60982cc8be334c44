"""A sweep over one parameter: the throughput of each value, the best, and ties with it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gpuwatch.analysis.comparison.cells import lacks_too_much
from gpuwatch.analysis.comparison.verdict import paired, unpaired
from gpuwatch.analysis.comparison.wording import change_text
from gpuwatch.analysis.explain.sides import step_seconds
from gpuwatch.analysis.results import Cell, Kind, Run, Sweep, SweepPoint, Verdict
from gpuwatch.analysis.statistics.intervals import FEWEST, Interval, middle
from gpuwatch.analysis.summary.training import NAMES, unit_of
from gpuwatch.core import units
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON, mapping, number
from gpuwatch.core.text import clean

_MOST_NAMED = 6
_LONGEST_VALUE = 30
_LONGEST_WHY = 200
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
    """``batch size 64 is best: 5,120 samples/s; 32 has 11 % fewer samples/s (9 to 13)``.

    ``blocks``: number of blocks of a complete value; ``None``: no common blocks. ``by_time``: step
    times are compared, as samples are unknown.
    """
    name = clean(parameter, _LONGEST_VALUE).replace("_", " ")
    failed = _failed(points)
    if best is None:
        lacking = any(point.lacking for point in points)
        none = f"no {name} has {'enough runs to be the best' if lacking else 'a figure'}"
        return "; ".join([none, *failed])
    first, unit = points[best], " a step" if by_time else " samples/s"
    compared = [point for point in points if point is not first and point.why is None]
    alike = [point for point in compared if _close(point)]
    others = [point for point in compared if not _close(point)]
    head = f"{name} {_shown(first.value)}"
    figure = f"{_figure(first, by_time=by_time)}{unit}"
    clauses = [f"{head} is best: {figure}"]
    if not alike and not others:
        clauses = [f"{head}: {figure}, with no other to compare"]
    elif any(point.pairs is not None and point.pairs < FEWEST for point in others):
        clauses = [f"{head} was fastest: {figure}"]
    if alike:
        figures = _listed([_figure(point, by_time=by_time) for point in alike])
        clauses.append(
            f"{_listed([_shown(point.value) for point in alike])} ({figures}) can't be told from it"
        )
    rate = "steps/s" if by_time else "samples/s"
    clauses += [_fewer_a_second(point, first, blocks, rate) for point in others[:_MOST_NAMED]]
    if len(others) > _MOST_NAMED:
        clauses.append(f"{len(others) - _MOST_NAMED} more have fewer {rate}")
    clauses += failed
    clauses += [
        f"with {_shown(point.value)} each has {_share(point.efficiency)} of its throughput alone"
        for point in points
        if point.efficiency is not None
    ]
    if compared:
        # Such values that were compared in fewer blocks than others.
        rests = [(point, _rests(point, blocks)) for point in alike]
        clauses += [f"{_shown(point.value)} in {used}" for point, used in rests if used]
        clauses += _too_few(points, blocks)
    return "; ".join(clauses)


def _close(point: SweepPoint) -> bool:
    """Whether its runs, enough for a verdict, do not tell it from the best."""
    change = point.throughput
    return point.tied or (change is not None and change.low <= 0 <= change.high)


def _figure(point: SweepPoint, *, by_time: bool) -> str:
    """Its time of a step, or its samples per second."""
    if by_time:
        return units.milliseconds(point.step_seconds)
    return units.digits(point.samples_per_second or 0.0)


def _too_few(points: Sequence[SweepPoint], blocks: int | None) -> list[str]:
    """A note if there are too few runs for a verdict, or they are not paired."""
    pairs = [point.pairs for point in points if point.pairs is not None]
    if blocks is not None:
        most = max(pairs)
        return [f"{units.counted(most, 'block')}{_NEEDED}"] if most < FEWEST else []
    runs = min(pairs)
    return [f"{units.counted(runs, 'run')} of each{_NEEDED if runs < FEWEST else ', not paired'}"]


def _rests(point: SweepPoint, blocks: int | None) -> str | None:
    """``6 of 7 blocks``, if others are compared in more."""
    if blocks is None or point.pairs is None or point.pairs == blocks:
        return None
    few = _NEEDED if point.pairs < FEWEST <= blocks else ""
    return f"{point.pairs} of {units.counted(blocks, 'block')}{few}"


def _fewer_a_second(point: SweepPoint, best: SweepPoint, blocks: int | None, rate: str) -> str:
    value, interval = _shown(point.value), point.throughput
    rests = _rests(point, blocks)
    if interval is None:
        ratio = _ratio(point, best)
        estimate, between = (0.0 if ratio is None else ratio - 1), ""
    else:
        estimate = interval.estimate
        low, high = sorted((abs(interval.low), abs(interval.high)))
        between = f"{_number(low)} to {_number(high)}"
    change = f"{units.percent(abs(estimate))} {'more' if estimate > 0 else 'fewer'} {rate}"
    beside = "; ".join(filter(None, (between, rests)))
    return f"{value} has {change}{f' ({beside})' if beside else ''}"


def _ratio(point: SweepPoint, best: SweepPoint) -> float | None:
    """Ratio of the means, where single runs give no interval."""
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


def _shown(value: JSON) -> str:
    return clean(value, _LONGEST_VALUE)


def _number(share: float) -> str:
    return units.percent(share).removesuffix(" %")


def _listed(texts: Sequence[str]) -> str:
    """``16, 32 and 64``."""
    return " and ".join(filter(None, (", ".join(texts[:-1]), texts[-1])))


_SAME_WORK = frozenset(
    {"workers", "dtype", "device", "lr", "seed", "epochs", "steps", "warmup", "profile"}
)
"""Workload flags that do not change the work of a step, so that step times are comparable even
without known samples."""

_MOST_SAMPLES = 1e15
"""Most plausible samples per step: files may come from anywhere."""
RANKS = "nproc"
_EQUAL = 1e-6
"""Relative difference that a clock cannot resolve."""


@dataclass(frozen=True)
class _Measured:
    """One value of the parameter, and the results of its judged runs."""

    value: JSON
    cell: Cell | None
    why: str | None
    steps: tuple[float, ...]
    """Steady step times, seconds."""
    rates: tuple[float, ...]
    """Samples per second."""
    speeds: tuple[tuple[int | None, float], ...]
    """Block and compared speed of each run; higher is better."""

    @property
    def lacking(self) -> bool:
        return self.cell is not None and bool(self.speeds) and lacks_too_much(self.cell)

    @property
    def compared(self) -> bool:
        return bool(self.speeds) and not self.lacking

    @property
    def by_block(self) -> dict[int, float]:
        return {block: speed for block, speed in self.speeds if block is not None}


def sweep_of(
    label: str,
    parameter: str,
    environment: str,
    points: Sequence[tuple[JSON, Cell | None, str | None]],
    margin: float,
) -> Sweep:
    """The sweep of ``points``: value of the parameter, its cell, or the reason for none.

    Throughput is samples per step over the steady step time of each run, the mean over the judged
    runs. The best value has the highest throughput among those with enough runs, over their common
    blocks; the others are compared with it, paired by common blocks. Where samples are unknown,
    step times are compared if the parameter does not change the work of a step; else there is no
    figure, with a reason.
    """
    runs = [(value, cell, why, _timed(cell)) for value, cell, why in points]
    by_time = parameter in _SAME_WORK and any(
        samples_of(run) is None for *_, timed in runs for run in timed
    )
    measured = [_measured(*each, by_time=by_time) for each in runs]
    known = [at for at, each in enumerate(measured) if each.compared]
    best = _best(measured, known)
    verdicts = {} if best is None else _against(measured, best, margin)
    tied = {at for at, verdict in verdicts.items() if _is_tie(verdict)}
    if tied and best is not None:
        tied.add(best)
    changes = {at: each.change for at, each in verdicts.items() if each.kind is not Kind.DESCRIBED}
    scaling = _scaling(measured, known, margin) if parameter == RANKS else {}
    made = tuple(
        SweepPoint(
            value=each.value,
            cell=each.cell,
            samples_per_second=middle(each.rates),
            step_seconds=middle(each.steps),
            throughput=changes.get(at),
            tied=at in tied,
            why=each.why,
            lacking=each.lacking,
            pairs=verdicts[at].pairs if at in verdicts else None,
            efficiency=scaling.get(at),
            **{key: _last(runs[at][3], key) for key in NAMES},
        )
        for at, each in enumerate(measured)
    )
    paired_in = [len(measured[at].by_block) for at in known]
    blocks = max(paired_in) if any(each.paired for each in verdicts.values()) else None
    return Sweep(
        label=label,
        parameter=parameter,
        environment=environment,
        points=made,
        best=best,
        sentence=sentence(parameter, made, best, blocks, by_time=by_time),
    )


def samples_of(run: Run) -> float | None:
    """Samples of one full step: the reported batch size, else the count."""
    for reported in (run.session.run.get("batch_size"), run.session.count.get("samples")):
        known = number(reported)
        if known is not None and 0 < known <= _MOST_SAMPLES:
            return known
    return None


def _last(timed: Sequence[Run], key: str) -> float | None:
    values = [run.session.training.step.all[key].figure.value for run in timed]
    return middle([value for value in values if value is not None])


def _timed(cell: Cell | None) -> tuple[Run, ...]:
    judged = () if cell is None else cell.judged
    return tuple(run for run in judged if step_seconds(run) is not None)


def _measured(
    value: JSON, cell: Cell | None, why: str | None, timed: Sequence[Run], *, by_time: bool
) -> _Measured:
    steps = [(run, seconds) for run in timed if (seconds := step_seconds(run)) is not None]
    rates = [
        (run, samples / (run.total or seconds))
        for run, seconds in steps
        if (samples := samples_of(run)) is not None
    ]
    speeds = [(run, 1 / (run.total or seconds)) for run, seconds in steps] if by_time else rates
    if not speeds:
        why = "samples of a step are not known" if steps else _why(cell, why)
    else:
        why = cell.lack.text if cell and cell.lack and lacks_too_much(cell) else None
    return _Measured(
        value,
        cell,
        why,
        tuple(seconds for _, seconds in steps),
        tuple(rate for _, rate in rates),
        tuple((run.block, speed) for run, speed in speeds),
    )


def _why(cell: Cell | None, reason: str | None) -> str:
    """Why no run of the cell has a step time."""
    runs = () if cell is None else cell.runs
    problems = () if cell is None else cell.not_run
    for run in runs:
        texts = (run.session.status.text, mapping(run.session.error).get("message"), run.reason)
        if any(MEMORY in str(text).casefold() for text in texts):
            return MEMORY
    if reason:
        return reason
    reasons = [run.reason or run.steady.reason or run.session.status.text for run in runs]
    reasons += [problem.text for each in problems for problem in each.problems]
    return reasons[0] if reasons else "not run"


def _best(measured: Sequence[_Measured], known: Sequence[int]) -> int | None:
    """The fastest of ``known``, over their common blocks if any, else over all runs.

    A lost block would change the effect of drift on a mean.
    """
    shared = set.intersection(*(set(measured[at].by_block) for at in known)) if known else set()

    def speed(at: int) -> float:
        speeds = [speed for block, speed in measured[at].speeds if block in shared or not shared]
        return middle(speeds) or 0.0

    return max(known, key=speed, default=None)


def _against(measured: Sequence[_Measured], best: int, margin: float) -> dict[int, Verdict]:
    """Verdicts on the throughput of every other compared value, against the best."""
    first = measured[best]
    ratios: dict[int, list[float]] = {}
    values: dict[int, list[float]] = {}
    for at, each in enumerate(measured):
        shared = sorted(each.by_block.keys() & first.by_block.keys())
        if at == best or not each.compared:
            continue
        if shared:
            ratios[at] = [math.log(each.by_block[b] / first.by_block[b]) for b in shared]
        else:
            values[at] = [math.log(speed) for _, speed in each.speeds]
    of_best = [math.log(speed) for _, speed in first.speeds]
    return {
        **dict(zip(ratios, paired(list(ratios.values()), margin), strict=True)),
        **dict(zip(values, unpaired(of_best, list(values.values()), margin), strict=True)),
    }


def _scaling(
    measured: Sequence[_Measured], known: Sequence[int], margin: float
) -> dict[int, Interval]:
    """What each rank achieves of one where they are fewest, by index, for all other numbers of
    ranks."""
    ranks = {at: number(measured[at].value) or 0.0 for at in known}
    if not ranks or not all(ranks.values()):
        return {}
    fewest = min(ranks, key=ranks.__getitem__)
    found = {}
    for at, verdict in _against(measured, fewest, margin).items():
        if (change := verdict.change) is not None:
            share = ranks[fewest] / ranks[at]
            estimate, low, high = (
                (1 + each) * share for each in (change.estimate, change.low, change.high)
            )
            found[at] = Interval(estimate, low, high, change.level)
    return found


def _is_tie(verdict: Verdict) -> bool:
    """Whether it is the same within the margin, or all values are equal."""
    equal = verdict.change is None and abs(verdict.estimate or 0.0) < _EQUAL
    return verdict.kind is Kind.SAME or (verdict.kind is Kind.CANT_TELL and equal)


@dataclass(frozen=True)
class SweepRow:
    """One value of the parameter; an unknown figure is a dash."""

    value: str
    throughput: str
    step_time: str
    change: str
    """Of the throughput against the best; empty for the best, and if unknown."""
    rank: str
    """``best``, ``tied`` with it (the same within the margin), ``can't tell``, or empty."""
    training: tuple[str, ...]
    """Loss and accuracies, as :func:`training_names` names them."""
    why: str | None
    """Why there is no figure, or why it cannot be the best."""
    efficiency: str = ""
    """Of each rank, against one where they are fewest; empty for those, and if unknown."""


def sweep_table(sweep: Sweep) -> tuple[SweepRow, ...]:
    """One row per point, in the order requested; one that is compared with none is not the best."""
    compared = sum(point.why is None for point in sweep.points) > 1
    return tuple(
        SweepRow(
            value="default" if point.value is None else units.fact(sweep.parameter, point.value),
            throughput=units.quantity(point.samples_per_second, "{sample}/s"),
            step_time=units.quantity(point.step_seconds, "s"),
            change="" if point.throughput is None else change_text(point.throughput),
            rank="best" if compared and at == sweep.best else _rank(point),
            training=tuple(
                units.quantity(getattr(point, key), unit_of(key)) for key in _trained(sweep)
            ),
            why=point.why,
            efficiency="" if point.efficiency is None else _share(point.efficiency),
        )
        for at, point in enumerate(sweep.points)
    )


def _rank(point: SweepPoint) -> str:
    few = point.pairs is not None and point.pairs < FEWEST
    return "tied" if point.tied else "can't tell" if few or _close(point) else ""


def _share(of: Interval) -> str:
    """``91 % (89 to 93)``."""
    return f"{units.percent(of.estimate)} ({_number(of.low)} to {_number(of.high)})"


def training_names(sweep: Sweep) -> tuple[str, ...]:
    """The loss and accuracies that at least one point has."""
    return tuple(NAMES[key] for key in _trained(sweep))


def _trained(sweep: Sweep) -> list[str]:
    return [key for key in NAMES if any(getattr(e, key) is not None for e in sweep.points)]
