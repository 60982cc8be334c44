"""Converts a plan to and from ``plan.json``; ``docs/json.md`` explains every key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from gpuwatch.core import models
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.typed import typed
from gpuwatch.session.schema import SUFFIX
from gpuwatch.session.study.plan import SCHEMA, Part, Plan, PlannedRun, Settings

MOST_BLOCKS = 1000
SMALLEST_MARGIN, LARGEST_MARGIN = 0.001, 0.5
"""Limits for a design, on the command line and in plans from elsewhere."""


def document(plan: Plan) -> dict[str, models.JSON]:
    """``plan`` as the document for ``plan.json``."""
    return {
        "schema": SCHEMA,
        **models.those(plan, "study", "title", "question", "preset", "seed"),
        **asdict(plan.settings),
        "problems": {
            str(index): [asdict(problem) for problem in problems]
            for index, problems in plan.problems.items()
            if problems
        },
        "parts": [
            {
                "name": part.name,
                "workloads": [asdict(workload) for workload in part.workloads],
                "environments": [
                    {**asdict(environment), "mounts": list(map(str, environment.mounts))}
                    for environment in part.environments
                ],
                **models.those(part, "blocks", "warmup_blocks", "margin"),
                "cool_down_seconds": part.cool_down,
                "sweep": {name: list(values) for name, values in part.sweep.items()},
            }
            for part in plan.parts
        ],
        "runs": [
            {
                **models.those(run, "index", "file", "part", "block"),
                "workload": plan.parts[run.part].workloads.index(run.workload),
                "environment": plan.parts[run.part].environments.index(run.environment),
            }
            for run in plan.runs
        ],
        "signature": plan.signature,
    }


def parse(value: models.JSON) -> Plan:
    """Parse the document of a ``plan.json``.

    Raises:
        ValueError, TypeError, LookupError, OverflowError: it is not a valid plan.
    """
    if value["schema"] != SCHEMA:
        raise ValueError(f"schema {value['schema']}")
    parts = tuple(map(_part, _listed(value["parts"])))
    runs = tuple(_run(typed(_Run, run), parts) for run in _listed(value["runs"]))
    if [run.index for run in runs] != list(range(1, len(runs) + 1)):
        raise ValueError("runs are not numbered from 1")
    if len({run.file for run in runs}) < len(runs):
        raise ValueError("two runs have the same file")
    settings = typed(Settings, value)
    if not models.SHORTEST_INTERVAL <= settings.interval_seconds <= models.LONGEST_INTERVAL:
        raise ValueError("invalid interval")
    if not all(map(models.HOOK_OPTION.fullmatch, settings.hook or ())):
        raise ValueError("invalid options of the hook")
    plain = {key: each for key, each in value.items() if key not in ("parts", "runs", "problems")}
    return replace(
        typed(Plan, {**plain, "parts": [], "runs": []}),
        parts=parts,
        runs=runs,
        settings=settings,
        problems={
            int(index): tuple(typed(models.Problem, problem) for problem in _listed(listed))
            for index, listed in value.get("problems", {}).items()
            if listed and 1 <= int(index) <= len(runs)
        },
    )


def _part(value: models.JSON) -> Part:
    environments = tuple(map(_environment, _listed(value["environments"])))
    part = typed(Part, {**value, "environments": [], "cool_down": value["cool_down_seconds"]})
    if part.blocks is not None and not 1 <= part.blocks <= MOST_BLOCKS:
        raise ValueError("invalid number of blocks")
    if part.warmup_blocks not in (0, 1) or not SMALLEST_MARGIN <= part.margin <= LARGEST_MARGIN:
        raise ValueError("invalid design")
    if part.cool_down < 0:
        raise ValueError("invalid cool-down")
    return replace(part, environments=environments)


def _environment(value: models.JSON) -> models.Environment:
    mounts = tuple(_mount(text) for text in _listed(value.get("mounts", [])))
    return replace(typed(models.Environment, {**value, "mounts": []}), mounts=mounts)


def _listed(value: models.JSON) -> list[models.JSON]:
    if type(value) is not list:
        raise TypeError("not a list")
    return value


def _mount(text: str) -> models.Mount:
    source, target, *mode = text.split(":")
    if mode not in ([], ["rw"]):
        raise ValueError("invalid mount")
    return typed(models.Mount, {"source": source, "target": target, "writable": bool(mode)})


@dataclass(frozen=True)
class _Run:
    """A run as it is written: its workload and environment by their places in its part."""

    index: int
    file: str
    part: int
    workload: int
    environment: int
    block: int | None = None


def _run(run: _Run, parts: Sequence[Part]) -> PlannedRun:
    if min(run.part, run.workload, run.environment, run.block or 0) < 0:
        raise ValueError("places count from 0")
    part = parts[run.part]
    if run.block is not None and run.block > (part.blocks or 0):
        raise ValueError("the part has no such block")
    if run.file != Path(run.file).name or not run.file.endswith(SUFFIX) or "\0" in run.file:
        raise ValueError("not a plain file name")
    workload, environment = part.workloads[run.workload], part.environments[run.environment]
    return PlannedRun(run.index, run.file, workload, environment, run.part, run.block)
