"""A registry that does not answer: what waits for its first image can be stopped."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterator

import pytest

from tests.conftest import Cli
from tests.waiting import until

from .aftermath import PATIENCE, run_folders, running
from .environments import marked, words
from .table import Row


@pytest.fixture
def silent_registry() -> Iterator[str]:
    """``HOST:PORT`` of something on loopback that accepts connections and says nothing."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(8)
        yield f"127.0.0.1:{listening.getsockname()[1]}"


@pytest.mark.parametrize(
    ("kind", "how"),
    [
        pytest.param("docker", "--all", marks=pytest.mark.docker),
        pytest.param("docker", "SIGINT", marks=pytest.mark.docker),
        pytest.param("apptainer", "folder", marks=pytest.mark.apptainer),
    ],
)
def test_a_run_that_waits_for_its_image_is_stopped(
    cli: Cli, silent_registry: str, kind: str, how: str, note_fault: Callable[[Row], None]
) -> None:
    image = f"{silent_registry}/none:1"
    env = f"docker={image}" if kind == "docker" else f"apptainer=docker://{image}"
    out = cli.home / "out"
    recorder = cli.start("--record", "--pull", "--out", out, "--env", env, "--", "sleep", "600")
    until(lambda: [each for each in run_folders(cli) if (each / "session").exists()])
    if kind == "apptainer":
        until(lambda: marked(image))
    (folder,) = out.iterdir()
    if how == "SIGINT":
        os.kill(recorder.pid, signal.SIGINT)
        said = ""
    else:
        said = cli("stop", "--all" if how == "--all" else folder).stderr
        assert "before it began" in said
    _, talk = recorder.communicate(timeout=PATIENCE)
    assert recorder.returncode == (130 if how == "SIGINT" else 0) and "Traceback" not in talk
    until(lambda: not marked(image) and not running(cli))
    assert run_folders(cli) == [] and list(folder.glob("*.gpuwatch")) == []
    listed = cli("report", folder, code=None)
    assert "it was stopped before it began" in listed.stdout + (folder / "plan.json").read_text()
    fault = f"{kind}: the registry never answers, {how if how == 'SIGINT' else f'stop {how}'}"
    note_fault(
        Row("engine", fault, 1, "nothing", "nothing", words(said).removeprefix("gpuwatch: ") or "-")
    )
