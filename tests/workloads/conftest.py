"""Runs workloads for real: the archive, a process, its step lines."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.workloads.archive import build
from gpuwatch.workloads.lines import PREFIX
from tests.forks import Forks, forks


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """``make test`` does not import modules whose every test needs torch: torch alone takes seconds
    in each worker. Another folder's or file's fate is decided elsewhere (``None``)."""
    if config.option.markexpr != "not system" or not collection_path.name.startswith("test_"):
        return None
    return True if "\npytestmark = pytest.mark.torch\n" in collection_path.read_text() else None


@dataclass(frozen=True)
class Report:
    """What a workload's process said: its events, exit code, other lines and stderr."""

    events: list[dict[str, Any]]
    code: int
    log: list[str]
    stderr: str

    def all(self, event: str) -> list[dict[str, Any]]:
        return [e for e in self.events if e["event"] == event]

    def one(self, event: str) -> dict[str, Any]:
        (found,) = self.all(event)
        return found

    def steps(self, warmup: bool = False) -> list[dict[str, Any]]:
        return [e for e in self.all("step") if e.get("warmup", False) == warmup]

    def losses(self, warmup: bool = False) -> list[float]:
        return [loss for step in self.steps(warmup) for loss in step["loss"]]

    def seconds(self) -> list[float]:
        return [second for step in self.steps() for second in step["seconds"]]


def parse(stdout: str) -> tuple[list[dict[str, Any]], list[str]]:
    events, log = [], []
    for line in stdout.splitlines():
        if line.startswith(PREFIX):
            events.append(json.loads(line[len(PREFIX) :], parse_constant=_refuse))
        else:
            log.append(line)
    return events, log


def reported(done: subprocess.CompletedProcess[str]) -> Report:
    events, log = parse(done.stdout)
    return Report(events, done.returncode, log, done.stderr)


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is not JSON")


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("archive") / "workloads.pyz"
    build(target)
    return target


ENVIRONMENT = {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}


@pytest.fixture
def run_workload(archive: Path) -> Callable[..., Report]:
    """Run ``PYTHON workloads.pyz ARGUMENTS`` and read what it prints."""

    def run(*arguments: object, python: str = sys.executable, **environment: str) -> Report:
        done = subprocess.run(
            [python, str(archive), *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=150,
            cwd=archive.parent,
            env={**os.environ, **ENVIRONMENT, **environment},
        )
        return reported(done)

    return run


@pytest.fixture(scope="session")
def forked() -> Iterator[Forks]:
    with forks(**ENVIRONMENT) as found:
        yield found


@pytest.fixture
def fork_workload(archive: Path, forked: Forks) -> Callable[..., Report]:
    """As ``run_workload``, in a process that has torch from the start."""

    def run(*arguments: object, archive: Path = archive) -> Report:
        argv = (str(archive), *map(str, arguments))
        variables = {**os.environ, **ENVIRONMENT}
        return reported(forked.run(*argv, folder=archive.parent, variables=variables))

    return run


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = [p for p in ("torch", "torchvision") if importlib.util.find_spec(p) is None]
    for item in items if missing else []:
        if item.get_closest_marker("torch"):
            item.add_marker(pytest.mark.skip(reason=f"{' and '.join(missing)} not installed"))
