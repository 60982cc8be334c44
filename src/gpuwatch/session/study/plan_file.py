"""Converts a plan to and from ``plan.json``; ``docs/json.md`` explains every key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

from gpuwatch.core.models import (
    HOOK_OPTION,
    JSON,
    LONGEST_INTERVAL,
    SHORTEST_INTERVAL,
    Environment,
    Mount,
    Problem,
    Workload,
    number,
)
from gpuwatch.session.schema import SUFFIX
from gpuwatch.session.study.plan import SCHEMA, Part, Plan, PlannedRun, Settings

MOST_BLOCKS = 1000
SMALLEST_MARGIN, LARGEST_MARGIN = 0.001, 0.5
"""Limits for a design, on the command line and in plans from elsewhere."""


def document(plan: Plan) -> dict[str, JSON]:
    """``plan`` as the document for ``plan.json``."""
    return {
        "schema": SCHEMA,
        "study": plan.study,
        "title": plan.title,
        "question": plan.question,
        "preset": plan.preset,
        "seed": plan.seed,
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
                "blocks": part.blocks,
                "warmup_blocks": part.warmup_blocks,
                "margin": part.margin,
                "cool_down_seconds": part.cool_down,
                "sweep": {name: list(values) for name, values in part.sweep.items()},
            }
            for part in plan.parts
        ],
        "runs": [
            {
                "index": run.index,
                "file": run.file,
                "part": run.part,
                "block": run.block,
                "workload": plan.parts[run.part].workloads.index(run.workload),
                "environment": plan.parts[run.part].environments.index(run.environment),
            }
            for run in plan.runs
        ],
        "signature": plan.signature,
    }


def parse(value: JSON) -> Plan:
    """Parse the document of a ``plan.json``.

    Raises:
        ValueError, TypeError, LookupError, OverflowError: it is not a valid plan.
    """
    plan = _typed(value, dict)
    if _typed(plan.get("schema"), int) != SCHEMA:
        raise ValueError(f"schema {plan.get('schema')}")
    parts = tuple(_part(item) for item in _typed(plan.get("parts"), list))
    runs = tuple(_run(_typed(item, dict), parts) for item in _typed(plan.get("runs"), list))
    if [run.index for run in runs] != list(range(1, len(runs) + 1)):
        raise ValueError("runs are not numbered from 1")
    if len({run.file for run in runs}) < len(runs):
        raise ValueError("two runs have the same file")
    return Plan(
        study=_text(plan.get("study", "")),
        parts=parts,
        runs=runs,
        seed=_maybe(plan.get("seed"), int),
        title=_words(plan.get("title")),
        question=_words(plan.get("question")),
        preset=_words(plan.get("preset")),
        settings=_settings(plan),
        problems={
            int(index): tuple(_problem(item) for item in _typed(listed, list))
            for index, listed in _typed(plan.get("problems", {}), dict).items()
            if listed and 1 <= int(index) <= len(runs)
        },
        signature=_words(plan.get("signature")),
    )


def _settings(plan: Mapping[str, JSON]) -> Settings:
    gpus, hook = (_maybe(plan.get(name), list) for name in ("gpus", "hook"))
    interval = _number(plan.get("interval_seconds", Settings().interval_seconds))
    if interval is None or not SHORTEST_INTERVAL <= interval <= LONGEST_INTERVAL:
        raise ValueError("invalid interval")
    if not all(HOOK_OPTION.fullmatch(_text(option)) for option in hook or ()):
        raise ValueError("invalid options of the hook")
    programs = _typed(plan.get("programs", {}), dict).items()
    return Settings(
        interval,
        _number(plan.get("duration_seconds")),
        gpus=None if gpus is None else tuple(map(_text, gpus)),
        dcgm=_words(plan.get("dcgm")),
        hook=None if hook is None else tuple(hook),
        keep_children=_typed(plan.get("keep_children", False), bool),
        afterwards=_words(plan.get("afterwards")),
        working_directory=_text(plan.get("working_directory", "")),
        host=_text(plan.get("host", "")),
        programs={_text(name): _text(digest) for name, digest in programs},
    )


def _part(value: JSON) -> Part:
    part = _typed(value, dict)
    blocks = _maybe(part.get("blocks"), int)
    warmup, margin = _typed(part.get("warmup_blocks"), int), _number(part.get("margin"))
    cool_down = _number(part.get("cool_down_seconds"))
    if blocks is not None and not 1 <= blocks <= MOST_BLOCKS:
        raise ValueError("invalid number of blocks")
    if warmup not in (0, 1) or margin is None or not SMALLEST_MARGIN <= margin <= LARGEST_MARGIN:
        raise ValueError("invalid design")
    if cool_down is None or cool_down < 0:
        raise ValueError("invalid cool-down")
    sweep = _typed(part.get("sweep"), dict)
    return Part(
        name=_text(part.get("name")),
        workloads=tuple(_workload(workload) for workload in _typed(part.get("workloads"), list)),
        environments=tuple(
            _environment(environment) for environment in _typed(part.get("environments"), list)
        ),
        blocks=blocks,
        warmup_blocks=warmup,
        margin=margin,
        cool_down=cool_down,
        sweep={name: tuple(map(_plain, _typed(values, list))) for name, values in sweep.items()},
    )


def _run(run: Mapping[str, JSON], parts: Sequence[Part]) -> PlannedRun:
    place = _typed(run.get("part"), int)
    case, environment = _typed(run.get("workload"), int), _typed(run.get("environment"), int)
    block = _maybe(run.get("block"), int)
    if min(place, case, environment, block or 0) < 0:
        raise ValueError("places count from 0")
    part = parts[place]
    if block is not None and block > (part.blocks or 0):
        raise ValueError("the part has no such block")
    return PlannedRun(
        index=_typed(run.get("index"), int),
        file=_file(run.get("file")),
        workload=part.workloads[case],
        environment=part.environments[environment],
        part=place,
        block=block,
    )


def _workload(value: JSON) -> Workload:
    workload = _typed(value, dict)
    parameters = _typed(workload.get("parameters", {}), dict)
    return Workload(
        name=_text(workload.get("name")),
        kind=_text(workload.get("kind", "workload")),
        arguments=tuple(_text(item) for item in _typed(workload.get("arguments", []), list)),
        parameters={name: _plain(item) for name, item in parameters.items()},
        label=_words(workload.get("label")),
        program=_words(workload.get("program")),
    )


def _environment(value: JSON) -> Environment:
    environment = _typed(value, dict)
    return Environment(
        kind=_text(environment.get("kind")),
        label=_text(environment.get("label")),
        image=_words(environment.get("image")),
        python=_words(environment.get("python")),
        mounts=tuple(_mount(_text(item)) for item in _typed(environment.get("mounts", []), list)),
        shm_bytes=_maybe(environment.get("shm_bytes"), int),
        memory_bytes=_maybe(environment.get("memory_bytes"), int),
        network=_words(environment.get("network")),
        pull=_typed(environment.get("pull", False), bool),
        variables={
            _text(name): _text(value)
            for name, value in _typed(environment.get("variables", {}), dict).items()
        },
    )


def _mount(text: str) -> Mount:
    source, target, *mode = text.split(":")
    if mode not in ([], ["rw"]):
        raise ValueError("invalid mount")
    return Mount(source, target, bool(mode))


def _problem(value: JSON) -> Problem:
    problem = _typed(value, dict)
    return Problem(_text(problem["code"]), _text(problem["text"]), _words(problem.get("hint")))


def _file(value: JSON) -> str:
    name = _text(value)
    if name != Path(name).name or not name.endswith(SUFFIX) or "\0" in name:
        raise ValueError("not a plain file name")
    return name


Kind = TypeVar("Kind")


def _typed(value: JSON, kind: type[Kind]) -> Kind:
    """Return ``value`` if it has exactly this type: a bool is not an int."""
    if type(value) is not kind:
        raise TypeError(f"{value!r:.50} is not of type {kind.__name__}")
    return value


def _maybe(value: JSON, kind: type[Kind]) -> Kind | None:
    return None if value is None else _typed(value, kind)


def _text(value: JSON) -> str:
    text = _typed(value, str)
    text.encode()  # refuses lone surrogates
    return text


def _words(value: JSON) -> str | None:
    return None if value is None else _text(value)


def _number(value: JSON) -> float | None:
    if value is not None and number(value) is None:
        raise TypeError("not a number")
    return None if value is None else float(value)


def _plain(value: JSON) -> JSON:
    if value is None or isinstance(value, (str, bool)) or number(value) is not None:
        return value
    raise TypeError("not a plain value")
