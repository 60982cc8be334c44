"""How each run of a plan would be launched: the exact command and engine settings."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from textwrap import wrap

from gpuwatch import runners
from gpuwatch.core import paths
from gpuwatch.core.errors import GpuwatchError
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON, LaunchSpec, Prepared, Problem
from gpuwatch.core.text import clean, shell
from gpuwatch.core.units import fact
from gpuwatch.recorder.request import ResolvedPlan, with_files
from gpuwatch.session.study.plan import Settings, labels

_INDENT = 4


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
    said: set[str] = set()

    def say_once(text: str) -> None:
        if text not in said:
            said.add(text)
            say(text)

    names = labels(resolved.request.plan.runs)
    indexes: dict[str, list[int]] = {}
    for run in resolved.todo:
        if run.index in resolved.launches:
            indexes.setdefault(names[run.index - 1], []).append(run.index)
    return [
        _launch(
            label,
            runs,
            resolved.launches[runs[0]],
            resolved.problems.get(runs[0], ()),
            resolved.request.plan.settings,
            say_once,
        )
        for label, runs in indexes.items()
    ]


def _launch(
    label: str,
    runs: list[int],
    spec: LaunchSpec,
    problems: tuple[Problem, ...],
    settings: Settings,
    say: Callable[[str], None],
) -> Launch:
    environment = replace(spec.environment, pull=False)
    spec = with_files(
        replace(spec, environment=environment), paths.runs_home() / "RUN", settings.hook
    )
    prepared = None
    if not problems:
        try:
            with runners.guarded(environment.kind):
                prepared = runners.load(environment.kind).prepare(spec, say)
        except (GpuwatchError, OSError) as error:
            hint = error.hint if isinstance(error, GpuwatchError) else None
            problems = (Problem("not-prepared", str(error), hint),)
    return Launch(tuple(runs), label, spec, prepared, problems)


def as_json(launch: Launch) -> dict[str, JSON]:
    """A launch as in ``docs/json.md``."""
    prepared = launch.prepared
    return {
        "runs": list(launch.runs),
        "label": launch.label,
        "working_directory": launch.spec.working_directory,
        "command": None if prepared is None else list(prepared.command),
        "variables": None if prepared is None else dict(prepared.variables),
        "facts": None if prepared is None else dict(prepared.facts),
        "settings": None if prepared is None else dict(prepared.settings),
        "problems": [asdict(problem) for problem in launch.problems],
    }


def lines(launch: Launch, width: int) -> list[str]:
    """A launch as text of at most ``width`` columns where words allow."""
    count = len(launch.runs)
    head = f"{clean(launch.label)} ({count} {'run' if count == 1 else 'runs'})"
    if launch.prepared is None:
        return [
            head,
            *(_entry("problem", clean(problem.text), width) for problem in launch.problems),
        ]
    prepared = launch.prepared
    entries = {
        "command": " ".join(map(shell, prepared.command)),
        "started in": launch.spec.working_directory,
        **{name: str(fact(name, value)) for name, value in prepared.facts.items()},
        **{f"sets {name}": value for name, value in prepared.variables.items()},
        **{name: json.dumps(value) for name, value in prepared.settings.items()},
    }
    return [head, *(_entry(name, clean(text, 10_000), width) for name, text in entries.items())]


def _entry(name: str, text: str, width: int) -> str:
    return "\n".join(
        wrap(
            f"{name}: {text}",
            width,
            initial_indent="  ",
            subsequent_indent=" " * _INDENT,
            break_long_words=False,
            break_on_hyphens=False,
        )
    )
