"""Runs in real containers: through the command line, and through the runner itself."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
import pytest

from gpuwatch.core import paths
from gpuwatch.core.models import Environment, LaunchSpec, Mount, Output, Result, Workload
from gpuwatch.runners.docker.run import DockerRun
from gpuwatch.runners.docker.runner import DockerRunner
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.reading.status import Status, status
from tests.conftest import Cli
from tests.session.samples import step_numbers
from tests.waiting import until

STEPS = Path(__file__).parents[2] / "cli" / "steps.py"


@dataclass(frozen=True)
class Seen:
    """What a session says of a run."""

    meta: dict[str, Any]
    status: Status
    log: list[tuple[str, str]]
    steps: list[int]
    events: list[str]

    @property
    def result(self) -> dict[str, Any]:
        found: dict[str, Any] = self.meta["result"]
        return found

    @property
    def text(self) -> str:
        return "\n".join(line for _, line in self.log)


def seen(path: Path) -> Seen:
    with SessionReader(path) as reader:
        meta = reader.meta()
        return Seen(
            meta,
            status(meta, path),
            [(row.stream, row.text) for row in reader.log(limit=10**6)],
            step_numbers(reader),
            [row.kind for row in reader.events()],
        )


class Lab:
    """gpuwatch's command line with runs in containers of one image."""

    def __init__(self, cli: Cli, image: str, out: Path) -> None:
        self.cli = cli
        self.image = image
        self.out = out
        shutil.copy(STEPS, cli.home / "steps.py")

    def arguments(self, *command: object, options: str = "") -> list[object]:
        env = f"docker={self.image}{options}"
        head = ["--record", "--quiet", "--interval", "0.1", "--out", self.out, "--env", env]
        return [*head, "--", *command]

    def record(self, *command: object, options: str = "", code: int | None = 0) -> Seen:
        self.cli(*self.arguments(*command, options=options), code=code)
        return self.seen()

    @property
    def path(self) -> Path:
        return sorted(self.out.glob("*/*.gpuwatch"), key=lambda path: path.stat().st_mtime)[-1]

    def seen(self) -> Seen:
        return seen(self.path)

    def until_step(self, number: int = 1) -> None:
        until(
            lambda: list(self.out.glob("*/*.gpuwatch")) and number <= max(self.seen().steps or [0])
        )

    @property
    def run_folders(self) -> list[Path]:
        return list((self.cli.home / ".local/state/gpuwatch/runs").glob("*"))


@pytest.fixture
def lab(cli: Cli, small_image: str, tmp_path: Path) -> Lab:
    return Lab(cli, small_image, tmp_path / "out")


@pytest.fixture
def api() -> Iterator[docker.APIClient]:
    with contextlib.closing(docker.from_env()) as client:
        yield client.api


@pytest.fixture(autouse=True)
def nothing_is_left(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[None]:
    """No container of a test is there after it, running or ended."""
    yield
    if request.node.get_closest_marker("docker"):
        with contextlib.closing(docker.from_env()) as client:
            left = containers(client.api, tmp_path)
            for name in left:
                client.api.remove_container(name, force=True)
            assert left == []


def containers(api: docker.APIClient, below: Path) -> list[str]:
    """The containers of runs whose folders are, or were, below a folder."""
    return [
        each["Names"][0].lstrip("/")
        for each in api.containers(all=True, filters={"label": "io.gpuwatch.run"})
        if Path(each["Labels"]["io.gpuwatch.folder"]).is_relative_to(below)
    ]


def launch_spec(
    image: str,
    *command: str,
    mounts: tuple[Mount, ...] = (),
    gpus: tuple[str, ...] = (),
    folder: Path | None = None,
    **options: Any,
) -> LaunchSpec:
    return LaunchSpec(
        workload=Workload(command[0], "command", command),
        environment=Environment("docker", f"docker={image}", image, mounts=mounts, **options),
        archive=None,
        working_directory=str(folder or Path(__file__).parent),
        variables=dict(os.environ),
        gpus=gpus,
    )


class Launched:
    """A run without a recorder, read by the test."""

    def __init__(self, run: DockerRun) -> None:
        self.run = run
        self.outputs: list[Output] = []

    def so_far(self, stream: str) -> bytes:
        self.outputs.extend(self.run.read())
        return self.data(stream)

    def to_end(self) -> Result:
        def over() -> Result | None:
            result = self.run.result()
            found = self.run.read()
            self.outputs.extend(found)
            return None if found else result

        found = until(over, "the run does not end", 120)
        assert found is not None
        return found

    def data(self, stream: str) -> bytes:
        return b"".join(each.data for each in self.outputs if each.stream == stream)


@pytest.fixture
def launch(
    small_image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Launched]]:
    """Start a command in a container, without a recorder."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    runs: list[DockerRun] = []

    def start(*command: str, **options: Any) -> Launched:
        spec = launch_spec(small_image, *command, **options)
        folder = paths.new_run_folder(f"run{len(runs)}{os.getpid()}")
        runner = DockerRunner()
        run = runner.start(spec, runner.prepare(spec, lambda _: None), folder)
        assert isinstance(run, DockerRun)
        runs.append(run)
        return Launched(run)

    yield start
    for run in runs:
        run.forget()
