"""Preview of a study: what it will do and how long it will take."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from textwrap import fill

from gpuwatch.cli.plan.block_order import DONE, IMPOSSIBLE, lines
from gpuwatch.cli.screen import terminal
from gpuwatch.cli.selection import session_lookup
from gpuwatch.core.errors import GpuwatchError, UsageError
from gpuwatch.core.json_schema import JSON_SCHEMA
from gpuwatch.core.models import JSON, Problem
from gpuwatch.core.shell_line import in_bash, operator_among
from gpuwatch.core.text import clean, document, shell
from gpuwatch.recorder.request import Request, given_to, preflight
from gpuwatch.recorder.resume import missing
from gpuwatch.session.study.estimate import KnownTimes, about, cell, history
from gpuwatch.session.study.plan import Part, Plan, PlannedRun, case_label, read, unique


def announce(request: Request, say: Callable[[str], None]) -> None:
    """Announce the plan of several runs; for a single run only warn about a shell operator."""
    cases = [case for part in request.parts for case in part.workloads]
    for words in dict.fromkeys(case.arguments for case in cases if case.kind == "command"):
        if operator := operator_among(words):
            line = " ".join(word if word == operator else shell(word) for word in words)
            say(f"{operator!r} goes to {words[0]} as it is; for a shell: -- {in_bash(line)}")
    plan = _plan(request)
    if len(plan.runs) > 1:
        for line in [*_parts(plan), _time(plan, request)]:
            say(line)


def shown(request: Request, arguments: argparse.Namespace) -> bool:
    """Print the plan in ``--format`` if ``--plan`` is given; returns whether it was.

    Raises:
        UsageError: ``--format`` without ``--plan``.
    """
    if arguments.format is not None and not arguments.plan:
        raise UsageError("--format applies only to --plan", "add --plan")
    if not arguments.plan:
        return False
    if arguments.format == "json":
        print(document(json.dumps(as_json(request), indent=2, ensure_ascii=False)))
    else:
        print(order(request, drawn=getattr(arguments, "order_seed", 0) is None))
    return True


def order(request: Request, *, drawn: bool) -> str:
    """The full plan as text, one line per block.

    ``drawn``: the order's seed was drawn, so the next command would draw another one.
    """
    plan = _plan(request)
    width = terminal.columns()
    rest = _rest(plan, request)
    problems = _problems(request, rest)
    waiting = {run.index for run in rest}
    marks = {run.index: DONE for run in plan.runs if run.index not in waiting}
    marks |= dict.fromkeys(problems, IMPOSSIBLE)
    text = []
    for place, head in enumerate(_parts(plan)):
        text += [_filled(head, width), *lines(plan, place, marks, width)]
    if len(plan.parts) > 1:
        text.append(f"{len(plan.runs)} runs in {len(plan.parts)} parts")
    text += [_filled(line, width) for line in _cannot(plan, problems)]
    text.append(_filled(_time(plan, request), width))
    if drawn and plan.seed is not None:
        text.append(_filled(f"add --order-seed {plan.seed} to run this order", width))
    return "\n".join(text)


def _filled(text: str, width: int) -> str:
    return fill(clean(text), width, subsequent_indent="  ")


def _problems(request: Request, runs: Sequence[PlannedRun]) -> Mapping[int, Sequence[Problem]]:
    """Run index -> why that run could not be started now."""
    try:
        return preflight(request, runs, given_to(request))
    except GpuwatchError as error:  # the requested GPUs are not here
        return {run.index: [Problem("gpus", error.message, error.hint)] for run in runs}


def _cannot(plan: Plan, problems: Mapping[int, Sequence[Problem]]) -> list[str]:
    """Each reason once, with the environments it concerns."""
    labels: dict[str, dict[str, None]] = {}
    for index, (first, *_) in problems.items():
        reason = f"{first.text}; {first.hint}" if first.hint else first.text
        labels.setdefault(reason, {})[plan.runs[index - 1].environment.label] = None
    return [f"{', '.join(names)} cannot run here: {reason}" for reason, names in labels.items()]


def _plan(request: Request) -> Plan:
    return (read(request.resume) if request.resume else None) or request.plan()


def _rest(plan: Plan, request: Request) -> Sequence[PlannedRun]:
    """The runs that are still to be done."""
    return missing(request.resume, plan) if request.resume else plan.runs


def _parts(plan: Plan) -> list[str]:
    """One line describing each part."""
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


def as_json(request: Request) -> dict[str, JSON]:
    """The plan, the problems of its runs, and its duration; schema 1 of ``docs/json.md``."""
    plan = _plan(request)
    rest = _rest(plan, request)
    problems = _problems(request, rest)
    waiting = {run.index for run in rest}
    seconds, reason = _seconds(plan, request)
    return {
        "schema": JSON_SCHEMA,
        "order_seed": plan.seed,
        "parts": [_part_json(part) for part in plan.parts],
        "runs": [
            {
                "index": run.index,
                "part": run.part,
                "block": run.block,
                "case": plan.parts[run.part].workloads.index(run.workload),
                "environment": plan.parts[run.part].environments.index(run.environment),
                "done": run.index not in waiting,
                "problems": [asdict(problem) for problem in problems.get(run.index, ())],
            }
            for run in plan.runs
        ],
        "seconds": seconds,
        "reason": reason or None,
    }


def _part_json(part: Part) -> dict[str, JSON]:
    return {
        "name": part.name,
        "cases": [
            {
                "label": case_label(case, part.workloads),
                "name": case.name,
                "kind": case.kind,
                "arguments": list(case.arguments),
                "parameters": dict(case.parameters),
            }
            for case in part.workloads
        ],
        "environments": [
            {"label": each.label, "kind": each.kind, "image": each.image}
            for each in part.environments
        ],
        "blocks": part.blocks,
        "warmup_blocks": part.warmup_blocks,
        "margin": part.margin,
        "cool_down_seconds": part.cool_down,
    }


def _time(plan: Plan, request: Request) -> str:
    """The expected duration, in words."""
    runs = _rest(plan, request)
    done = f"{len(plan.runs) - len(runs)} of {len(plan.runs)} runs are done; " * bool(
        request.resume
    )
    seconds, reason = _seconds(plan, request)
    if seconds is not None:
        return f"{done}it takes {about(seconds)}, by earlier runs of the same"
    first = "first block" if plan.parts[0].blocks else "first run"
    when = f"{done}how long it takes is not known before the {first} is over"
    return f"{when}: {reason}" if reason else when


def _seconds(plan: Plan, request: Request) -> tuple[float | None, str]:
    """Expected duration in s from earlier runs on this host, or ``None`` and the reason."""
    runs = _rest(plan, request)
    cells = [cell(run) for run in runs]
    known = history(session_lookup.known_sessions(), dict.fromkeys(cells))
    if request.duration is not None:
        known = KnownTimes(
            {each: [min(t, request.duration) for t in times] for each, times in known.runs.items()},
            known.pauses,
        )
    seconds = known.left(cells, len(cells) - 1)
    if seconds is not None:
        return seconds + sum(plan.parts[run.part].cool_down for run in runs[1:]), ""
    new = [run for run in runs if cell(run) not in known.runs]
    if not new:
        return None, "no earlier study of several runs"
    cases = unique(run.workload for run in plan.runs)
    name = f"{case_label(new[0].workload, cases)} in {new[0].environment.label}"
    return None, f"no earlier run of {name} that finished"
