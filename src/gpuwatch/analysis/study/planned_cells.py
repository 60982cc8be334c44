"""The cells of a plan: its cases in their environments, and which runs took place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from gpuwatch.analysis.comparison.cells import Case, Group, Placed, Read, numbered
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.text import clean
from gpuwatch.session.study.plan import WARM_UP, Part, Plan, PlannedRun, case_label
from gpuwatch.session.study.study_folder import STUDY_ENDED, NotRun

LONGEST = 60
"""Most characters of a label."""

Runs = dict[tuple[int, int, int], list[PlannedRun]]
"""Runs by the indices of part, case and environment."""


def planned_cases(
    reads: Sequence[Read],
    plan: Plan,
    not_run: Sequence[NotRun],
    margin: float | None,
    *,
    goes_on: bool,
) -> tuple[list[Case], list[Read]]:
    """The cases of ``plan`` in its order, and the sessions that the plan does not name.

    A cell without a session has no group, and ``Case.why`` gives the reason; the first, the
    baseline, keeps its group while runs may follow. ``goes_on``: whether more runs may follow.
    """
    by_file = {Path(read.summary.path).name: read for read in reads}
    runs = _runs(plan)
    missing = {each.index: each for each in not_run if each.index is not None}
    names = _case_labels(plan)
    cases = []
    for index, part in enumerate(plan.parts):
        blocks = None if part.blocks is None else _blocks(plan, index)
        before = f"{clean(part.name, LONGEST)}: " if len(plan.parts) > 1 and part.name else ""
        for row in _rows(part, names[index], before):
            groups = []
            why: dict[str, str] = {}
            for place, cell in enumerate(row.cells):
                mine = runs.get((index, cell.case, cell.environment), [])
                label = clean(part.environments[cell.environment].label, LONGEST)
                group = _group(cell.label, label, mine, by_file, missing, goes_on)
                group = replace(group, setting=cell.setting)
                if group.placed or (place == 0 and group.to_come):
                    groups.append(group)
                elif group.not_run:
                    why[cell.label] = group.not_run[0].problems[0].text
            if not any(group.placed for group in groups):
                groups = []
            cases.append(
                Case(
                    label=row.label,
                    part=index,
                    groups=tuple(groups),
                    margin=part.margin if margin is None else margin,
                    blocks=blocks,
                    workload=part.workloads[row.cells[0].case],
                    environments=tuple(cell.label for cell in row.cells),
                    why=why,
                    goes_on=goes_on,
                    compares_commands=row.compares_commands,
                )
            )
    named = {run.file for run in plan.runs}
    return cases, [read for name, read in by_file.items() if name not in named]


@dataclass(frozen=True)
class _Cell:
    """The places of a future cell in its part."""

    label: str
    case: int
    environment: int
    setting: int
    """As in :class:`Group`."""


@dataclass(frozen=True)
class _Row:
    """Cells that are compared with the first."""

    label: str
    cells: tuple[_Cell, ...]
    compares_commands: bool = False


def _rows(part: Part, names: Sequence[str], before: str) -> list[_Row]:
    """The questions of ``part``, whose cases are called ``names``; ``before`` names the part.

    Each case in all environments. Where commands are compared: all commands in each environment,
    then, with several environments, each command in all.
    """
    environments = numbered([clean(each.label, LONGEST) for each in part.environments])
    settings = _alike([replace(each, label="") for each in part.environments])
    of_cases = [
        _Row(
            name,
            tuple(_Cell(label, case, at, settings[at]) for at, label in enumerate(environments)),
        )
        for case, name in enumerate(names)
    ]
    if not part.compares_commands or len(names) < 2:
        return of_cases
    commands = numbered([clean(case_label(each, ()), LONGEST) for each in part.workloads])
    settings = _alike([replace(each, label=None) for each in part.workloads])
    of_commands = [
        _Row(
            f"{before}commands in {environment}",
            tuple(_Cell(label, case, at, settings[case]) for case, label in enumerate(commands)),
            compares_commands=True,
        )
        for at, environment in enumerate(environments)
    ]
    return [*of_commands, *of_cases] if len(environments) > 1 else of_commands


Item = TypeVar("Item")


def _alike(items: Sequence[Item]) -> list[int]:
    """For each item the place of the first that equals it."""
    return [items.index(each) for each in items]


def _group(
    label: str,
    environment: str,
    runs: Sequence[PlannedRun],
    by_file: dict[str, Read],
    missing: dict[int, NotRun],
    goes_on: bool,
) -> Group:
    without = [run for run in runs if run.file not in by_file]
    absent = [run for run in without if run.index in missing]
    tried = [run for run in absent if not had_no_turn(missing[run.index])]
    judged = [run for run in tried if run.block != WARM_UP]
    later = [run for run in without if run.index not in missing]
    return Group(
        label=label,
        environment=environment,
        placed=tuple(Placed(by_file[run.file], run.block) for run in runs if run.file in by_file),
        not_run=tuple(missing[run.index] for run in absent),
        absent=tuple(run.block for run in judged),
        in_part=sum(missing[run.index].in_part for run in judged),
        to_come=tuple(run.block for run in later if goes_on and run.block != WARM_UP),
    )


def had_no_turn(of: NotRun) -> bool:
    """Whether the study ended before the run started, so that the run itself did not fail."""
    return any(problem.code == STUDY_ENDED for problem in of.problems)


def _blocks(plan: Plan, part: int) -> tuple[int, ...]:
    """The judged blocks of a part, at most as many as the plan has runs."""
    last = max((run.block or 0 for run in plan.runs if run.part == part), default=0)
    return tuple(range(WARM_UP + 1, min(last, len(plan.runs)) + 1))


def _runs(plan: Plan) -> Runs:
    runs: Runs = {}
    cases = [_places(part.workloads) for part in plan.parts]
    environments = [_places(part.environments) for part in plan.parts]
    for run in plan.runs:
        part = plan.parts[run.part]
        key = (
            run.part,
            _place(run.workload, part.workloads, cases[run.part]),
            _place(run.environment, part.environments, environments[run.part]),
        )
        runs.setdefault(key, []).append(run)
    return runs


def _places(items: Sequence[Item]) -> dict[int, int]:
    return {id(item): place for place, item in enumerate(items)}


def _place(item: Item, items: Sequence[Item], known: dict[int, int]) -> int:
    """Index of ``item``, by identity if possible: runs of a plan share their part's objects."""
    place = known.get(id(item))
    return items.index(item) if place is None else place


def _case_labels(plan: Plan) -> list[list[str]]:
    """Unique labels by part and case, with the part's name in front where needed."""
    labels = [
        [clean(case_label(each, part.workloads), LONGEST) for each in part.workloads]
        for part in plan.parts
    ]
    flat = [name for names in labels for name in names]
    if len(set(flat)) < len(flat):
        labels = [
            [f"{clean(part.name, LONGEST)}: {name}" if part.name else name for name in names]
            for part, names in zip(plan.parts, labels, strict=True)
        ]
    unlike = iter(numbered([name for names in labels for name in names]))
    return [[next(unlike) for _ in names] for names in labels]
