"""What a study is going to do, printed before it begins: its order, its time, its launches."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import groupby
from operator import add
from string import ascii_uppercase
from textwrap import fill

from gpuwatch import runners
from gpuwatch.cli.say import say
from gpuwatch.cli.screen import terminal
from gpuwatch.cli.selection import session_lookup
from gpuwatch.core import paths
from gpuwatch.core.aggregate import grouped
from gpuwatch.core.errors import GpuwatchError, UsageError
from gpuwatch.core.json_schema import JSON_SCHEMA
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON, LaunchSpec, Prepared, Problem, number, those
from gpuwatch.core.shell_line import in_bash, operator_among
from gpuwatch.core.text import clean, document, shell, whole_words
from gpuwatch.core.units import counted, fact
from gpuwatch.recorder.observer import Observer
from gpuwatch.recorder.request import Request, ResolvedPlan, resolve_plan, with_files
from gpuwatch.session.study.estimate import KnownTimes, about, cell, history
from gpuwatch.session.study.plan import WARM_UP, Part, Plan, PlannedRun, case_label, labels, unique


def announce(request: Request) -> None:
    """Announce the plan of several runs; for a single run only warn about a shell operator."""
    cases = [case for part in request.plan.parts for case in part.workloads]
    for words in dict.fromkeys(case.arguments for case in cases if case.kind == "command"):
        if operator := operator_among(words):
            line = " ".join(word if word == operator else shell(word) for word in words)
            say(f"{operator!r} goes to {words[0]} as it is; for a shell: -- {in_bash(line)}")
    if len(request.plan.runs) > 1:
        from gpuwatch.analysis.samples.steady_state import FEWEST_STEPS
        from gpuwatch.analysis.statistics.intervals import FEWEST

        asked = [number(case.parameters.get("steps")) for case in cases]
        if few := [steps for steps in asked if steps is not None and steps < FEWEST_STEPS]:
            say(f"--steps {min(few):g} is too few for a verdict: {FEWEST_STEPS} are needed")
        compared = [p for p in request.plan.parts if len(p.workloads) + len(p.environments) > 2]
        if compared and (least := min(part.blocks or 1 for part in compared)) < FEWEST:
            runs = f"{counted(least, 'run')} of each"
            say(f"{runs} cannot give a verdict: {FEWEST} are needed, with --blocks {FEWEST}")
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
    from gpuwatch.cli.place.checking import outlook

    resolved = resolve_plan(request)
    listed = launches(resolved, say) if arguments.dry_run else None
    if arguments.format == "json":
        value = as_json(resolved)
        if listed is not None:
            value["launches"] = [_launch_json(launch) for launch in listed]
        print(document(json.dumps(value, indent=2, ensure_ascii=False)))
    else:
        print(order(resolved))
        for place in request.on:
            for line in outlook(place, request.plan.parts, whole=arguments.dry_run):
                json_ = line.startswith(("{", " ", "}"))
                print(line if json_ else "\n".join(whole_words(line, terminal.columns())))
        for launch in listed or ():
            print("", *_launch_lines(launch, terminal.columns()), sep="\n")
    return True


def order(resolved: ResolvedPlan) -> str:
    """The full plan as text, one line per block."""
    plan, problems = resolved.request.plan, resolved.problems
    width = terminal.columns()
    waiting = {run.index for run in resolved.todo}
    marks = {run.index: DONE for run in plan.runs if run.index not in waiting}
    marks |= dict.fromkeys(problems, IMPOSSIBLE)
    text = []
    for place, head in enumerate(_parts(plan)):
        text += [_filled(head, width), *blocks(plan, place, marks, width)]
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
    """Each reason once, with the environments it concerns, or the cases in them."""
    found: dict[str, dict[str, None]] = {}
    for index, (first, *_) in problems.items():
        reason = f"{first.text}; {first.hint}" if first.hint else first.text
        run = plan.runs[index - 1]
        name = run.environment.label
        if first.code == "workload-flags":
            name = f"{case_label(run.workload, plan.parts[run.part].workloads)} in {name}"
        found.setdefault(reason, {})[name] = None
    return [f"{', '.join(names)} cannot run here: {reason}" for reason, names in found.items()]


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
        names = ", ".join(case_label(case, part.workloads) for case in part.workloads)
        what = f"{names} in {where}"
    if part.blocks is None:
        return f"{counted(runs, 'run')}, each once: {what}"
    blocks = counted(part.blocks, "block")
    warm = " after a warm-up block" if part.warmup_blocks else ""
    return (
        f"{counted(runs, 'run')}, {blocks}{warm}: {what}; margin {part.margin * 100:g} %, "
        f"cool-down {part.cool_down:g} s, order seed {seed}"
    )


def as_json(resolved: ResolvedPlan) -> dict[str, JSON]:
    """The plan, the problems of its runs, and its duration: the keys are in ``docs/json.md``."""
    plan, problems = resolved.request.plan, resolved.problems
    waiting = {run.index for run in resolved.todo}
    seconds, reason = _seconds(resolved.request, resolved.todo)
    return {
        "schema": JSON_SCHEMA,
        "on": list(resolved.request.on),
        "order_seed": plan.seed,
        "parts": [_part_json(part) for part in plan.parts],
        "runs": [
            {
                **those(run, "index", "part", "block"),
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
                **those(case, "name", "kind", "arguments", "parameters"),
            }
            for case in part.workloads
        ],
        "environments": [
            those(environment, "label", "kind", "image", "variables")
            for environment in part.environments
        ],
        **those(part, "blocks", "warmup_blocks", "margin"),
        "cool_down_seconds": part.cool_down,
    }


def _time(request: Request, todo: Sequence[PlannedRun]) -> str:
    """The expected duration, in words."""
    plan = request.plan
    done = f"{len(plan.runs) - len(todo)} of {counted(len(plan.runs), 'run')} done; " * bool(
        request.resume
    )
    seconds, reason = _seconds(request, todo)
    if seconds is not None:
        return f"{done}it takes {about(seconds)}, by earlier runs of the same"
    first = "first block" if plan.parts[0].blocks else "first run"
    when = f"{done}the duration is unknown until the {first} is over"
    return f"{when}: {reason}" if reason else when


def _seconds(request: Request, todo: Sequence[PlannedRun]) -> tuple[float | None, str]:
    """Expected duration in s from earlier runs where it runs, or ``None`` and the reason."""
    plan, cells = request.plan, [cell(run) for run in todo]
    if len(request.on) > 1:
        return None, "it runs at several places"
    known = history(session_lookup.known_sessions(), cells, *request.on)
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
        return None, "no study of several runs among the newest sessions"
    cases = unique(run.workload for run in plan.runs)
    name = f"{case_label(new[0].workload, cases)} in {new[0].environment.label}"
    name += "".join(f" on {place}" for place in request.on)
    return None, f"no earlier run of {name} with these settings that finished"


DONE, IMPOSSIBLE = "done", "cannot run here"
_SIGNS = {DONE: "*", IMPOSSIBLE: "!"}


def blocks(plan: Plan, place: int, marks: Mapping[int, str], width: int) -> list[str]:
    """The blocks of the part at ``place``, each on one line if ``width`` columns allow it.

    Environments and cases have their names or, if these are too long, letters and numbers with a
    legend above. ``marks`` maps run indices to ``DONE`` or ``IMPOSSIBLE``.
    """
    part = plan.parts[place]
    runs = [run for run in plan.runs if run.part == place]
    once = {None: "once", WARM_UP: "warm-up"}
    named = [
        (once.get(number, f"block {number}"), list(group))
        for number, group in groupby(runs, lambda run: run.block)
    ]
    rows = [f"  {name}: {_words(part, block_runs, marks)}" for name, block_runs in named]
    if max(map(len, rows), default=0) <= width or len(part.environments) > len(ascii_uppercase):
        return [fill(line, width, subsequent_indent="    ") for line in rows]
    rows = [f"  {name}: {_codes(part, block_runs, marks)}" for name, block_runs in named]
    if len(plan.parts) > 2:  # side by side, so that all parts fit on a screen
        longest = max(map(len, rows)) + 1
        columns = max(1, width // longest)
        starts = range(0, len(rows), columns)
        rows = ["".join(f"{row:{longest}}" for row in rows[at : at + columns]) for at in starts]
    legend = [f"  {line}" for line in _legend(part, runs, marks)]
    return [fill(line, width, subsequent_indent="    ") for line in [*legend, *rows]]


def short(part: Part) -> tuple[str, ...]:
    """The environments of ``part`` by kind, or by label if that says more."""
    kinds = [environment.kind for environment in part.environments]
    named = not all(each.label.startswith(each.kind) for each in part.environments)
    labelled = named or len(set(kinds)) < len(kinds)
    names = [each.label for each in part.environments] if labelled else kinds
    return tuple(map(clean, names))


def _words(part: Part, runs: Sequence[PlannedRun], marks: Mapping[int, str]) -> str:
    """``mnist-cnn in bare, docker; gcn in docker, bare``, without a sole case or environment."""
    names = short(part)
    phrases = []
    for case, group in _by_case(part, runs):
        named = clean(case_label(part.workloads[case], part.workloads))
        signs = [f" ({marks[run.index]})" if run.index in marks else "" for run in group]
        if len(part.environments) == 1:
            phrases += [named + sign for sign in signs]
            continue
        places = (names[part.environments.index(run.environment)] for run in group)
        environments = ", ".join(map(add, places, signs))
        phrases.append(f"{named} in {environments}" if len(part.workloads) > 1 else environments)
    return "; ".join(phrases)


def _codes(part: Part, runs: Sequence[PlannedRun], marks: Mapping[int, str]) -> str:
    """``1BAC 2ACB``: case 1 in environments B, A, C, then case 2 in A, C, B."""
    codes, places = [], part.environments
    for case, group in _by_case(part, runs):
        number = str(case + 1) if len(part.workloads) > 1 else ""
        letters = "".join(
            (ascii_uppercase[places.index(run.environment)] if len(places) > 1 else "")
            + _SIGNS.get(marks.get(run.index, ""), "")
            for run in group
        )
        codes.append(number + letters)
    return " ".join(codes)


def _legend(part: Part, runs: Sequence[PlannedRun], marks: Mapping[int, str]) -> list[str]:
    entries = []
    if len(part.environments) > 1:
        pairs = zip(ascii_uppercase, short(part), strict=False)
        entries.append(", ".join(f"{letter} {name}" for letter, name in pairs))
    if len(part.workloads) > 1:
        cases = [clean(case_label(case, part.workloads)) for case in part.workloads]
        entries.append("; ".join(f"{number} {case}" for number, case in enumerate(cases, 1)))
    used = {marks[run.index] for run in runs if run.index in marks}
    signs = [f"{sign} {mark}" for mark, sign in _SIGNS.items() if mark in used]
    return [*entries, ", ".join(signs)] if signs else entries


def _by_case(part: Part, runs: Sequence[PlannedRun]) -> list[tuple[int, list[PlannedRun]]]:
    """Consecutive runs of the same case, each group with the case's place in the part."""
    by_case = groupby(runs, lambda run: part.workloads.index(run.workload))
    return [(case, list(group)) for case, group in by_case]


@dataclass(frozen=True)
class Launch:
    """One way of launching, and the runs that are launched so."""

    runs: tuple[int, ...]
    """Indexes in the plan, from 1."""
    label: str
    spec: LaunchSpec
    prepared: Prepared | None
    """``None``: it cannot be launched here now."""
    problems: tuple[Problem, ...] = ()


def launches(resolved: ResolvedPlan, say: Callable[[str], None]) -> list[Launch]:
    """The launches of the missing runs, each once; fetches no image and starts nothing.

    What several of them would ``say`` is said once.
    """
    say_once = Observer(say).message_once
    names = labels(resolved.request.plan.runs)
    indexes = grouped(
        (names[run.index - 1], run.index) for run in resolved.todo if run.index in resolved.launches
    )
    found = []
    for label, runs in indexes.items():
        spec, problems = resolved.launches[runs[0]], resolved.problems.get(runs[0], ())
        environment = replace(spec.environment, pull=False)
        folder, hook = paths.runs_home() / "RUN", resolved.request.plan.settings.hook
        spec, prepared = with_files(replace(spec, environment=environment), folder, hook), None
        if not problems:
            try:
                with runners.guarded(environment.kind):
                    prepared = runners.load(environment.kind).prepare(spec, say_once)
            except (GpuwatchError, OSError) as error:
                hint = error.hint if isinstance(error, GpuwatchError) else None
                problems = (Problem("not-prepared", str(error), hint),)
        found.append(Launch(tuple(runs), label, spec, prepared, problems))
    return found


def _launch_json(launch: Launch) -> dict[str, JSON]:
    """A launch as in ``docs/json.md``."""
    told = "command", "variables", "facts", "settings"
    return {
        **those(launch, "runs", "label"),
        "working_directory": launch.spec.working_directory,
        **(those(launch.prepared, *told) if launch.prepared else dict.fromkeys(told)),
        "problems": [asdict(problem) for problem in launch.problems],
    }


def _launch_lines(launch: Launch, width: int) -> list[str]:
    """A launch as text of at most ``width`` columns where words allow."""
    head = f"{clean(launch.label)} ({counted(len(launch.runs), 'run')})"
    texts = [f"problem: {clean(problem.text)}" for problem in launch.problems]
    if (prepared := launch.prepared) is not None:
        entries = {
            "command": " ".join(map(shell, prepared.command)),
            "started in": launch.spec.working_directory,
            **{name: str(fact(name, value)) for name, value in prepared.facts.items()},
            **{f"sets {name}": value for name, value in prepared.variables.items()},
            **{name: json.dumps(value) for name, value in prepared.settings.items()},
        }
        texts = [f"{name}: {clean(text, 10_000)}" for name, text in entries.items()]
    return [head, *(line for text in texts for line in whole_words(text, width, "  "))]
