"""One workload in every environment, on real engines and from one root file system."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.reading.status import State, status
from tests.conftest import Cli
from tests.reading import log, sessions

KINDS = ("bare", "docker", "apptainer", "charliecloud")

pytestmark = [pytest.mark.docker, pytest.mark.apptainer, pytest.mark.charliecloud]


def environments(image: str, root: Path, python: str | None = None) -> list[str]:
    """The arguments that name all four."""
    inside = f",python={python}" if python else ""
    named = ("bare", f"docker={image}", f"apptainer={root}", f"charliecloud={root}")
    return [part for text in named for part in ("--env", text if text == "bare" else text + inside)]


@pytest.mark.torch
@pytest.mark.timeout(600)
def test_the_same_seed_gives_the_same_losses_everywhere(
    cli: Cli, tmp_path: Path, torch_root: Path, torch_image: str
) -> None:
    out = tmp_path / "out"
    flags = ("--steps", "4", "--batch-size", "16", "--seed", "7", "--device", "cpu")
    done = cli(
        "--record", "mnist-cnn", *flags, "--profile", "0", "--out", out, "--python", sys.executable,
        *environments(torch_image, torch_root), timeout=500,
    )  # fmt: skip
    paths = sessions(out)
    losses, flops, complete = [], [], []
    for path in paths:
        with SessionReader(path) as reader:
            meta = reader.meta()
            losses.append([value for row in reader.all_steps() for value in row.loss or ()])
            flops.append(meta["count"]["flop_per_step"])
            complete.append(status(meta, path).state is State.FINISHED and "closed" in meta)
            assert meta["environment"]["kind"] in path.name
            assert meta["startup"]["import_seconds"] > 0
            assert meta["result"]["real_seconds"] > 0 and meta["result"]["user_seconds"] > 0
    assert complete == [True] * len(KINDS)
    assert len(losses[0]) > 4, "the warm-up counts too"
    assert all(each == losses[0] for each in losses[1:])
    assert flops[0] > 0 and len(set(flops)) == 1

    assert [kind for kind in KINDS if kind in done.stdout] == list(KINDS)
    (summary,) = out.glob("*/summary.json")
    compared = cli.read("compare", "--all", summary.parent).stdout
    for row in ("launch", "import", "first step", "throughput", "CPU time, user", "size"):
        assert row in compared, row
    keys = {each["key"] for each in json.loads(summary.read_text())["differences"]}
    assert {"engine", "process.root.filesystem", "process.capabilities"} <= keys


def test_a_script_of_the_users_own_runs_from_its_folder_in_all_four(
    cli: Cli, tmp_path: Path, small_root: Path, small_image: str
) -> None:
    out = tmp_path / "out"
    project = cli.home / "my project"
    project.mkdir()
    (project / "helper.py").write_text("GREETING = 'from the folder'\n")
    (project / "train.py").write_text(
        "import os, sys\n"
        "from helper import GREETING\n"
        "print(GREETING, os.getcwd(), open('data.txt').read().strip(), sys.argv[1:])\n"
        "try:\n"
        "    open('written.txt', 'w')\n"
        "except OSError as error:\n"
        "    print('read-only:', error.strerror)\n"
    )
    (project / "data.txt").write_text("its data\n")
    # Charliecloud mounts only onto folders that the image has.
    (small_root / project.relative_to("/")).mkdir(parents=True, exist_ok=True)
    cli(
        "--record", "--out", out, *environments(small_image, small_root),
        "--", "python3", "train.py", "--epochs", "3", folder=project,
    )  # fmt: skip
    said = [log(path) for path in sessions(out)]
    first = f"from the folder {project} its data ['--epochs', '3']"
    assert [each[0] for each in said] == [first] * len(KINDS)
    # ch-run has no read-only mounts, and its session says so.
    assert [len(each) for each in said] == [1, 2, 2, 1], "bare and Charliecloud may write there"
