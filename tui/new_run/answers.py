"""What gpuwatch's own commands answer: what can run on this machine, and what a start would do."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from itertools import groupby

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON, mapping, number
from gpuwatch.core.text import clean
from gpuwatch.tui import commands
from gpuwatch.tui.commands import Outcome

_MOST = 2000
"""Items of a list that are taken from an answer; a study has no more runs."""
DOCTOR_SECONDS = 60.0
"""A runner has ten seconds for its answer, and the images that are here are asked before."""


@dataclass(frozen=True)
class Refusal:
    """Why something cannot run here, and how to fix it."""

    text: str
    hint: str = ""


@dataclass(frozen=True)
class Environment:
    """A place where runs can start, or could if something were fixed."""

    text: str
    """As ``--env`` takes it."""
    engine: str
    without_gpu: Refusal | None
    with_gpu: Refusal | None
    """``None`` also on a machine without a GPU."""

    def refusal(self, on_gpus: bool) -> Refusal | None:
        """Why a run cannot start in it; ``None``: it can."""
        return self.without_gpu or (self.with_gpu if on_gpus else None)


@dataclass(frozen=True)
class Gpu:
    """A GPU that a run can be given."""

    choice: str
    """As ``--gpus`` takes it."""
    name: str
    memory_bytes: float | None
    torch: Refusal | None
    """Why the torch of bare runs cannot use it; ``None``: no reason is known."""


@dataclass(frozen=True)
class Machine:
    """What ``gpuwatch doctor`` found."""

    environments: tuple[Environment, ...] = ()
    gpus: tuple[Gpu, ...] = ()
    no_gpu: str = ""
    """Why no GPU can be used."""
    complaint: str = ""
    """Why nothing is known."""


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
    """Why that is not known."""
    refusals: Mapping[int, Refusal] = field(default_factory=dict)
    """Why nothing can run in an environment, by its position in ``Form.environments``."""
    steps: str = ""
    """Timed steps, if the plan sets them; else empty."""
    complaint: str = ""
    """What is wrong with the command line; everything else is empty then."""


async def ask_doctor(program: str | None) -> Machine:
    """What can run on this machine.

    ``program``: the first word of a command; ``None``: gpuwatch's own workloads.
    """
    command = () if program is None else ("--", program)
    outcome = await commands.run(
        *("doctor", "--quick", "--images", "--format", "json", *command), timeout=DOCTOR_SECONDS
    )
    return machine(outcome)


async def ask_plan(arguments: Sequence[str]) -> Plan:
    """What ``gpuwatch run ARGUMENTS`` would do."""
    outcome = await commands.run("--record", "--plan", "--format", "json", *arguments, timeout=60)
    return plan(outcome)


def machine(outcome: Outcome) -> Machine:
    """Parse the answer of ``gpuwatch doctor``; raises nothing, whatever it holds."""
    body = _body(outcome)
    if not body:
        return Machine(complaint=outcome.complaint if outcome.err else "doctor gave no answer")
    return Machine(
        tuple(_environment(each) for each in _objects(body.get("environments")) if each.get("env")),
        tuple(_gpu(each) for each in _objects(body.get("gpus"))),
        clean(mapping(body.get("gpu_unavailable")).get("text") or ""),
    )


def plan(outcome: Outcome) -> Plan:
    """Parse the answer of ``gpuwatch --record --plan``; raises nothing, whatever it holds."""
    body = _body(outcome) if outcome.good else {}
    if not body:
        return Plan(complaint=outcome.complaint.removeprefix("error: "))
    parts, runs = _objects(body.get("parts")), _objects(body.get("runs"))
    part = parts[0] if parts else {}
    cases, environments = _objects(part.get("cases")), _objects(part.get("environments"))
    names = [clean(each.get("label") or "") for each in environments]
    blocks = number(part.get("blocks"))
    steps = number(mapping(cases[0].get("parameters")).get("steps")) if cases else None
    return Plan(
        runs=len(runs),
        what=f"{', '.join(clean(each.get('label') or '') for each in cases)} in {', '.join(names)}",
        order=() if blocks is None else tuple(_blocks(runs, names)),
        seconds=number(body.get("seconds")),
        reason=clean(body.get("reason") or ""),
        refusals=_refusals(runs),
        steps="" if steps is None else f"{steps:.0f}",
    )


def _environment(each: Mapping[str, JSON]) -> Environment:
    return Environment(
        clean(each.get("env")),
        clean(each.get("engine") or ""),
        _first(each.get("without_gpu")),
        _first(each.get("with_gpu")),
    )


def _first(answer: JSON) -> Refusal | None:
    found = _objects(mapping(answer).get("problems"))
    return _refusal(found[0]) if found else None


def _refusal(problem: Mapping[str, JSON]) -> Refusal:
    return Refusal(clean(problem.get("text") or "it cannot"), clean(problem.get("hint") or ""))


def _gpu(each: Mapping[str, JSON]) -> Gpu:
    identity = str(each.get("id"))
    index = re.fullmatch(r"gpu(\d+)", identity)
    choice = index[1] if index else clean(each.get("uuid") or identity)
    refusal = mapping(each.get("torch"))
    return Gpu(
        choice,
        clean(each.get("name") or ""),
        number(each.get("memory_bytes")),
        _refusal(refusal) if refusal else None,
    )


def _refusals(runs: Sequence[Mapping[str, JSON]]) -> dict[int, Refusal]:
    """The first problem of each environment in which no run can start."""
    found: dict[int, Refusal | None] = {}
    for run in runs:
        position, problems = run.get("environment"), _objects(run.get("problems"))
        if not isinstance(position, int):
            continue
        if not problems:
            found[position] = None
        elif position not in found:
            found[position] = _refusal(problems[0])
    return {position: refusal for position, refusal in found.items() if refusal is not None}


def _blocks(runs: Sequence[Mapping[str, JSON]], names: Sequence[str]) -> list[str]:
    lines = []
    for block, group in groupby(runs, lambda run: run.get("block")):
        positions = [run.get("environment") for run in group]
        order = [names[p] for p in positions if isinstance(p, int) and 0 <= p < len(names)]
        lines.append(f"{'warm-up' if block == 0 else f'block {block}'}: {', '.join(order)}")
    return lines


def _body(outcome: Outcome) -> Mapping[str, JSON]:
    try:
        return mapping(json.loads(outcome.out))
    except (ValueError, RecursionError):
        return {}


def _objects(value: JSON) -> list[Mapping[str, JSON]]:
    listed = value if isinstance(value, list) else []
    return [each for each in listed[:_MOST] if isinstance(each, dict)]
