"""A sweep over one parameter: the throughput of each value, the best, and ties with it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gpuwatch.analysis.comparison.cells import lacks_too_much
from gpuwatch.analysis.comparison.verdict import paired, unpaired
from gpuwatch.analysis.explain.sides import median, step_seconds
from gpuwatch.analysis.results import Cell, Kind, Run, Sweep, SweepPoint, Verdict
from gpuwatch.analysis.study.sweep_wording import MEMORY, sentence
from gpuwatch.analysis.summary.training import NAMES
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON, mapping, number

_SAME_WORK = frozenset(
    {"workers", "dtype", "device", "lr", "seed", "epochs", "steps", "warmup", "profile"}
)
"""Workload flags that do not change the work of a step, so that step times are comparable even
without known samples."""

_MOST_SAMPLES = 1e15
"""Most plausible samples per step: files may come from anywhere."""
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

    Throughput is samples per step over the steady step time of each run, median over the judged
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
    made = tuple(
        SweepPoint(
            value=each.value,
            cell=each.cell,
            samples_per_second=median(each.rates),
            step_seconds=median(each.steps),
            throughput=verdicts[at].change if at in verdicts else None,
            tied=at in tied,
            why=each.why,
            lacking=each.lacking,
            pairs=verdicts[at].pairs if at in verdicts else None,
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
    return median([value for value in values if value is not None])


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

    A lost block would change the effect of drift on a median.
    """
    shared = set.intersection(*(set(measured[at].by_block) for at in known)) if known else set()

    def speed(at: int) -> float:
        speeds = [speed for block, speed in measured[at].speeds if block in shared or not shared]
        return median(speeds) or 0.0

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


def _is_tie(verdict: Verdict) -> bool:
    """Whether zero lies in the interval, or all values are equal."""
    change = verdict.change
    if change is None:
        return verdict.kind is Kind.CANT_TELL and abs(verdict.estimate or 0.0) < _EQUAL
    return change.low <= 0 <= change.high
