"""One case in several environments, or several commands in one: each against the baseline."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import starmap

import numpy as np

from gpuwatch.analysis.comparison import validity
from gpuwatch.analysis.comparison.cells import (
    MOST_LACKING,
    WHOLE_RUN,
    Case,
    Group,
    cell_of,
    lacks_too_much,
    metric_of,
    runs_of,
    valued,
)
from gpuwatch.analysis.comparison.verdict import invalid, paired, unpaired
from gpuwatch.analysis.comparison.wording import Side, change_text, sentence
from gpuwatch.analysis.explain.explain import explain
from gpuwatch.analysis.results import Cell, Contrast, Explanation, Kind, Question, Run, Verdict
from gpuwatch.analysis.samples import steady_state
from gpuwatch.analysis.statistics.intervals import FEWEST, interval
from gpuwatch.analysis.study.table import table_of
from gpuwatch.core.aggregate import grouped
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON, those
from gpuwatch.core.units import counted

IS_BASELINE = "is the baseline"
"""The end of the note that a group gave no value, so that the ratios are against another."""
_MOST_IN_WORDS = 20
"""Steps of which one is slow, up to which they are counted."""
_LEAST = 4
"""Steps differ if their logarithm is beyond this part of that where most of the difference lies."""
_NAMES = "\0"
"""Stands in a remark for the names of its cells; no label has it."""


def slow_steps(baseline: Cell, other: Cell, margin: float, *, slower: bool) -> str | None:
    """``1 step in 4 is slower (x1.5)``: the steps whose time, at the same rank among all, is more
    than ``margin`` above the baseline's; not ``slower``: below it.

    Ranks up to the median are left out, as it is judged itself. So are those a quarter as far or
    less than where most of the difference lies, as a busy machine moves them. ``None``: no run's
    steps are known.
    """
    first, second = _quantiles(baseline), _quantiles(other)
    if first is None or second is None:
        return None
    ratios = second / first if slower else first / second
    tail = ratios[ratios.size // 2 :]
    far = np.log(tail[tail > 1 + margin])
    if not far.size:
        return "long steps are rare, or the time passes between steps"
    far = far[far > np.average(far, weights=far) / _LEAST]
    share = far.size / ratios.size
    counts = round(1 / share) <= _MOST_IN_WORDS
    told = f"1 step in {round(1 / share)} is" if counts else f"{share * 100:.0f} % of the steps are"
    return f"{told} {'slower' if slower else 'faster'} (x{math.exp(np.median(far)):.2g})"


def _quantiles(cell: Cell) -> np.ndarray | None:
    """Median over the judged runs of each quantile of their step times."""
    known = [run.steady.quantiles for run in cell.judged if run.steady.quantiles]
    return np.median(np.array(known), axis=0) if known else None


_NOTHING = Explanation((), (), (), None)


@dataclass(frozen=True)
class _Side:
    """A cell and the values of its runs."""

    cell: Cell
    by_block: Mapping[int, Run]
    """The runs that have a value, by judged block."""
    values: tuple[float, ...]
    """In seconds."""
    lost: frozenset[int]
    """Judged blocks whose run gave no value."""
    open: frozenset[int]
    """Judged blocks whose run is still going or to be started."""
    pending: bool
    """Whether a run, warm-up included, is still going or to be started."""

    @property
    def blocks(self) -> frozenset[int]:
        """All judged blocks with a past or future run."""
        return self.lost | self.open | self.by_block.keys()


def question_of(case: Case, *, across_devices: bool) -> Question:
    """The question of ``case``, of which at least one group has a run.

    The baseline is the first group, or the next if the first has no value and will get none. Runs
    on different devices are never paired.
    """
    metric = metric_of(case.groups)
    sides = [_side(group, metric, case.blocks) for group in case.groups]
    first = sides[0].cell
    if across_devices and any(validity.device_differences(first, side.cell) for side in sides[1:]):
        case = replace(case, blocks=None)
        sides = [_side(group, metric, None) for group in case.groups]
    base = next((at for at, side in enumerate(sides) if side.values or side.pending), 0)
    others = [at for at in range(len(sides)) if at != base]
    verdicts = _verdicts(case, sides[base], [sides[at] for at in others], across_devices)
    cells = tuple(side.cell for side in sides)
    contrasts = tuple(
        _contrast(case, metric, sides, base, at, verdict)
        for at, verdict in zip(others, verdicts, strict=True)
    )
    (workload, *_) = [run.session.workload for cell in (cells[base], *cells) for run in cell.runs]
    table, table_notes = table_of(cells, contrasts, metric, paired=case.blocks is not None)
    return Question(
        label=case.label,
        part=case.part,
        workload=_workload(case, workload),
        metric=metric,
        cells=cells,
        contrasts=contrasts,
        table=table,
        notes=(*_notes(case, metric, sides, base, contrasts, across_devices), *table_notes),
    )


def _side(group: Group, metric: str, blocks: Sequence[int] | None) -> _Side:
    cell = cell_of(group, metric)
    known = valued(cell)
    judged = frozenset(blocks or ())
    live = [run for run in cell.runs if run.session.status.live]
    lost = [run.block for run in cell.judged if run.value is None and run not in live]
    return _Side(
        cell=cell,
        by_block={run.block: run for run in known if run.block in judged and run.block is not None},
        values=tuple(run.value for run in known if run.value is not None),
        lost=judged.intersection([*lost, *group.absent]),
        open=judged.intersection([*(run.block for run in live), *group.to_come]),
        pending=bool(live or group.to_come),
    )


def _verdicts(
    case: Case, baseline: _Side, others: Sequence[_Side], across_devices: bool
) -> list[Verdict]:
    """Verdicts in the order of ``others``; the testable ones share Holm's procedure."""
    found: dict[int, Verdict] = {}
    tested: dict[int, _Side] = {}
    places = _places([baseline, *others])

    def not_comparable(reasons: Sequence[str], other: _Side) -> Verdict:
        pairs = _pairs(case, baseline, other)
        return invalid(reasons, case.margin, case.blocks is not None, pairs)

    for at, other in enumerate(others):
        reasons = validity.invalid_reasons(
            baseline.cell,
            other.cell,
            across_devices=across_devices,
            across_commands=case.compares_commands,
        )
        lacks = _lacks(case, baseline, other)
        if reasons:
            found[at] = not_comparable(reasons, other)
        elif case.doubt:
            alone = _judged(case, baseline, [other], places)[0]
            found[at] = replace(_untold(alone, (case.doubt,)), estimate=None)
        elif lacks:
            found[at] = _untold(_judged(case, baseline, [other], places)[0], lacks)
        else:
            tested[at] = other
    judged = _judged(case, baseline, list(tested.values()), places)
    found |= dict(zip(tested, judged, strict=True))
    for at, other in enumerate(others):
        clause, explained = validity.clocks_apart(baseline.cell, other.cell)
        if clause and not _stands(found[at], explained):
            found[at] = not_comparable([clause], other)
    return [found[at] for at in range(len(others))]


def _stands(verdict: Verdict, explained: float) -> bool:
    """Whether ``verdict`` stays if clocks explain as much as :func:`clocks_apart` says."""
    kind, change, edge = verdict.kind, verdict.leading.change, math.log1p(verdict.margin)
    known = math.isfinite(explained)
    if kind in (Kind.SLOWER, Kind.FASTER) and change is not None:
        end, sign = (change.low, 1) if kind is Kind.SLOWER else (change.high, -1)
        # What works against a difference leaves no doubt that there is one.
        helps = max(0.0, sign * explained) if known else math.inf
        return sign * math.log1p(max(end, -1 + 1e-12)) - helps > edge
    if kind in (Kind.INVALID, Kind.DESCRIBED):
        return known or kind is Kind.INVALID
    return abs(explained) <= edge


def _pairs(case: Case, baseline: _Side, other: _Side) -> int:
    """Number of pairs, or of runs of the side with fewer."""
    if case.blocks is None:
        return min(len(baseline.values), len(other.values))
    return len(_shared(case, baseline, other))


def _shared(case: Case, baseline: _Side, other: _Side) -> dict[int, tuple[Run, Run]]:
    """The two runs of each judged block in which both have a value."""
    first, second = baseline.by_block, other.by_block
    blocks = [block for block in case.blocks or () if block in first and block in second]
    return {block: (first[block], second[block]) for block in blocks}


def _judged(
    case: Case, baseline: _Side, others: Sequence[_Side], places: Mapping[str, int]
) -> tuple[Verdict, ...]:
    sides = (baseline, *others)
    both = all(run.total is not None for side in sides for run in valued(side.cell))
    if case.blocks is None:
        first, *rest = [[math.log(value) for value in side.values] for side in sides]
        totals = None
        if both:
            base, *more = [[_log_total(run) for run in valued(side.cell)] for side in sides]
            totals = (base, more)
        return unpaired(first, rest, case.margin, totals=totals)
    pairs = [_shared(case, baseline, other).values() for other in others]
    return paired(
        [list(starmap(_log_ratio, each)) for each in pairs],
        case.margin,
        totals=[list(starmap(_log_ratio_of_totals, each)) for each in pairs] if both else (),
        places=[[float(_apart(places, *pair)) for pair in each] for each in pairs],
    )


def _log_ratio(first: Run, second: Run) -> float:
    return math.log(second.value or math.nan) - math.log(first.value or math.nan)


def _log_ratio_of_totals(first: Run, second: Run) -> float:
    return _log_total(second) - _log_total(first)


def _log_total(run: Run) -> float:
    return math.log(run.total or math.nan)


def _places(sides: Sequence[_Side]) -> dict[str, int]:
    """The place of each run in its block, from 0, by the path of its session."""
    blocks = grouped(pair for side in sides for pair in side.by_block.items())
    return {
        run.session.path: place
        for runs in blocks.values()
        for place, run in enumerate(sorted(runs, key=lambda run: run.session.started_unix or 0.0))
    }


def _apart(places: Mapping[str, int], first: Run, second: Run) -> int:
    """By how many places the second ran after the first."""
    return places[second.session.path] - places[first.session.path]


def _lost(one: _Side, other: _Side) -> int:
    """Number of common blocks in which either side gave no value."""
    return len((one.lost | other.lost) & one.blocks & other.blocks)


def _lacks(case: Case, baseline: _Side, other: _Side) -> tuple[str, ...]:
    """Why there is no verdict if too many runs of a side, or too many pairs, gave no value."""
    cells = [side.cell for side in (baseline, other)]
    texts = [cell.lack.text for cell in cells if cell.lack]
    known = all(valued(side.cell) or side.pending for side in (baseline, other))
    if case.blocks is not None and 0 < len(case.blocks) < FEWEST and known:
        return ()  # too few blocks for a verdict anyway
    too_much = [cell.lack.text for cell in cells if cell.lack and lacks_too_much(cell)]
    if too_much or case.blocks is None:
        return tuple(too_much)
    lost, total = _lost(baseline, other), len(baseline.blocks & other.blocks)
    if lost <= MOST_LACKING * total:
        return ()
    return f"{lost} of {counted(total, 'block')} have no pair of values", *texts


def _untold(alone: Verdict, lacks: tuple[str, ...]) -> Verdict:
    """CAN'T TELL for ``lacks``: the estimate is kept, but not tested."""
    return Verdict(
        Kind.CANT_TELL,
        None,
        None,
        alone.margin,
        alone.pairs,
        alone.paired,
        alone.noise,
        reasons=lacks,
        estimate=alone.estimate,
        lacking=True,
    )


def _contrast(
    case: Case, metric: str, sides: Sequence[_Side], base: int, at: int, verdict: Verdict
) -> Contrast:
    baseline, other, places = sides[base], sides[at], _places(sides)
    known = bool(baseline.cell.judged and other.cell.judged)
    explanation = (
        explain(
            baseline.cell,
            other.cell,
            case.margin,
            by_total=verdict.by_total,
            parts=verdict.kind is not Kind.INVALID,
            places=places,
        )
        if known
        else _NOTHING
    )
    chosen = known and (case.workload is not None or case.compares_commands)
    blocks = case.blocks if case.blocks and verdict.kind is not Kind.INVALID else ()
    shared = _shared(case, baseline, other)
    pairs = [shared.get(block) for block in blocks]
    return Contrast(
        baseline=base,
        other=at,
        verdict=verdict,
        ratios=tuple(pair and math.exp(_log_ratio(*pair)) for pair in pairs),
        total_ratios=tuple(
            pair and math.exp(_log_ratio_of_totals(*pair))
            for pair in (pairs if verdict.total else ())
        ),
        places=tuple(pair and _apart(places, *pair) for pair in pairs),
        explanation=explanation,
        sentence=sentence(
            _named(baseline),
            _named(other),
            verdict,
            metric=metric,
            evidence=explanation.evidence,
            slow=slow_steps(
                baseline.cell, other.cell, case.margin, slower=verdict.kind is Kind.SLOWER
            )
            if verdict.by_total
            else None,
            blocks_lost=_lost(baseline, other),
            blocks_to_come=len(
                (baseline.open | other.open)
                & baseline.blocks
                & other.blocks - baseline.lost - other.lost
            ),
            goes_on=case.goes_on,
        ),
        by_design=validity.chosen_differences(baseline.cell, other.cell) if chosen else (),
    )


def _named(side: _Side) -> Side:
    cell = side.cell
    samples = all(run.session.steps.samples_per_second for run in cell.judged)
    count = sum(run.session.training.lost_at is not None for run in cell.judged)
    lost = runs_of(count, len(cell.judged), cell.label) if count else ""
    return Side(cell.label, cell.environment, len(side.values), cell.setting, samples, lost)


def _workload(case: Case, recorded: Mapping[str, JSON]) -> dict[str, JSON]:
    told = "name", "kind", "arguments", "parameters"
    if case.workload is None:
        return {key: recorded.get(key) for key in told}
    return those(case.workload, *told)


def _place_left_in(contrast: Contrast, label: str, margin: float) -> list[str]:
    """The change that the values show, if the effect of the place in the block moves it by more
    than ``margin``, or decides whether it excludes zero."""
    judged = contrast.verdict.change
    ratios = [ratio for ratio in contrast.ratios if ratio is not None]
    if judged is None or not contrast.verdict.paired:
        return []
    plain = interval([math.log(ratio) for ratio in ratios], judged.level)
    if plain is None:
        return []
    moved = abs(math.log1p(plain.estimate) - math.log1p(judged.estimate)) > math.log1p(margin)
    if not moved and (plain.low <= 0 <= plain.high) is (judged.low <= 0 <= judged.high):
        return []
    return [
        f"{label}: the estimated effect of the order within a block is taken out of the change; "
        f"with it the typical one is {change_text(plain)}"
    ]


def _notes(
    case: Case,
    metric: str,
    sides: Sequence[_Side],
    base: int,
    contrasts: Sequence[Contrast],
    across_devices: bool,
) -> list[str]:
    notes = []
    first = case.environments[0] if case.environments else sides[0].cell.label
    lacks = {side.cell.label: side.cell.lack.text for side in sides if side.cell.lack}
    if len(sides) > 1 and sides[base].cell.label != first and sides[base].values:
        why = lacks.pop(first, f"{first} gave no value")
        notes.append(f"{why}: {sides[base].cell.label} {IS_BASELINE}")
    if metric == WHOLE_RUN and len(sides) > 1 and any(side.values for side in sides):
        notes.append("no run reports steps: whole runs are compared, start-up included")
    for side in sides:
        notes += [lacks[side.cell.label]] if side.cell.label in lacks else []
        ends = [run.session.steps.known_until_seconds for run in side.cell.judged]
        cut = [known for known in ends if known is not None]
        if cut:
            who = runs_of(len(cut), len(side.cell.judged), side.cell.label)
            notes.append(
                f"{who}: nothing is known of the output after {min(cut):.1f} s, and steps in it "
                "are not counted"
            )
        late = [run.steady for run in side.cell.judged if run.steady.late]
        if late:
            who = runs_of(len(late), len(side.cell.judged), side.cell.label)
            notes.append(f"{who}: {steady_state.late_note(late)}")
    for contrast in contrasts:
        cells = (sides[base].cell, sides[contrast.other].cell)
        notes += validity.device_differences(*cells) if across_devices else []
        notes += _place_left_in(contrast, cells[1].label, case.margin)
    return list(dict.fromkeys([*notes, *_remarks(sides, base, contrasts)]))


def _remarks(sides: Sequence[_Side], base: int, contrasts: Sequence[Contrast]) -> list[str]:
    """What no verdict has as its reason, the same of several cells in one line."""
    baseline = sides[base].cell
    alike = grouped(
        (text, cell.label)
        for contrast in contrasts
        for cell in [sides[contrast.other].cell]
        for text in validity.remarks(baseline, replace(cell, label=_NAMES))
        if text.replace(_NAMES, cell.label) not in contrast.verdict.reasons
    )
    return [text.replace(_NAMES, " and ".join(labels)) for text, labels in alike.items()]
