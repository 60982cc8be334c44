"""A study on disk: the folder of one command, with its plan, its sessions and its summary."""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from gpuwatch.errors import StorageError
from gpuwatch.models import JSON, Environment, Problem, Workload
from gpuwatch.session.schema import SUFFIX

PLAN = "plan.json"
SUMMARY_JSON = "summary.json"
SUMMARY_MARKDOWN = "summary.md"
ROOFLINE = "roofline.svg"


@dataclass(frozen=True)
class PlannedRun:
    """One run of a study: ``index`` counts from 1, ``file`` is its session's name."""

    index: int
    file: str
    workload: Workload
    environment: Environment


def plan_runs(
    workloads: Sequence[Workload], environments: Sequence[Environment]
) -> tuple[PlannedRun, ...]:
    """Every workload in every environment, environments in turn."""
    pairs = [(workload, env) for workload in workloads for env in environments]
    return tuple(
        PlannedRun(index, f"{index:02d}-{slug(env.label)}{SUFFIX}", workload, env)
        for index, (workload, env) in enumerate(pairs, 1)
    )


def label(run: PlannedRun, runs: Sequence[PlannedRun]) -> str:
    """What tells ``run`` from the others: its environment, and its workload where they differ."""
    several = len({each.workload.name for each in runs}) > 1
    return (f"{run.workload.name} in " if several else "") + run.environment.label


def slug(text: str) -> str:
    """``text`` as part of a file name."""
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", text).strip("-.")[:60] or "run"


def create(out: Path, runs: Sequence[PlannedRun], settings: dict[str, JSON]) -> Path:
    """Make ``out/STUDY`` with its plan; returns the new folder.

    Raises:
        StorageError: the folder or the plan cannot be written.
    """
    names = dict.fromkeys(slug(run.workload.name) for run in runs)
    stem = f"{'+'.join(names)[:80]}-{time.strftime('%Y%m%d-%H%M%S')}"
    try:
        out.mkdir(parents=True, exist_ok=True)
        folder = _fresh(out, stem)
        write_text(folder / PLAN, json.dumps(_plan(folder.name, runs, settings), indent=2) + "\n")
    except OSError as error:
        raise StorageError(
            f"cannot write to {out}: {error.strerror}",
            "choose another folder with --out, or free some space",
        ) from error
    return folder


def note_problems(folder: Path, index: int, problems: Sequence[Problem]) -> None:
    """Write into the plan why a run of it could not be started. Best effort."""
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
        plan = json.loads((folder / PLAN).read_text())
        plan["problems"][str(index)] = [asdict(problem) for problem in problems]
        write_text(folder / PLAN, json.dumps(plan, indent=2) + "\n")


def note_rest(folder: Path, problem: Problem) -> None:
    """Write into the plan why the runs that never had their turn did not run. Best effort."""
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
        plan = json.loads((folder / PLAN).read_text())
        for run in plan["runs"]:
            known = plan["problems"].get(str(run["index"]))
            if not known and not (folder / str(run["file"])).exists():
                note_problems(folder, run["index"], [problem])


STUDY_ENDED = "study-ended"
"""Code of the problem of a run that never had its turn."""


@dataclass(frozen=True)
class NotRun:
    """A run of the plan that did not take place."""

    label: str
    problems: tuple[Problem, ...]

    @property
    def why(self) -> str:
        """The first problem."""
        return f"{self.label} did not run: {self.problems[0].text}"

    @property
    def fix(self) -> str | None:
        """What mends it."""
        return self.problems[0].fix

    @property
    def text(self) -> str:
        """One line: the first problem and what mends it."""
        return f"{self.why}; {self.fix}" if self.fix else self.why


def not_run(folder: Path) -> list[NotRun]:
    """The runs of the plan that did not take place; empty where the plan cannot be read."""
    try:
        plan = json.loads((folder / PLAN).read_text())
        several = len({str(run["workload"]["name"]) for run in plan["runs"]}) > 1
        labels = {
            str(run["index"]): (f"{run['workload']['name']} in " if several else "")
            + str(run["environment"]["label"])
            for run in plan["runs"]
        }
        return [
            NotRun(
                labels[index],
                tuple(Problem(str(p["code"]), str(p["text"]), p["fix"]) for p in found),
            )
            for index, found in plan["problems"].items()
            if found
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return []


def write_text(path: Path, text: str) -> None:
    """Replace a file in one piece, so that a crash leaves the old one."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        new.write_text(text, encoding="utf-8")
        new.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            new.unlink()
        raise


def sessions_in(folder: Path) -> list[Path]:
    """The session files of a study, in the order of their numbers."""
    return sorted(folder.glob(f"*{SUFFIX}"))


def _fresh(out: Path, stem: str) -> Path:
    for number in range(1, 1000):
        folder = out / (stem if number == 1 else f"{stem}-{number}")
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            continue
        return folder
    raise StorageError(f"{out} is full of studies named {stem}", "choose another folder with --out")


def _plan(name: str, runs: Sequence[PlannedRun], settings: dict[str, JSON]) -> dict[str, JSON]:
    return {
        "schema": 1,
        "study": name,
        **settings,
        "runs": [
            {
                "index": run.index,
                "file": run.file,
                "workload": {
                    "name": run.workload.name,
                    "kind": run.workload.kind,
                    "arguments": list(run.workload.arguments),
                    "parameters": dict(run.workload.parameters),
                },
                "environment": {
                    "kind": run.environment.kind,
                    "label": run.environment.label,
                    "image": run.environment.image,
                    "python": run.environment.python,
                    "mounts": [str(mount) for mount in run.environment.mounts],
                    "shm_bytes": run.environment.shm_bytes,
                    "memory_bytes": run.environment.memory_bytes,
                    "network": run.environment.network,
                },
            }
            for run in runs
        ],
    }
