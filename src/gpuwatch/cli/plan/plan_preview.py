"""Preview of a study: what it will do and how long it will take."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from textwrap import fill

from gpuwatch.cli.plan import dry_run
from gpuwatch.cli.plan.block_order import DONE, IMPOSSIBLE, lines
from gpuwatch.cli.say import say
from gpuwatch.cli.screen import terminal
from gpuwatch.cli.selection import session_lookup
from gpuwatch.core.errors import UsageError
from gpuwatch.core.json_schema import JSON_SCHEMA
from gpuwatch.core.models import JSON, Problem
from gpuwatch.core.shell_line import in_bash, operator_among
from gpuwatch.core.text import clean, document, shell
from gpuwatch.recorder.request import Request, ResolvedPlan, resolve_plan
from gpuwatch.session.study.estimate import KnownTimes, about, cell, history
from gpuwatch.session.study.plan import Part, Plan, PlannedRun, case_label, unique


def announce(request: Request) -> None:
    """Announce the plan of several runs; for a single run only warn about a shell operator."""
    cases = [case for part in request.plan.parts for case in part.workloads]
    for words in dict.fromkeys(case.arguments for case in cases if case.kind == "command"):
        if operator := operator_among(words):
            line = " ".join(word if word == operator else shell(word) for word in words)
            say(f"{operator!r} goes to {words[0]} as it is; for a shell: -- {in_bash(line)}")
    if len(request.plan.runs) > 1:
        for line in [*_parts(request.plan), _time(request, request.todo)]:
            say(line)


def shown(request: Request, arguments: argparse.Namespace) -> bool:
    """Print what ``--plan`` or ``--dry-run`` asks for in ``--format``; returns whether either was
    given.

    Raises:
        UsageError: ``--format`` without them.
    """
    if not (arguments.plan or arguments.dry_run):
        if arguments.format is not None:
            raise UsageError("--format applies only to --plan and --dry-run", "add --dry-run")
        return False
    from gpuwatch.cli.place.outlook import outlook

    resolved = resolve_plan(request)
    launches = dry_run.launches(resolved, say) if arguments.dry_run else None
    if arguments.format == "json":
        value = as_json(resolved)
        if launches is not None:
            value["launches"] = [dry_run.as_json(launch) for launch in launches]
        print(document(json.dumps(value, indent=2, ensure_ascii=False)))
    else:
        print(order(resolved))
        for place in request.on:
            for line in outlook(place, request.plan.parts, whole=arguments.dry_run):
                print(line if line.startswith(("{", " ", "}")) else _whole_words(line))
        for launch in launches or ():
            print("", *dry_run.lines(launch, terminal.columns()), sep="\n")
    return True


def _whole_words(text: str) -> str:
    """``text`` in lines that break no path or option."""
    return fill(
        text,
        terminal.columns(),
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def order(resolved: ResolvedPlan) -> str:
    """The full plan as text, one line per block."""
    plan, problems = resolved.request.plan, resolved.problems
    width = terminal.columns()
    waiting = {run.index for run in resolved.todo}
    marks = {run.index: DONE for run in plan.runs if run.index not in waiting}
    marks |= dict.fromkeys(problems, IMPOSSIBLE)
    text = []
    for place, head in enumerate(_parts(plan)):
        text += [_filled(head, width), *lines(plan, place, marks, width)]
    if len(plan.parts) > 1:
        text.append(f"{len(plan.runs)} runs in {len(plan.parts)} parts")
    text += [_filled(line, width) for line in _cannot(plan, problems)]
    text.append(_filled(_time(resolved.request, resolved.todo), width))
    if resolved.request.drawn and plan.seed is not None:
        text.append(_filled(f"add --order-seed {plan.seed} to run this order", width))
    return "\n".join(text)


def _filled(text: str, width: int) -> str:
    return fill(clean(text), width, subsequent_indent="  ")


def _cannot(plan: Plan, problems: Mapping[int, Sequence[Problem]]) -> list[str]:
    """Each reason once, with the environments it concerns."""
    labels: dict[str, dict[str, None]] = {}
    for index, (first, *_) in problems.items():
        reason = f"{first.text}; {first.hint}" if first.hint else first.text
        labels.setdefault(reason, {})[plan.runs[index - 1].environment.label] = None
    return [f"{', '.join(names)} cannot run here: {reason}" for reason, names in labels.items()]


def _parts(plan: Plan) -> list[str]:
    """One line describing each part."""
    return [
        (f"{part.name}: " if len(plan.parts) > 1 else "")
        + _design(part, sum(run.part == place for run in plan.runs), plan.seed)
        for place, part in enumerate(plan.parts)
    ]


def _design(part: Part, runs: int, seed: int | None) -> str:
    where = ", ".join(environment.label for environment in part.environments)
    what = f"{len(part.workloads)} cases in {where}" if len(part.workloads) > 1 else where
    if part.compares_commands:
        what = (
            f"{', '.join(case_label(case, part.workloads) for case in part.workloads)} in {where}"
        )
    if part.blocks is None:
        return f"{runs} {'runs' if runs > 1 else 'run'}, each once: {what}"
    blocks = f"{part.blocks} {'blocks' if part.blocks > 1 else 'block'}"
    warm = " after a warm-up block" if part.warmup_blocks else ""
    return (
        f"{runs} runs, {blocks}{warm}: {what}; margin {part.margin * 100:g} %, "
        f"cool-down {part.cool_down:g} s, order seed {seed}"
    )


def as_json(resolved: ResolvedPlan) -> dict[str, JSON]:
    """The plan, the problems of its runs, and its duration: the keys are in ``docs/json.md``."""
    plan, problems = resolved.request.plan, resolved.problems
    waiting = {run.index for run in resolved.todo}
    seconds, reason = _seconds(plan, resolved.todo)
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
            {
                "label": environment.label,
                "kind": environment.kind,
                "image": environment.image,
                "variables": dict(environment.variables),
            }
            for environment in part.environments
        ],
        "blocks": part.blocks,
        "warmup_blocks": part.warmup_blocks,
        "margin": part.margin,
        "cool_down_seconds": part.cool_down,
    }


def _time(request: Request, todo: Sequence[PlannedRun]) -> str:
    """The expected duration, in words."""
    plan = request.plan
    done = f"{len(plan.runs) - len(todo)} of {len(plan.runs)} runs are done; " * bool(
        request.resume
    )
    seconds, reason = _seconds(plan, todo)
    if seconds is not None:
        return f"{done}it takes {about(seconds)}, by earlier runs of the same"
    first = "first block" if plan.parts[0].blocks else "first run"
    when = f"{done}the duration is unknown until the {first} is over"
    return f"{when}: {reason}" if reason else when


def _seconds(plan: Plan, todo: Sequence[PlannedRun]) -> tuple[float | None, str]:
    """Expected duration in s from earlier runs on this host, or ``None`` and the reason."""
    cells = [cell(run) for run in todo]
    known = history(session_lookup.known_sessions(), dict.fromkeys(cells))
    if (longest := plan.settings.duration_seconds) is not None:
        known = KnownTimes(
            {cell: [min(t, longest) for t in times] for cell, times in known.runs.items()},
            known.pauses,
        )
    seconds = known.left(cells, len(cells) - 1)
    if seconds is not None:
        return seconds + sum(plan.parts[run.part].cool_down for run in todo[1:]), ""
    new = [run for run in todo if cell(run) not in known.runs]
    if not new:
        return None, "no earlier study of several runs"
    cases = unique(run.workload for run in plan.runs)
    name = f"{case_label(new[0].workload, cases)} in {new[0].environment.label}"
    return None, f"no earlier run of {name} that finished"
