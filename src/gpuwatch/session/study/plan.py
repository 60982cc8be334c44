"""The plan of a study: which runs, in which order, in which blocks; ``plan.json``."""

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
"""Relative change of the step time under which two environments count as the same."""
LARGEST = 4 << 20
"""Bytes of ``plan.json``."""
WARM_UP = 0
"""Number of the block whose runs are shown and never judged."""


@dataclass(frozen=True)
class Part:
    """Workloads and environments that are compared with each other, in blocks of their own."""

    name: str
    workloads: tuple[Workload, ...]
    """The cases: one for each workload and set of parameters."""
    environments: tuple[Environment, ...]
    """The first is what the others are compared with."""
    blocks: int | None = None
    """Judged blocks, each with every case in every environment once; ``None``: each once, and
    described only."""
    warmup_blocks: int = 0
    """0 or 1: a block before the others, which is discarded."""
    margin: float = MARGIN
    cool_down: float = 0.0
    """Seconds of rest before every run but the first."""
    sweep: Mapping[str, tuple[JSON, ...]] = field(default_factory=dict)
    """Parameters that the part goes through, by the workload's flag (``batch_size``)."""


@dataclass(frozen=True)
class PlannedRun:
    """One run of a study: ``index`` counts from 1, ``file`` is its session's name."""

    index: int
    file: str
    workload: Workload
    environment: Environment
    part: int = 0
    """Place of its part in the plan."""
    block: int | None = None
    """``WARM_UP``, or from 1 on; ``None`` where there are no blocks."""


@dataclass(frozen=True)
class Plan:
    """What a study set out to do."""

    study: str
    """The folder's name."""
    parts: tuple[Part, ...]
    runs: tuple[PlannedRun, ...]
    """In the order in which they are to be run."""
    seed: int | None = None
    """Of the order within the blocks."""
    title: str | None = None
    question: str | None = None
    """What a preset or a study file says that it asks."""
    preset: str | None = None
    settings: Mapping[str, JSON] = field(default_factory=dict)
    """``interval_seconds``, ``duration_seconds``, ``gpus``, ``dcgm``, ``afterwards`` (what to say
    when all runs are over), ``working_directory``, ``host``, ``programs`` (SHA-256 by file)."""
    problems: Mapping[int, tuple[Problem, ...]] = field(default_factory=dict)
    """Why runs, by their index, were not or cannot be started."""
    signature: str | None = None
    """By which whoever started the study is known, see :mod:`gpuwatch.session.study.signature`."""


def case_label(case: Workload, cases: Iterable[Workload]) -> str:
    """What tells ``case`` from the others: ``mnist-cnn``, ``mnist-cnn, batch size 64``.

    Parameters are named where cases of the same name differ in them.
    """
    alike = [each for each in cases if each.name == case.name]
    names = dict.fromkeys(name for each in alike for name in each.parameters)
    told = [
        f"{name.replace('_', ' ')} {case.parameters.get(name, 'default')}"
        for name in names
        if any(each.parameters.get(name) != case.parameters.get(name) for each in alike)
    ]
    return ", ".join([case.name, *told])


def labels(runs: Sequence[PlannedRun]) -> tuple[str, ...]:
    """What tells each of ``runs`` from the others: its environment, and its case where there are
    several."""
    cases = unique(each.workload for each in runs)
    if len(cases) == 1:
        return tuple(run.environment.label for run in runs)
    names = [case_label(case, cases) for case in cases]
    return tuple(f"{names[cases.index(run.workload)]} in {run.environment.label}" for run in runs)


Item = TypeVar("Item")


def unique(items: Iterable[Item]) -> tuple[Item, ...]:
    """Each of ``items`` once, in order; they need not be hashable."""
    found: list[Item] = []
    for item in items:
        if item not in found:
            found.append(item)
    return tuple(found)


def read(folder: Path) -> Plan | None:
    """The plan in ``folder``; ``None`` where there is none that can be read.

    A plan of schema 1 is one part without blocks. Files from elsewhere are hostile: at most 4 MiB,
    names of runs are plain file names, unknown kinds and values of a wrong type make it unreadable.
    """
    from gpuwatch.session.study.plan_file import parse

    path = folder / PLAN
    try:
        raw = read_regular(path, LARGEST)
        return parse(json.loads(raw)) if len(raw) <= LARGEST else None
    except (OSError, ValueError, TypeError, LookupError, OverflowError, RecursionError):
        return None
