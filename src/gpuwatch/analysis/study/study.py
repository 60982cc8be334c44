"""From the sessions of a study to its result: cells, verdicts, explanations, tables."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from gpuwatch.analysis.comparison.cells import Case, Read
from gpuwatch.analysis.results import Kind, Question, StudyResult
from gpuwatch.analysis.study.grouping import grouped_cases, had_no_turn, planned_cases
from gpuwatch.analysis.study.notes import ONE_RUN_EACH, design, judged
from gpuwatch.analysis.study.overall import noise_floors, overalls, sweeps
from gpuwatch.analysis.study.question import question_of
from gpuwatch.analysis.summary.identity import at_once, sound
from gpuwatch.analysis.summary.load import disturbances
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.core.aggregate import grouped
from gpuwatch.core.models import mapping
from gpuwatch.core.text import clean, listed
from gpuwatch.session.study.plan import MARGIN, WARM_UP, Plan
from gpuwatch.session.study.study_folder import NotRun

LONGEST_REST = 3600.0
"""Seconds between runs of a block above which they no longer share drift."""
_MOST_BLOCKS = 5
_LONGEST_NAME = 60


def far_apart(reads: Sequence[Read], plan: Plan) -> list[str]:
    """A note for each part of ``plan`` with judged blocks interrupted for more than an hour or
    by a restart of the machine."""
    by_file = {Path(read.summary.path).name: read.summary for read in reads}
    blocks = grouped(
        ((run.part, run.block), by_file[run.file])
        for run in plan.runs
        if run.block is not None and run.block != WARM_UP and run.file in by_file
    )
    broken = grouped(key for key, sessions in blocks.items() if _broken(sessions))
    return [_note(plan, part, numbers) for part, numbers in broken.items()]


def _broken(sessions: Sequence[Summary]) -> bool:
    boots = {
        str(boot)
        for session in sessions
        if (boot := mapping(session.facts.get("host")).get("host.boot.id")) is not None
    }
    spans = sorted(
        (session.started_unix, session.started_unix + (session.seconds or 0.0))
        for session in sessions
        if session.started_unix is not None
    )
    rests = (after[0] - before[1] for before, after in itertools.pairwise(spans))
    return len(boots) > 1 or any(rest > LONGEST_REST for rest in rests)


def _note(plan: Plan, part: int, blocks: Sequence[int]) -> str:
    names = listed([*map(str, blocks)], _MOST_BLOCKS)
    name = clean(plan.parts[part].name, _LONGEST_NAME) if len(plan.parts) > 1 else ""
    word, their = ("block", "its") if len(blocks) == 1 else ("blocks", "their")
    return (
        f"{f'{name}: ' if name else ''}the runs of {word} {names} lie far apart (more "
        "than an hour, or a restart of the machine, between them): what the machine did in "
        f"between is in {their} ratios"
    )


_MOST_NAMED = 3


def study_result(
    sessions: Sequence[Read],
    plan: Plan | None,
    not_run: Sequence[NotRun],
    *,
    title: str,
    to_come: int = 0,
    may_follow: bool = False,
    across_devices: bool,
    across_commands: bool,
    margin: float | None,
    notes: Sequence[str],
    doubt: str | None = None,
) -> StudyResult:
    """The result of a study's ``sessions``.

    Args:
        may_follow: runs are to come, or would be if the study was resumed.
        margin: replaces the plan's.
        across_devices: makes different GPUs or processors a note instead of an INVALID verdict.
        across_commands: compares different commands where there is no plan.
        notes: stand before the result's own.
        doubt: why no comparison gets a verdict.
    """
    if plan is not None and margin is not None:
        plan = replace(plan, parts=tuple(replace(part, margin=margin) for part in plan.parts))
    strangers: list[Read] = []
    if plan is None:
        cases = grouped_cases(
            sessions, MARGIN if margin is None else margin, across_commands=across_commands
        )
    else:
        goes_on = to_come > 0 or any(read.summary.status.live for read in sessions)
        cases, strangers = planned_cases(
            sessions, plan, not_run, goes_on=goes_on, may_follow=may_follow
        )
    cases = [replace(case, doubt=doubt) for case in cases]
    by_case = [
        (case, question_of(case, across_devices=across_devices) if case.groups else None)
        for case in cases
    ]
    questions = tuple(question for _, question in by_case if question is not None)
    runs, never = judged(questions), sum(map(had_no_turn, not_run))
    ended = []
    if never and plan is not None:
        ended = [f"ended early: {never} of {len(plan.runs)} runs never began"]
    order = {} if plan is None else {run.file: run.index for run in plan.runs}

    def in_plan(session: Summary) -> float:
        """What a plan does not name comes last."""
        return order.get(Path(session.path).name, math.inf)

    return StudyResult(
        title=title,
        plan=plan,
        questions=questions,
        overall=tuple(overalls(questions, plan)),
        sweeps=() if plan is None else tuple(sweeps(by_case, plan)),
        noise=tuple(noise_floors(by_case)),
        not_run=tuple(not_run),
        to_come=to_come,
        notes=(
            *notes,
            *ended,
            *(() if plan is None else far_apart(sessions, plan)),
            *_notes(plan, cases, questions, strangers),
            *(disturbances(runs) if any(map(sound, runs)) else ()),
        ),
        sessions=tuple(sorted((read.summary for read in sessions), key=in_plan)),
    )


def _notes(
    plan: Plan | None,
    cases: Sequence[Case],
    questions: Sequence[Question],
    strangers: Sequence[Read],
) -> Iterator[str]:
    """Notes on the study as a whole."""
    if strangers:
        names = [clean(Path(read.summary.path).name) for read in strangers]
        yield f"not of this study's plan, and left out: {listed(names, _MOST_NAMED)}"
    compared = [question for question in questions if question.contrasts]
    if questions and plan is None and not compared and len(strangers) + len(cases) > 1:
        names = list(dict.fromkeys(clean(question.label) for question in questions))
        kinds = {str(question.workload["kind"]) for question in questions}
        what, flag = "workloads", ""
        if kinds == {"command"}:
            what, flag = "commands", " (--across-commands compares them)"
            if at_once(judged(questions)):
                flag += "; their runs overlapped in time on one machine: they disturbed each other"
        yield (
            f"{Kind.INVALID.word}: a built-in workload against a program of your own; only their "
            "figures"
            if kinds == {"command", "workload"}
            else f"{Kind.INVALID.word}: different {what}: {', '.join(names)}{flag}"
        )
    alone = [each for each in questions if not each.contrasts]
    if compared and plan is None and alone:
        single = all(len(cell.runs) == 1 for each in alone for cell in each.cells)
        these = ", ".join(clean(each.label) for each in alone)
        of = "session" if single else "environment"
        yield f"of one {of} alone, so not compared: {these}"
    cells = [cell for question in compared for cell in question.cells]
    unpaired = plan is None or all(part.blocks is None for part in plan.parts)
    if cells and all(len(cell.runs) == 1 for cell in cells) and unpaired:
        yield ONE_RUN_EACH
    if plan is not None and any(run.block is not None for run in plan.runs):
        yield design(plan)
