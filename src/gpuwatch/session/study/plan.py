"""The plan of a study (``plan.json``): its runs, their order and their blocks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TypeVar

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON, Environment, Problem, Workload
from gpuwatch.core.paths import read_regular

PLAN = "plan.json"
SCHEMA = 2
MARGIN = 0.01
"""Relative change of the step time below which two environments count as equal."""
LARGEST = 4 << 20
"""Most bytes of ``plan.json``."""
WARM_UP = 0
"""Number of the block whose runs are shown but never judged."""


@dataclass(frozen=True)
class Part:
    """Workloads and environments that are compared with each other, with their own blocks.

    Environments are compared within a case; of a part that compares commands, commands also within
    an environment.
    """

    name: str
    workloads: tuple[Workload, ...]
    """The cases: one for each workload and set of parameters, or the commands to compare."""
    environments: tuple[Environment, ...]
    """The first is the baseline."""
    blocks: int | None = None
    """Judged blocks, each with every case once in every environment; ``None``: each once, described
    but not judged."""
    warmup_blocks: int = 0
    """0 or 1: a block before the others that is not judged."""
    margin: float = MARGIN
    cool_down: float = 0.0
    """Seconds of rest before every run but the first."""
    sweep: Mapping[str, tuple[JSON, ...]] = field(default_factory=dict)
    """Values of the swept parameters, by the workload's flag (``batch_size``)."""

    @property
    def compares_commands(self) -> bool:
        """Whether its cases are commands with labels, which are compared with the first."""
        return all(case.label is not None for case in self.workloads)


@dataclass(frozen=True)
class PlannedRun:
    """One run of a study: ``index`` counts from 1, ``file`` is its session's name."""

    index: int
    file: str
    workload: Workload
    environment: Environment
    part: int = 0
    """Position of its part in the plan, from 0."""
    block: int | None = None
    """``WARM_UP``, or from 1; ``None`` without blocks."""


@dataclass(frozen=True)
class Settings:
    """How the runs of a study are recorded: the same for all of them."""

    interval_seconds: float = 0.5
    """Between two samples."""
    duration_seconds: float | None = None
    """After which each run is stopped."""
    gpus: tuple[str, ...] | None = None
    """By index or UUID; ``()``: none; ``GPUS_OFF``; ``None``: all."""
    dcgm: str | None = None
    """Address of the host engine that reads GPUs where GPM cannot; ``None``: without DCGM."""
    hook: tuple[str, ...] | None = ()
    """Options of the hook in commands, of ``models.HOOK_OPTIONS``; ``None``: without the hook."""
    keep_children: bool = False
    """What a workload leaves running goes on, outside containers."""
    afterwards: str | None = None
    """What to say when all runs are over."""
    working_directory: str = ""
    """Where the study was started, and on which machine; empty: not known."""
    host: str = ""
    programs: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of the programs that it runs, by file."""


@dataclass(frozen=True)
class Plan:
    """What a study set out to do."""

    study: str
    """The folder's name."""
    parts: tuple[Part, ...]
    runs: tuple[PlannedRun, ...]
    """In execution order."""
    seed: int | None = None
    """Seed of the order within the blocks."""
    title: str | None = None
    question: str | None = None
    """The question that a preset or a study file asks."""
    preset: str | None = None
    settings: Settings = field(default_factory=Settings)
    problems: Mapping[int, tuple[Problem, ...]] = field(default_factory=dict)
    """Why runs were not or cannot be started, by index."""
    signature: str | None = None
    """Proves who started the study, see :mod:`gpuwatch.session.study.signature`."""

    @property
    def of_machine(self) -> bool:
        """Whether it records the machine alone, so that there is nothing to resume or compare."""
        return any(run.workload.kind == "machine" for run in self.runs)


def case_label(case: Workload, cases: Iterable[Workload]) -> str:
    """A label that tells ``case`` from the others: ``mnist-cnn``, ``mnist-cnn, batch size 64``.

    It names the parameters in which cases of the same name differ. A labelled command has its own.
    """
    if case.label is not None:
        return case.label
    same_name = [other for other in cases if other.name == case.name]
    names = dict.fromkeys(name for other in same_name for name in other.parameters)
    differences = [
        f"{name.replace('_', ' ')} {case.parameters.get(name, 'default')}"
        for name in names
        if any(other.parameters.get(name) != case.parameters.get(name) for other in same_name)
    ]
    return ", ".join([case.name, *differences])


def labels(runs: Sequence[PlannedRun]) -> tuple[str, ...]:
    """A label for each of ``runs``: its environment, and its case if there are several."""
    cases = unique(run.workload for run in runs)
    if len(cases) == 1:
        return tuple(run.environment.label for run in runs)
    names = [case_label(case, cases) for case in cases]
    return tuple(f"{names[cases.index(run.workload)]} in {run.environment.label}" for run in runs)


Item = TypeVar("Item")


def run_label(plan: Plan, run: PlannedRun) -> str:
    """The run's environment, with its case if its part has several."""
    cases = plan.parts[run.part].workloads
    case = "" if len(unique(cases)) < 2 else f"{case_label(run.workload, cases)} in "
    return f"{case}{run.environment.label}"


def unique(items: Iterable[Item]) -> tuple[Item, ...]:
    """Each of ``items`` once, in order; they need not be hashable."""
    distinct: list[Item] = []
    for item in items:
        if item not in distinct:
            distinct.append(item)
    return tuple(distinct)


def read(folder: Path) -> Plan | None:
    """The plan in ``folder``; ``None`` if there is no valid one.

    Files from elsewhere count as hostile: a valid plan has at most 4 MiB, plain file names for
    runs, known kinds and values of the right types.
    """
    from gpuwatch.session.study.plan_file import parse

    path = folder / PLAN
    try:
        raw = read_regular(path, LARGEST)
        return parse(json.loads(raw)) if len(raw) <= LARGEST else None
    except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None
