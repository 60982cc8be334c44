"""An unmodified program, from the command line to what is shown of it: steps, FLOP, ranks."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.session.reading.reader import SessionReader
from tests.conftest import Cli

pytestmark = [pytest.mark.torch, pytest.mark.timeout(600)]

TRAIN = Path(__file__).with_name("train.py")
STEPS = 40
FLOP = 2 * 32 * (64 * 256 + 256 * 10) * 2 + 2 * 32 * 256 * 10
"""Forward, the gradients of the weights, and that of the second layer's input."""


def ran(cli: Cli, out: Path, *command: object, options: tuple[object, ...] = ()) -> dict[str, Any]:
    """A recorded run: what ``show`` says of it as JSON, and its log."""
    where = out.parent / "where"
    where.mkdir(parents=True, exist_ok=True)
    shutil.copy(TRAIN, where / "train.py")
    cli("--record", "--quiet", "--out", out, *options, "--", *command, folder=where, timeout=300)
    (path,) = out.glob("*/*.gpuwatch")
    with SessionReader(path) as reader:
        log = [row.text for row in reader.log() if row.text.startswith("loss")]
        ranks = [row.rank for row in reader.ranks()]
        hook = reader.meta()["hook"]
    shown = json.loads(cli.read("show", path, "--format", "json").stdout)
    return {"shown": shown, "loss": log, "ranks": ranks, "hook": hook, "path": path}


def test_an_unmodified_program_tells_its_steps_and_its_work(cli: Cli, tmp_path: Path) -> None:
    run = ran(cli, tmp_path / "out", sys.executable, "train.py", STEPS)
    step = run["shown"]["step"]
    assert step["count"] + step["warmup_count"] == STEPS and step["median_seconds"] > 0
    assert run["shown"]["flop"]["per_step"] == FLOP
    assert run["shown"]["throughput"]["samples_per_second"] > 0
    assert run["hook"]["processes"] == 1
    timing = run["shown"]["timing"]
    assert all(
        timing[f"{part}_seconds"] > 0 for part in ("launch", "import", "model", "first_step")
    )
    plain = [sys.executable, TRAIN, str(STEPS)]
    printed = subprocess.run(plain, capture_output=True, text=True, check=True).stdout
    assert run["loss"] == printed.splitlines() != []


def test_steps_are_the_hooks_and_the_loss_is_what_an_unmodified_program_prints(
    cli: Cli, tmp_path: Path
) -> None:
    text = TRAIN.read_text().replace(
        "    optimizer.step()\n",
        "    optimizer.step()\n"
        '    print(f"iter {optimizer.param_groups[0].setdefault(0, 0)}: "\n'
        '          f"loss {loss.item():.4f}, time 1.00ms", flush=True)\n'
        "    optimizer.param_groups[0][0] += 1\n",
    )
    (tmp_path / "prints.py").write_text(text)
    run = ran(cli, tmp_path / "out", sys.executable, tmp_path / "prints.py", STEPS)
    step = run["shown"]["step"]
    assert step["count"] + step["warmup_count"] == STEPS
    assert run["shown"]["throughput"]["samples_per_second"] > 0
    log = cli.read("log", run["path"]).stdout
    shown = cli.read("show", run["path"]).stdout
    assert "the loss is from lines in the format of nanoGPT" in " ".join(shown.split())
    loss = run["shown"]["training"]["step"]["loss"]["value"]
    assert f"loss {loss:.4f}, time" in log


PROGRAMS = Path(__file__).parents[2] / "hook" / "programs"
ACCUMULATED = 4 * (2 * 8 * (64 * 256 + 256 * 10) * 2 + 2 * 8 * 256 * 10)
CHECKPOINTED = 2 * 16 * (64 * 128 * 2 + 3 * (3 * 128 * 128 + 128 * 10))


@pytest.mark.parametrize(
    ("program", "flop", "place"),
    [
        ("accumulation.py", ACCUMULATED, "bare"),
        pytest.param("checkpointing.py", CHECKPOINTED, "docker", marks=pytest.mark.docker),
    ],
)
def test_programs_as_users_write_them(
    cli: Cli, tmp_path: Path, request: pytest.FixtureRequest, program: str, flop: int, place: str
) -> None:
    python, options = sys.executable, ()
    if place == "docker":
        python = "python3"
        options = ("--env", f"docker={request.getfixturevalue('torch_image')}")
    where = tmp_path / "where"
    where.mkdir()
    shutil.copy(PROGRAMS / program, where)
    run = ran(cli, tmp_path / "out", python, program, options=options)
    step = run["shown"]["step"]
    assert step["count"] + step["warmup_count"] == 8
    assert run["shown"]["flop"]["per_step"] == flop


def test_two_ranks_of_torchrun_are_one_run(cli: Cli, tmp_path: Path) -> None:
    command = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", 2)
    run = ran(cli, tmp_path / "out", *command, "train.py", STEPS)
    step = run["shown"]["step"]
    assert run["ranks"] == [0, 1] and step["count"] + step["warmup_count"] == STEPS
    assert run["shown"]["flop"]["per_step"] == 2 * FLOP
    assert step["samples_per_step"] == 64


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=getattr(pytest.mark, kind))
        for kind in ("docker", "apptainer", "charliecloud")
    ],
)
def test_the_same_program_tells_the_same_in_a_container(
    cli: Cli, tmp_path: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    image = request.getfixturevalue("torch_image" if kind == "docker" else "torch_root")
    options = ("--env", f"{kind}={image}")
    run = ran(cli, tmp_path / "out", "python3", "train.py", STEPS, options=options)
    step = run["shown"]["step"]
    assert step["count"] + step["warmup_count"] == STEPS
    assert run["shown"]["flop"]["per_step"] == FLOP


@pytest.mark.docker
@pytest.mark.apptainer
@pytest.mark.charliecloud
def test_ranks_of_our_own_workloads_are_one_run_everywhere(
    cli: Cli, tmp_path: Path, torch_image: str, torch_root: Path
) -> None:
    out = tmp_path / "out"
    flags = ("--nproc", 2, "--steps", 8, "--batch-size", 16, "--device", "cpu")
    places = ("bare", f"docker={torch_image}", f"apptainer={torch_root}")
    environments = [
        part for place in (*places, f"charliecloud={torch_root}") for part in ("--env", place)
    ]
    cli("--record", "--quiet", "mnist-cnn", *flags, "--out", out, *environments,
        "--python", sys.executable, timeout=500)  # fmt: skip
    paths = sorted(out.glob("*/*.gpuwatch"))
    assert len(paths) == 4
    for path in paths:
        with SessionReader(path) as reader:
            assert [row.rank for row in reader.ranks()] == [0, 1]
            assert "several_writers" not in reader.meta()
        shown = json.loads(cli.read("show", path, "--format", "json").stdout)
        assert (shown["step"]["count"], shown["step"]["samples_per_step"]) == (8, 32)
        assert shown["session"]["status"] == "finished"
