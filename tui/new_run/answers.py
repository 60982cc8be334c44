"""What a start would do, as ``gpuwatch run --plan`` answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from itertools import groupby

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON, mapping, number
from gpuwatch.core.text import clean
from gpuwatch.tui import commands
from gpuwatch.tui.commands import Outcome
from gpuwatch.tui.machine import Refusal, body_of, objects, refusal_of


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


async def ask_plan(folder: str, *arguments: str) -> Plan:
    """What ``gpuwatch run ARGUMENTS`` would do in ``folder``; empty: here."""
    words = ("--record", "--plan", "--format", "json", *arguments)
    return plan(await commands.run(*words, timeout=60, folder=folder))


def plan(outcome: Outcome) -> Plan:
    """Parse the answer of ``gpuwatch --record --plan``; raises nothing, whatever it holds."""
    body = body_of(outcome) if outcome.good else {}
    if not body:
        return Plan(complaint=outcome.complaint.removeprefix("error: "))
    parts, runs = objects(body.get("parts")), objects(body.get("runs"))
    part = parts[0] if parts else {}
    cases, environments = objects(part.get("cases")), objects(part.get("environments"))
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


def _blocks(runs: Sequence[Mapping[str, JSON]], names: Sequence[str]) -> list[str]:
    lines = []
    for block, group in groupby(runs, lambda run: run.get("block")):
        positions = [run.get("environment") for run in group]
        order = [names[p] for p in positions if isinstance(p, int) and 0 <= p < len(names)]
        lines.append(f"{'warm-up' if block == 0 else f'block {block}'}: {', '.join(order)}")
    return lines
