"""What can run on this machine, as ``gpuwatch doctor`` answers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON, mapping, number, sequence
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
    no_gpu: Refusal | None = None
    """Why no GPU can be used."""
    python: str = ""
    """The interpreter of bare runs."""
    torch: str = ""
    """The version of its torch; empty: it has none."""
    complaint: str = ""
    """Why nothing is known."""


async def ask_doctor(*options: str, folder: str = "") -> Machine:
    """What ``gpuwatch doctor OPTIONS`` finds in ``folder``, or here, without importing torch."""
    words = ("doctor", "--quick", *options)
    return machine(await commands.run(*words, timeout=DOCTOR_SECONDS, folder=folder))


def machine(outcome: Outcome) -> Machine:
    """Parse the answer of ``gpuwatch doctor``; raises nothing, whatever it holds."""
    body = body_of(outcome)
    if outcome.code == commands.NO_ANSWER:
        text = f"looking for engines took over {DOCTOR_SECONDS:.0f} s; bare can be started"
        return Machine(complaint=text)
    if not body:
        return Machine(complaint=outcome.complaint if outcome.err else "doctor gave no answer")
    python, no_gpu = mapping(body.get("python")), mapping(body.get("gpu_unavailable"))
    build = clean(python.get("torch_build") or "")
    torch = clean(python.get("torch") or "")
    return Machine(
        tuple(_environment(each) for each in objects(body.get("environments")) if each.get("env")),
        tuple(_gpu(each) for each in objects(body.get("gpus"))),
        refusal_of(no_gpu) if no_gpu else None,
        clean(python.get("path") or ""),
        f"{torch} ({build} build)" if torch and build else torch,
    )


def _environment(each: Mapping[str, JSON]) -> Environment:
    return Environment(
        clean(each.get("env")),
        clean(each.get("engine") or ""),
        _first(each.get("without_gpu")),
        _first(each.get("with_gpu")),
    )


def _first(answer: JSON) -> Refusal | None:
    found = objects(mapping(answer).get("problems"))
    return refusal_of(found[0]) if found else None


def refusal_of(problem: Mapping[str, JSON]) -> Refusal:
    """A problem of an answer."""
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
        refusal_of(refusal) if refusal else None,
    )


def body_of(outcome: Outcome) -> Mapping[str, JSON]:
    """The object that a command wrote; empty: it wrote something else."""
    try:
        return mapping(json.loads(outcome.out))
    except (ValueError, RecursionError):
        return {}


def objects(value: JSON) -> list[Mapping[str, JSON]]:
    """The objects of a list; none of what is no list."""
    return [each for each in sequence(value)[:_MOST] if isinstance(each, dict)]
