"""Studies on disk: a plan, and a session for each run with the step time that is asked for."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gpuwatch.analysis.results import Question, StudyResult
from gpuwatch.analysis.study.read import read_study
from gpuwatch.core.models import Environment, Problem, Workload
from gpuwatch.core.processes import identify
from gpuwatch.session.study import study_folder
from gpuwatch.session.study.plan import WARM_UP, Part, Plan, PlannedRun
from tests.analysis import sessions

WOBBLE = (1.0, 1.001, 0.999, 1.0005, 0.9995, 1.0002, 0.9998)
"""What runs add of their own, so that no two blocks have the same ratio."""
BARE = Environment("bare", "bare")
DOCKER = Environment("docker", "docker=image", image="image")
APPTAINER = Environment("apptainer", "apptainer=image", image="image")
RESNET = Workload("resnet50", "workload")
SECONDS = 0.5
START = 1_800_000_000
"""Unix time of the first run."""


def run(
    path: Path,
    seconds: float = SECONDS,
    *,
    label: str = "bare",
    workload: str = "resnet50",
    parameters: Mapping[str, Any] | None = None,
    result: Mapping[str, Any] | None = None,
    start: float = START,
    real: float | None = None,
    extra: Mapping[str, Any] | None = None,
    **options: Any,
) -> Path:
    """One session: twenty steps of ``seconds``, ended well unless ``result`` says otherwise."""
    end = sessions.WARM + sessions.STEPS * seconds
    run_report = {"parameters": dict(parameters)} if parameters else {}
    return sessions.record(
        path,
        step_seconds=seconds,
        label=label,
        run={**run_report, **options.pop("run", {})},
        extra={
            "session": {"id": path.stem, "label": f"{workload} ({label})"},
            "workload": {
                "name": workload,
                "kind": "workload",
                "arguments": [],
                "parameters": dict(parameters or {}),
            },
            "clock": {"unix_ns": round(start * 1e9), "monotonic_ns": 0},
            "result": {
                "code": 0,
                "signal": None,
                "t": round(end * 1e9),
                "real_seconds": real,
                **(result or {}),
            },
            **(extra or {}),
        },
        **options,
    )


def here(**extra: Any) -> dict[str, Any]:
    """Options of a run that this process records; it goes on if its ``result`` is None."""
    me = identify(os.getpid())
    assert me is not None
    return {"extra": {"recorder": asdict(me), **extra}}


FAILED = {"code": 1, "text": "out of memory"}


def planned(
    parts: Sequence[Part], *, seed: int = 7, problems: Mapping[int, Problem] | None = None
) -> Plan:
    """A plan with the runs of ``parts``: block by block, case by case, environments in turn."""
    runs: list[PlannedRun] = []
    for place, part in enumerate(parts):
        first = WARM_UP if part.warmup_blocks else 1
        blocks = [None] if part.blocks is None else range(first, part.blocks + 1)
        for block in blocks:
            for workload in part.workloads:
                for environment in part.environments:
                    index = len(runs) + 1
                    name = f"{index:02d}-{environment.kind}.gpuwatch"
                    runs.append(PlannedRun(index, name, workload, environment, place, block))
    told = {index: (problem,) for index, problem in (problems or {}).items()}
    return Plan("a-study", tuple(parts), tuple(runs), seed=seed, problems=told)


def written(folder: Path, plan: Plan) -> Path:
    """``folder`` with the plan in it."""
    folder.mkdir(exist_ok=True)
    study_folder.write(folder, plan)
    return folder


def recorded(
    folder: Path,
    parts: Sequence[Part],
    effects: Mapping[str, float],
    *,
    options: Mapping[int, Mapping[str, Any]] | None = None,
    left_out: Sequence[int] = (),
    problems: Mapping[int, Problem] | None = None,
) -> Plan:
    """A study in which an environment's steps take ``effects`` times :data:`SECONDS`.

    Each block drifts by a tenth of a per cent, each run wobbles. ``options`` by the run's index go
    to :func:`run`; runs that are ``left_out`` have no session.
    """
    plan = planned(parts, problems=problems)
    written(folder, plan)
    for each in plan.runs:
        if each.index not in left_out:
            given = {
                "seconds": step_seconds(each, effects),
                "label": each.environment.label,
                "workload": each.workload.name,
                "parameters": {**each.workload.parameters},
                "start": START + 1000 * each.index,
                **(options or {}).get(each.index, {}),
            }
            run(folder / each.file, **given)
    return plan


def result_of(
    folder: Path, parts: Sequence[Part], effects: Mapping[str, float], **options: Any
) -> StudyResult:
    """Of a study that :func:`recorded` makes."""
    recorded(folder, parts, effects, **options)
    return read_study(folder)


def step_seconds(planned_run: PlannedRun, effects: Mapping[str, float]) -> float:
    """Of a run as :func:`recorded` makes it."""
    block, label = planned_run.block or 0, planned_run.environment.label
    place = list(effects).index(label)
    wobble = WOBBLE[(block * (place + 1) + 2 * place) % len(WOBBLE)]
    return SECONDS * effects[label] * (1 + 0.001 * block) * wobble


def blocks_of(count: int, *environments: Environment, **options: Any) -> Part:
    """A part of one case in ``count`` blocks after a warm-up."""
    given = {"workloads": (RESNET,), "warmup_blocks": 1, **options}
    return Part(name="", environments=environments, blocks=count, **given)


def only(result: StudyResult) -> Question:
    (question,) = result.questions
    return question
