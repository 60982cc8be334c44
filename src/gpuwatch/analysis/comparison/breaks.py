"""Blocks whose runs are far apart because the study was stopped and resumed in between."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

from gpuwatch.analysis.comparison.cells import Read
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.core.models import mapping
from gpuwatch.core.text import clean
from gpuwatch.session.study.plan import WARM_UP, Plan

LONGEST_REST = 3600.0
"""Seconds between runs of a block above which they no longer share drift."""
_MOST_NAMED = 5
_LONGEST_NAME = 60


def far_apart(reads: Sequence[Read], plan: Plan) -> list[str]:
    """A note for each part of ``plan`` with judged blocks interrupted for more than an hour or
    by a restart of the machine."""
    by_file = {Path(read.summary.path).name: read.summary for read in reads}
    blocks: dict[tuple[int, int], list[Summary]] = {}
    for run in plan.runs:
        if run.block is not None and run.block != WARM_UP and run.file in by_file:
            blocks.setdefault((run.part, run.block), []).append(by_file[run.file])
    broken: dict[int, list[int]] = {}
    for (part, block), sessions in blocks.items():
        if _broken(sessions):
            broken.setdefault(part, []).append(block)
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
    names = ", ".join(map(str, blocks[:_MOST_NAMED]))
    more = f" and {len(blocks) - _MOST_NAMED} more" if len(blocks) > _MOST_NAMED else ""
    name = clean(plan.parts[part].name, _LONGEST_NAME) if len(plan.parts) > 1 else ""
    word, their = ("block", "its") if len(blocks) == 1 else ("blocks", "their")
    return (
        f"{f'{name}: ' if name else ''}the runs of {word} {names}{more} lie far apart (more "
        "than an hour, or a restart of the machine, between them): what the machine did in "
        f"between is in {their} ratios"
    )
