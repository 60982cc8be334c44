"""What a start would do, as ``gpuwatch run --plan`` answers, and what prevents it, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from itertools import groupby

from textual.content import Content

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON, mapping, number
from gpuwatch.core.text import clean
from gpuwatch.core.units import binary, counted, percent
from gpuwatch.session.study.estimate import about
from gpuwatch.tui import commands
from gpuwatch.tui.commands import Outcome
from gpuwatch.tui.feed.processes import owner_text
from gpuwatch.tui.feed.snapshot import Snapshot
from gpuwatch.tui.machine import Environment, Machine, Refusal, body_of, objects, refusal_of
from gpuwatch.tui.new_run import parameters
from gpuwatch.tui.new_run.parameters import Form, arguments, command_line, problems

_PLAN_SECONDS = 60


@dataclass(frozen=True)
class Plan:
    """What a start would do, as ``--plan`` prints it."""

    runs: int = 0
    what: str = ""
    """Cases and environments in words."""
    order: tuple[str, ...] = ()
    """A line for each block; empty where each runs once."""
    seconds: float | None = None
    """How long it takes."""
    reason: str = ""
    """Why that is not known, or the whole plan."""
    refusals: Mapping[int, Refusal] = field(default_factory=dict)
    """Why nothing can run in an environment, by its position in ``Form.environments``."""
    steps: str = ""
    """Timed steps, if the plan sets them; else empty."""
    complaint: str = ""
    """What is wrong with the command line; everything else is empty then."""


async def ask_plan(folder: str, *arguments: str) -> Plan:
    """What ``gpuwatch run ARGUMENTS`` would do in ``folder``; empty: here."""
    words = ("--record", "--plan", "--format", "json", *arguments)
    return plan(await commands.run(*words, timeout=_PLAN_SECONDS, folder=folder))


def plan(outcome: Outcome) -> Plan:
    """Parse the answer of ``gpuwatch --record --plan``; raises nothing, whatever it holds."""
    body = body_of(outcome) if outcome.good else {}
    if outcome.code == commands.NO_ANSWER:
        return Plan(reason=f"the plan took over {_PLAN_SECONDS} s; it can be started without one")
    if not body:
        return Plan(complaint=outcome.complaint.removeprefix("error: "))
    parts, runs = objects(body.get("parts")), objects(body.get("runs"))
    part = parts[0] if parts else {}
    cases, environments = objects(part.get("cases")), objects(part.get("environments"))
    names = [clean(each.get("label") or "") for each in environments]
    blocks = number(part.get("blocks"))
    steps = number(mapping(cases[0].get("parameters")).get("steps")) if cases else None
    order = []
    for block, group in groupby(runs, lambda run: run.get("block")):
        positions = [run.get("environment") for run in group]
        placed = [names[p] for p in positions if isinstance(p, int) and 0 <= p < len(names)]
        order.append(f"{'warm-up' if block == 0 else f'block {block}'}: {', '.join(placed)}")
    return Plan(
        runs=len(runs),
        what=f"{', '.join(clean(each.get('label') or '') for each in cases)} in {', '.join(names)}",
        order=() if blocks is None else tuple(order),
        seconds=number(body.get("seconds")),
        reason=clean(body.get("reason") or ""),
        refusals=_refusals(runs),
        steps="" if steps is None else f"{steps:.0f}",
    )


def _refusals(runs: Sequence[Mapping[str, JSON]]) -> dict[int, Refusal]:
    """The first problem of each environment in which no run can start."""
    found: dict[int, Refusal | None] = {}
    for run in runs:
        position, problems = run.get("environment"), objects(run.get("problems"))
        if not isinstance(position, int):
            continue
        if not problems:
            found[position] = None
        elif position not in found:
            found[position] = refusal_of(problems[0])
    return {position: refusal for position, refusal in found.items() if refusal is not None}


@dataclass(frozen=True)
class Answers:
    """The latest answers of gpuwatch's commands."""

    machine: Machine | None = None
    """``None``: not known yet."""
    program: str | None = None
    """``Form.program`` that the environments of ``machine`` were checked for."""
    plan: Plan | None = None
    """``None``: not known yet."""
    planned: tuple[str, ...] = ()
    """Folder and arguments that ``plan`` is for."""

    def environment(self, form: Form, text: str) -> Environment | None:
        """The environment of that name, if it was checked for what ``form`` runs here."""
        if self.machine is None or self.program != form.program or form.places:
            return None
        return next((each for each in self.machine.environments if each.text == text), None)

    def plan_for(self, form: Form) -> Plan | None:
        """The plan for ``form``; ``None``: not known yet, or the form has problems."""
        planned = form.runs_in, *arguments(form)
        if field_problems(form, self.machine) or planned != self.planned:
            return None
        return self.plan


def field_problems(form: Form, machine: Machine | None) -> dict[str, str]:
    """What is wrong with the fields, in themselves or on this machine, by the field's name."""
    found = problems(form)
    if form.places:
        return found
    known = machine.no_gpu.text if machine and machine.no_gpu else ""
    no_gpu = "no GPU is chosen" if form.gpus == () else known
    if form.own or not no_gpu or {"dtype", "device"} & found.keys():
        return found
    if form.values.get("device") == "cuda":
        return {**found, "device": no_gpu}
    conflict = parameters.conflict({"dtype": form.values.get("dtype"), "device": "cpu"})
    return {**found, conflict[0]: conflict[1]} if conflict else found


def refusal(form: Form, answers: Answers, text: str) -> Refusal | None:
    """Why nothing can run in the environment ``text``; ``None``: it can, or that is not known, as
    at another place.

    The plan has the last word on a chosen environment, but does not know whether the torch of bare
    runs can use the GPUs.
    """
    if form.places:
        return None
    known, plan = answers.environment(form, text), answers.plan_for(form)
    torch = _torch_refusal(form, answers.machine) if text == "bare" else None
    if plan is not None and not plan.complaint and text in form.environments:
        found = plan.refusals.get(form.environments.index(text)) or torch
    else:
        found = known.refusal(form.on_gpus) if known else None
    if found is None or known is None or known.without_gpu is not None or not form.on_gpus:
        return found
    if found.text not in {each.text for each in (torch, known.with_gpu) if each is not None}:
        return found
    if not form.own and "--device cpu" in found.hint:
        return found
    without_gpus = "choose no GPU" if form.own else "choose device cpu"
    return replace(found, hint=f"{found.hint}, or {without_gpus}" if found.hint else without_gpus)


def obstacle(form: Form, answers: Answers) -> tuple[str, str] | None:
    """The first thing that prevents a start: the name of its field, and what is wrong."""
    labels = {each.name: f"{each.label}: " for each in parameters.parameters()}
    for name, text in field_problems(form, answers.machine).items():
        return name, f"{labels.get(name, '')}{text}"
    for environment in form.environments:
        if found := refusal(form, answers, environment):
            hint = f"; {found.hint}" if found.hint else ""
            if environment in form.ticked:  # its row says why
                return environment, f"see {environment}{hint}"
            return "other", f"{environment}: {found.text}{hint}"
    plan = answers.plan_for(form)
    if plan is not None and plan.complaint:
        if form.places and ("--on" in plan.complaint or not form.other.strip()):
            return "on", plan.complaint
        if form.options.strip():
            return "options", plan.complaint
        return "other" if form.other.strip() else "command", plan.complaint
    return None


def usable_environment(form: Form, machine: Machine) -> str | None:
    """The environment to choose where none of the chosen ones can run a workload here."""
    usable = [each.text for each in machine.environments if not each.refusal(form.on_gpus)]
    if form.own or form.places or not usable or set(form.ticked) & set(usable):
        return None
    return usable[0]


def _torch_refusal(form: Form, machine: Machine | None) -> Refusal | None:
    """Why the torch of bare runs cannot use one of the chosen GPUs."""
    if machine is None or form.own or not form.on_gpus:
        return None
    chosen = [gpu for gpu in machine.gpus if form.gpus is None or gpu.choice in form.gpus]
    return next((gpu.torch for gpu in chosen if gpu.torch), None)


_SAID_BELOW = ("command", "model", "folder", "variables", "other", "on", "options")
GOOD, BAD = "$success", "$error"
"""Styles of the marks."""
_LEAST_USE = 0.05
"""A GPU that is used less is not told of, unless much of its memory is held."""


def busy_text(form: Form, seen: Snapshot | None) -> str:
    """What a run would be beside on the chosen GPUs as they were ``seen``: ``GPU 0: 8.00 GiB held
    by root train.py, 80 % busy when this was opened``; empty: nothing."""
    if seen is None or form.places or not form.on_gpus:
        return ""
    told = []
    for gpu in seen.gpus:
        use = gpu.value("hw.gpu.utilization")
        busy = gpu.held or (use or 0) >= _LEAST_USE
        if busy and (form.gpus is None or gpu.number in form.gpus):
            text = f"GPU {gpu.number}: {binary(gpu.memory_used)} held"
            on = (each for each in seen.processes if gpu.row.id in [on.device for on in each.gpus])
            names = ", ".join(dict.fromkeys(map(owner_text, on)))
            text += f" by {names}" if names else ""
            does = "" if use is None else f", {percent(use)} busy" if use else ", no kernel"
            told.append(text + does)
    return f"{'; '.join(told)} when this was opened" if told else ""


def plan_text(form: Form, answers: Answers, busy: str = "") -> Content:
    """What prevents a start, else the plan; the equivalent command line before what may be long.
    ``busy``: as of :func:`busy_text`."""
    found, plan = obstacle(form, answers), answers.plan_for(form)
    if form.own and not form.command.strip():
        lines = [Content(problems(form)["command"])]  # a form that is empty is no mistake
    elif found is not None:
        name, why = found
        if name in _SAID_BELOW and name in field_problems(form, answers.machine):
            why = f"see {name}"
        lines = [Content.assemble(("✗ ", BAD), f"cannot start: {clean(why)}")]
    elif plan is None:
        lines = [Content("asking for the plan ...")]
    elif not plan.what:
        lines = [Content(f"! {plan.reason}")]
    else:
        what = f"{counted(plan.runs, 'run')}: {plan.what}"
        lines = [Content.assemble(("✓ ", GOOD), (what, "bold"))]
        takes = "time unknown"
        if plan.seconds is not None:
            takes = f"takes {about(plan.seconds)}, by earlier runs of the same"
        lines += [Content(f"  {line}") for line in (takes, *plan.order)]
    if busy:
        lines.insert(1, Content.assemble(("! ", "$warning"), busy))
    if not problems(form):
        lines.insert(1, Content(f"$ {clean(command_line(form))}"))
    return Content("\n").join(lines)
