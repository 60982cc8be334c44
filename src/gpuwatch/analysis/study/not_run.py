"""Runs of a plan that did not take place, and its progress."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from gpuwatch.analysis.comparison.cells import ended_as_asked
from gpuwatch.analysis.results import StudyResult
from gpuwatch.analysis.summary.missing import with_counts
from gpuwatch.core.aggregate import grouped
from gpuwatch.core.units import counted
from gpuwatch.session.reading.status import FAILED
from gpuwatch.session.study.plan import Plan
from gpuwatch.session.study.plan import labels as planned
from gpuwatch.session.study.study_folder import NotRun


def not_run(result: StudyResult) -> list[tuple[str, str | None]]:
    """``3 of 18 runs did not run (block 5): REASON`` and the hint, once for each reason; with the
    environments if it does not concern all of them."""
    alike = grouped(((each.problems[0].text, each.hint), each) for each in result.not_run)
    return [(f"{_which(of, result.plan)}: {why}", hint) for (why, hint), of in alike.items()]


def to_come(result: StudyResult) -> list[str]:
    """How many runs are still to come, if any."""
    if not result.to_come:
        return []
    runs = counted(result.to_come, "run is", "runs are")
    return [f"{runs} still to come: this is what the others say so far"]


def _which(of: Sequence[NotRun], plan: Plan | None) -> str:
    known = {} if plan is None else {run.index: run for run in plan.runs}
    runs = [known[each.index] for each in of if each.index in known]
    labels = Counter(each.label for each in of)
    one = "was" if len(of) == 1 else "were"
    verb = f"{one} fetched in part" if of[0].in_part else "did not run"
    all_planned = () if plan is None else planned(plan.runs)
    if plan is None or len(runs) < len(of) or all(all_planned.count(e) == 1 for e in labels):
        return f"{with_counts(labels, labels)} {verb}"
    judged = all(run.block != 0 for run in runs)
    all_runs = [
        run
        for run, label in zip(plan.runs, all_planned, strict=True)
        if label in labels and (run.block != 0 or not judged)
    ]
    count = f"{len(of)} of {counted(len(all_runs), 'run')} {verb}"
    named = (
        "" if len(labels) > 1 and labels.keys() >= set(all_planned) else f"{', '.join(labels)}: "
    )
    blocks = sorted({run.block for run in runs if run.block is not None})
    return f"{named}{count}{f' ({_blocks(blocks)})' if blocks else ''}"


def _blocks(blocks: Sequence[int]) -> str:
    """``warm-up, blocks 3 to 5, 7``."""
    names = ["warm-up"] if blocks[0] == 0 else []
    judged = [block for block in blocks if block]
    # Numbers in a row are as far from their places.
    rows = groupby(enumerate(judged), lambda each: each[1] - each[0])
    spans = [[block for _, block in row] for _, row in rows]
    ranges = [str(span[0]) if len(span) == 1 else f"{span[0]} to {span[-1]}" for span in spans]
    if ranges:
        names.append(f"block{'' if len(judged) == 1 else 's'} {', '.join(ranges)}")
    return ", ".join(names)


def blocks_done(result: StudyResult, part: int) -> int:
    """The number of judged blocks of a part of which `resume` would repeat no run."""
    if result.plan is None:
        return 0
    over = {
        Path(each.path).name
        for each in result.sessions
        if each.status.state in FAILED or ended_as_asked(each)
    }
    blocks: dict[int, bool] = {}
    for run in result.plan.runs:
        if run.part == part and run.block:
            blocks[run.block] = blocks.get(run.block, True) and run.file in over
    return sum(blocks.values())
