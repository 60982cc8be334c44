"""One case in several environments: its cells, and every other cell against the first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from gpuwatch.analysis.cells import (
    WHOLE_RUN,
    Case,
    Group,
    Lack,
    cell_of,
    lack_of,
    metric_of,
    valued,
)
from gpuwatch.analysis.explain import explain
from gpuwatch.analysis.results import Cell, Contrast, Explanation, Kind, Question, Verdict
from gpuwatch.analysis.study_table import table_of
from gpuwatch.analysis.validity import device_differences, disturbed_alike, invalid_reasons
from gpuwatch.analysis.verdict import invalid, paired, unpaired
from gpuwatch.analysis.wording import Side, sentence
from gpuwatch.models import JSON

MOST_LACKING = 0.2
"""Share of one side's runs without a value, above which nothing can be told: what is left may be
what went well."""
_NOTHING = Explanation((), (), (), None)


@dataclass(frozen=True)
class _Side:
    """A cell, and what its runs say."""

    cell: Cell
    by_block: Mapping[int, float]
    """Values of the judged blocks."""
    values: tuple[float, ...]
    lack: Lack | None


def question_of(case: Case, *, across_devices: bool) -> Question:
    """The question that ``case`` asks; its groups are not empty."""
    metric = metric_of(case.groups)
    sides = [_side(group, metric, case.blocks) for group in case.groups]
    base = next((at for at, side in enumerate(sides) if side.values), 0)
    others = [at for at in range(len(sides)) if at != base]
    verdicts = _verdicts(case, sides[base], [sides[at] for at in others], across_devices)
    cells = tuple(side.cell for side in sides)
    contrasts = tuple(
        _contrast(case, metric, sides, base, at, verdict)
        for at, verdict in zip(others, verdicts, strict=True)
    )
    told = cells[base].runs[0].session.workload
    table, table_notes = table_of(cells, contrasts, metric, paired=case.blocks is not None)
    return Question(
        label=case.label,
        part=case.part,
        workload=_workload(case, told),
        metric=metric,
        cells=cells,
        contrasts=contrasts,
        table=table,
        notes=(*_notes(case, metric, sides, base, across_devices), *table_notes),
    )


def _side(group: Group, metric: str, blocks: Sequence[int] | None) -> _Side:
    cell = cell_of(group, metric)
    known = valued(cell)
    judged = set(blocks or ())
    return _Side(
        cell=cell,
        by_block={
            run.block: run.value
            for run in known
            if run.block in judged and run.block is not None and run.value is not None
        },
        values=tuple(run.value for run in known if run.value is not None),
        lack=lack_of(cell, group.absent, group.to_come),
    )


def _verdicts(
    case: Case, baseline: _Side, others: Sequence[_Side], across_devices: bool
) -> list[Verdict]:
    """In the order of ``others``; those that may be judged share Holm's procedure."""
    found: dict[int, Verdict] = {}
    logs: dict[int, list[float]] = {}
    for at, other in enumerate(others):
        reasons = invalid_reasons(baseline.cell, other.cell, across_devices=across_devices)
        if reasons:
            pairs = (
                min(len(baseline.values), len(other.values))
                if case.blocks is None
                else len(baseline.by_block.keys() & other.by_block.keys())
            )
            found[at] = invalid(reasons, case.margin, case.blocks is not None, pairs)
        elif case.blocks is None:
            logs[at] = [math.log(value) for value in other.values]
        else:
            shared = [block for block in case.blocks if _in_both(baseline, other, block)]
            logs[at] = [
                math.log(other.by_block[block]) - math.log(baseline.by_block[block])
                for block in shared
            ]
    if case.blocks is None:
        first = [math.log(value) for value in baseline.values]
        judged = unpaired(first, list(logs.values()), case.margin)
    else:
        judged = paired(list(logs.values()), case.margin)
    for at, verdict in zip(logs, judged, strict=True):
        found[at] = _with_lack(verdict, (baseline, others[at]))
    return [found[at] for at in range(len(others))]


def _in_both(one: _Side, other: _Side, block: int) -> bool:
    return block in one.by_block and block in other.by_block


def _with_lack(verdict: Verdict, sides: Sequence[_Side]) -> Verdict:
    """CAN'T TELL where too many runs of a side gave no value, whatever the others say."""
    lacks = [side.lack.text for side in sides if side.lack and side.lack.share > MOST_LACKING]
    if not lacks:
        return verdict
    return replace(verdict, kind=Kind.CANT_TELL, reasons=tuple(lacks), more_blocks=None)


def _contrast(
    case: Case, metric: str, sides: Sequence[_Side], base: int, at: int, verdict: Verdict
) -> Contrast:
    baseline, other = sides[base], sides[at]
    known = bool(baseline.cell.judged and other.cell.judged)
    explanation = explain(baseline.cell, other.cell, case.margin) if known else _NOTHING
    ratios = (
        tuple(
            other.by_block[block] / baseline.by_block[block]
            if _in_both(baseline, other, block)
            else None
            for block in case.blocks
        )
        if case.blocks is not None and verdict.kind is not Kind.INVALID
        else ()
    )
    return Contrast(
        baseline=base,
        other=at,
        verdict=verdict,
        ratios=ratios,
        explanation=explanation,
        sentence=sentence(
            _named(baseline),
            _named(other),
            verdict,
            metric=metric,
            evidence=explanation.evidence,
            blocks_to_come=_to_come(case, baseline, other),
        ),
    )


def _named(side: _Side) -> Side:
    return Side(side.cell.label, side.cell.environment, len(side.values))


def _to_come(case: Case, *sides: _Side) -> int:
    """Blocks in which a run of either is still to be made, or goes on."""
    if case.blocks is None or not case.goes_on:
        return 0
    over = [{run.block for run in side.cell.runs if not run.session.status.live} for side in sides]
    return sum(any(block not in of for of in over) for block in case.blocks)


def _workload(case: Case, told: Mapping[str, JSON]) -> dict[str, JSON]:
    planned = case.workload
    if planned is None:
        return {key: told.get(key) for key in ("name", "kind", "arguments", "parameters")}
    return {
        "name": planned.name,
        "kind": planned.kind,
        "arguments": list(planned.arguments),
        "parameters": dict(planned.parameters),
    }


def _notes(
    case: Case, metric: str, sides: Sequence[_Side], base: int, across_devices: bool
) -> list[str]:
    notes = []
    first = case.environments[0] if case.environments else sides[0].cell.label
    if len(sides) > 1 and sides[base].cell.label != first and sides[base].values:
        notes.append(
            f"{first} gave no value: the others are compared with {sides[base].cell.label}"
        )
    if metric == WHOLE_RUN and len(sides) > 1:
        notes.append("no run reports steps: whole runs are compared, start-up included")
    notes += [side.lack.text for side in sides if side.lack]
    for at, side in enumerate(sides):
        if at != base:
            cells = (sides[base].cell, side.cell)
            notes += device_differences(*cells) if across_devices else []
            notes += disturbed_alike(*cells)
    return list(dict.fromkeys(notes))
