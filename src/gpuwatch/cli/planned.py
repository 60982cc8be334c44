"""What a study is going to do and how long it will take, told before it begins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from textwrap import fill

from gpuwatch.cli import find, screen
from gpuwatch.recorder.request import Request
from gpuwatch.recorder.resume import missing
from gpuwatch.session.estimate import Known, about, cell, history
from gpuwatch.session.plan import WARM_UP, Part, Plan, PlannedRun, case_label, labels, read, unique
from gpuwatch.text import clean


def announce(request: Request, say: Callable[[str], None]) -> None:
    """Say what several runs are going to be; nothing of a single one."""
    plan = _plan(request)
    if len(plan.runs) > 1:
        for line in [*_parts(plan), _time(plan, request)]:
            say(line)


def order(request: Request) -> str:
    """The plan in full, block by block, for people."""
    plan = _plan(request)
    width = screen.columns()
    rest = {run.index for run in _rest(plan, request)}
    lines = [fill(clean(line), width, subsequent_indent="  ") for line in _parts(plan)]
    names = labels(plan.runs)
    for (part, block), runs in groupby(plan.runs, lambda run: (run.part, run.block)):
        name = {None: "once", WARM_UP: "warm-up"}.get(block, f"block {block}")
        of = f"{plan.parts[part].name}, " if len(plan.parts) > 1 else ""
        told = ", ".join(
            names[run.index - 1] + ("" if run.index in rest else " (done)") for run in runs
        )
        lines.append(fill(clean(f"{of}{name}: {told}"), width, subsequent_indent="    "))
    return "\n".join([*lines, fill(clean(_time(plan, request)), width, subsequent_indent="  ")])


def _plan(request: Request) -> Plan:
    return (read(request.resume) if request.resume else None) or request.plan()


def _rest(plan: Plan, request: Request) -> Sequence[PlannedRun]:
    """The runs that are still to be done."""
    return missing(request.resume, plan) if request.resume else plan.runs


def _parts(plan: Plan) -> list[str]:
    """What each part is, in a line."""
    return [
        (f"{part.name}: " if len(plan.parts) > 1 else "")
        + _design(part, sum(run.part == place for run in plan.runs), plan.seed)
        for place, part in enumerate(plan.parts)
    ]


def _design(part: Part, runs: int, seed: int | None) -> str:
    where = ", ".join(each.label for each in part.environments)
    what = f"{len(part.workloads)} cases in {where}" if len(part.workloads) > 1 else where
    if part.blocks is None:
        return f"{runs} {'runs' if runs > 1 else 'run'}, each once: {what}"
    blocks = f"{part.blocks} {'blocks' if part.blocks > 1 else 'block'}"
    warm = " after a warm-up block" if part.warmup_blocks else ""
    return (
        f"{runs} runs, {blocks}{warm}: {what}; margin {part.margin * 100:g} %, "
        f"cool-down {part.cool_down:g} s, order seed {seed}"
    )


def _time(plan: Plan, request: Request) -> str:
    """How long it takes, by what took place before on this host."""
    runs = _rest(plan, request)
    cells = [cell(run) for run in runs]
    known = history(find.known_sessions(), dict.fromkeys(cells))
    if request.duration is not None:
        known = Known(
            {each: [min(t, request.duration) for t in times] for each, times in known.runs.items()},
            known.pauses,
        )
    seconds = known.left(cells, len(cells) - 1)
    done = f"{len(plan.runs) - len(runs)} of {len(plan.runs)} runs are done; " * bool(
        request.resume
    )
    if seconds is not None:
        seconds += sum(plan.parts[run.part].cool_down for run in runs[1:])
        return f"{done}it takes {about(seconds)}, by earlier runs of the same"
    new = [run for run in runs if cell(run) not in known.runs]
    first = "first block" if plan.parts[0].blocks else "first runs"
    when = f"{done}how long it takes is not known before the {first} is over"
    if not new:
        return when
    cases = unique(run.workload for run in plan.runs)
    name = f"{case_label(new[0].workload, cases)} in {new[0].environment.label}"
    return f"{when}: no earlier run of {name} that finished"
