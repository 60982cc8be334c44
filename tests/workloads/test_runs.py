"""Whole runs: the archive in a process of its own, and what its step lines say."""

from __future__ import annotations

import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import gpuwatch.workloads
from gpuwatch.workloads.archive import build
from gpuwatch.workloads.clock import PHASES

from .conftest import Report, parse

pytestmark = pytest.mark.torch

Run = Callable[..., Report]
SOURCE = Path(gpuwatch.workloads.__file__).resolve().parent


@pytest.mark.parametrize(
    ("workload", "steps", "batch", "data"),
    [
        ("mnist-cnn", 8, 64, "512 images"),
        ("sentiment-rnn", 16, 64, "1000 reviews"),
        ("gcn", 200, 2708, "5429 citations, 1433 features, 7 classes, 140 labelled"),
    ],
)
def test_a_workload_with_its_defaults_is_the_studys(
    fork_workload: Run, workload: str, steps: int, batch: int, data: str
) -> None:
    done = fork_workload(workload)
    assert done.code == 0, done.stderr
    run = done.one("run")
    assert (run["workload"], run["device"], run["dtype"]) == (workload, "cpu", "float32")
    assert (run["total_steps"], run["batch_size"]) == (steps, batch)
    assert run["data"]["kind"] == "synthetic"
    assert data in run["data"]["text"]
    assert len(done.seconds()) == done.one("end")["steps"] == steps
    assert sum(step["count"] for step in done.steps(warmup=True)) == run["warmup_steps"]
    assert done.all("epoch")[-1]["epoch"] == run["parameters"]["epochs"]


def test_images_with_their_channels_last_give_the_same_losses(fork_workload: Run) -> None:
    plain = fork_workload("cifar10-cnn", "--steps", 4)
    other = fork_workload("cifar10-cnn", "--steps", 4, "--memory-format", "channels_last")
    assert "memory_format" not in plain.one("run")["parameters"]
    assert other.one("run")["parameters"]["memory_format"] == "channels_last"
    assert other.losses() == pytest.approx(plain.losses(), rel=1e-5)
    assert other.one("count")["flop_per_step"] == plain.one("count")["flop_per_step"]


def test_a_graph_networks_loss_falls(fork_workload: Run) -> None:
    losses = fork_workload("gcn", "--steps", 100).losses()
    assert losses[-1] < losses[0] / 2


def test_a_run_tells_its_story_in_order(run_workload: Run) -> None:
    before = time.monotonic_ns()
    done = run_workload("cifar10-cnn", "--steps", 60, "--warmup", 3)
    assert done.code == 0, done.stderr
    assert done.log == []
    order = list(dict.fromkeys(event["event"] for event in done.events))
    assert order == ["started", "versions", "run", "step", "startup", "count", "end", "profile"]
    assert before < done.one("started")["monotonic_ns"] < time.monotonic_ns()
    assert done.one("started")["executable"] == sys.executable
    versions = done.one("versions")
    assert set(versions) >= {"torch", "python", "blas", "threads", "libc"}
    assert ("onednn_isa" in versions) is ("mkldnn" in versions)
    assert done.one("run")["parameters"]["lr"] == 1e-3
    count = done.one("count")
    assert count["flop_forward_per_sample"] == 2 * (28**2 * 6 * 75 + 10**2 * 16 * 150 + 400 * 120
                                                    + 120 * 84 + 84 * 10)  # fmt: skip
    assert count["flop_per_step"] < 3 * 32 * count["flop_forward_per_sample"]
    assert count["bytes_per_step"] > 0
    startup, end = done.one("startup"), done.one("end")
    assert 0 < startup["first_step_seconds"] < end["real_seconds"]
    assert 0 < startup["import_seconds"] + startup["model_seconds"] < end["real_seconds"]
    assert end["user_seconds"] > 0
    assert 0 < end["seconds_reporting"] < end["real_seconds"]
    for step in done.all("step"):
        assert set(step["phases"]) == set(PHASES)
        assert sum(step["phases"].values()) == pytest.approx(sum(step["seconds"]), abs=1e-6)
    ends = [step["monotonic_ns"] for step in done.steps()]
    assert ends == sorted(ends)
    passed = (ends[-1] - ends[0]) / 1e9
    assert sum(done.seconds()[1:]) == pytest.approx(passed, abs=1e-3)


def test_the_same_seed_gives_the_same_losses_and_another_gives_others(fork_workload: Run) -> None:
    arguments = ("mnist-cnn", "--steps", 6, "--warmup", 1, "--seed")
    one, again, other = (fork_workload(*arguments, seed, "--workers", 0) for seed in (3, 3, 4))
    assert one.losses() == again.losses()
    assert one.losses(warmup=True) == again.losses(warmup=True)
    assert one.losses() != other.losses()


def test_steps_override_epochs_and_wrap_them(fork_workload: Run) -> None:
    done = fork_workload("sentiment-rnn", "--steps", 20, "--epochs", 9, "--batch-size", 128)
    assert done.one("run")["total_steps"] == len(done.seconds()) == 20
    assert done.one("run")["steps_per_epoch"] == 8
    assert sum(step["samples"] for step in done.steps()) == 2 * 1000 + 4 * 128


def test_a_batch_that_is_smaller_is_flagged_by_its_number(fork_workload: Run) -> None:
    done = fork_workload("mnist-cnn", "--batch-size", 100, "--epochs", 2, "--workers", 0)
    assert [n for step in done.steps() for n in step.get("partial", [])] == [6, 12]
    assert sum(step["samples"] for step in done.steps()) == 2 * 512


@pytest.mark.parametrize("workload", ["sentiment-rnn", "gcn"])
def test_recurrent_and_sparse_products_train_in_bfloat16(fork_workload: Run, workload: str) -> None:
    done = fork_workload(workload, "--steps", 2, "--dtype", "bfloat16")
    assert done.code == 0, done.stderr
    assert None not in done.losses()
    assert done.one("count")["flop_per_step"] > 0


def test_no_warmup_leaves_no_warmup_lines(fork_workload: Run) -> None:
    done = fork_workload("sentiment-rnn", "--steps", 3, "--warmup", 0)
    assert done.steps(warmup=True) == []
    assert len(done.seconds()) == 3


def test_bfloat16_trains_and_counts_the_same_forward(fork_workload: Run) -> None:
    half = fork_workload("mnist-cnn", "--steps", 2, "--dtype", "bfloat16")
    assert half.code == 0, half.stderr
    assert half.one("run")["dtype"] == "bfloat16"
    forward = 2 * (26**2 * 32 * 9 + 24**2 * 64 * 288 + 9216 * 128 + 128 * 10)
    assert half.one("count")["flop_forward_per_sample"] == forward


@pytest.mark.parametrize(
    ("workload", "size", "extra"),
    [
        ("resnet18", 224, ()),
        ("torchvision:googlenet", 96, ("--image-size", 96)),
        ("torchvision:inception_v3", 299, ()),
        ("torchvision:vit_b_32", 64, ("--image-size", 64)),
    ],
)
def test_torchvisions_models_train(
    fork_workload: Run, workload: str, size: int, extra: tuple[object, ...]
) -> None:
    done = fork_workload(
        workload, "--steps", 1, "--warmup", 0, "--batch-size", 2, "--workers", 0, *extra
    )
    assert done.code == 0, done.stderr
    assert f"images of {size} x {size}" in done.one("run")["model"]
    assert len(done.losses()) == 1
    assert done.one("count")["flop_per_step"] > 0
    assert "torchvision" in done.one("versions")


def test_real_data_is_named_with_its_path(fork_workload: Run, tmp_path: Path) -> None:
    images = struct.pack(">HBBIII", 0, 8, 3, 600, 28, 28) + bytes(600 * 784)
    labels = struct.pack(">HBBI", 0, 8, 1, 600) + bytes(600)
    (tmp_path / "train-images-idx3-ubyte").write_bytes(images)
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(labels)
    done = fork_workload("mnist-cnn", "--data", tmp_path, "--steps", 2)
    assert done.code == 0, done.stderr
    data = done.one("run")["data"]
    assert (data["kind"], data["samples"], data["path"]) == ("real", 512, str(tmp_path))


@pytest.mark.parametrize(
    ("signals", "code"),
    [
        ([signal.SIGTERM], 143),
        # A scheduler asks every process of a job, and what watches over one of them asks it again.
        ([signal.SIGINT, signal.SIGTERM], 130),
    ],
)
def test_a_signal_ends_a_run_quickly_with_its_pending_steps_reported(
    archive: Path, signals: list[signal.Signals], code: int
) -> None:
    process = subprocess.Popen(
        [sys.executable, archive, "mnist-cnn", "--steps", "100000", "--device", "cpu"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if '"total_steps"' in line and '"step"' in line:
            break
    for signum in signals:
        os.killpg(process.pid, signum)
    rest, stderr = process.communicate(timeout=60)
    assert process.returncode == code
    assert stderr == ""
    events, log = parse("".join(lines) + rest)
    assert log == []
    assert events[-1]["event"] == "end"
    timed = [e for e in events if e["event"] == "step" and not e.get("warmup")]
    assert events[-1]["steps"] == timed[-1]["step"] == sum(e["count"] for e in timed)


@pytest.mark.parametrize("mode", ["train", "infer"])
def test_the_first_step_waits_for_no_more_of_torch_than_it_needs(archive: Path, mode: str) -> None:
    """What is imported before its line: of the count, the profilers and Triton nothing; torch's
    compiler, which takes as long as most of the rest, only for the optimizers, which load it."""
    done = subprocess.run(
        [
            *(sys.executable, "-X", "importtime", archive, "sentiment-rnn", "--mode", mode),
            *("--steps", "1", "--profile", "0", "--device", "cpu"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
        timeout=150,
    )
    before, line, after = done.stdout.partition('{"event": "step"')
    modules = {row.rpartition("|")[2].strip() for row in before.splitlines()}
    assert line and {"torch", "workloads.session"} <= modules
    unneeded: tuple[str, ...] = ("workloads.flop", "workloads.profiling", "torchvision")
    if mode == "infer":
        unneeded += ("torch._dynamo", "sympy", "triton")
    assert [name for name in modules if name.startswith(unneeded)] == []
    assert "workloads.flop.counting" in after


def test_a_reader_that_goes_away_ends_the_run_without_a_traceback(archive: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, archive, "sentiment-rnn", "--steps", "100000", "--device", "cpu"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=60) == 141
    assert process.stderr.read() == b""


NEW_WORKLOAD = """
import os, signal
import torch
from torch.utils.data import Dataset, get_worker_info
from ..names import defaults
from ..task import Data, Definition, Task

class Samples(Dataset):
    def __len__(self): return 100
    def __getitem__(self, index):
        if get_worker_info() is not None and index:
            os.kill(os.getpid(), signal.SIGBUS)
        return torch.ones(4), torch.tensor(1)

class Odd(torch.nn.Linear):
    def forward(self, x):
        if x.device.type == "meta": raise RuntimeError("no shapes for this")
        return super().forward(x)

def objective(model, inputs, target):
    scores = model(*inputs)
    return torch.nn.functional.cross_entropy(scores, target), scores, target

def make(settings):
    data = Data("synthetic", "ones", 100, Samples())
    optimizer = lambda parameters: torch.optim.SGD(parameters, lr=settings.lr)
    return Task(Odd(4, 2), "linear", data, objective, optimizer)

def definition(name):
    return Definition(defaults(name), make)
"""


def the_guides_workload() -> tuple[str, str]:
    """What CONTRIBUTING.md writes into ``names.py``, and the workload that it adds."""
    guide = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text()
    section = guide.split("\n## Add a workload\n")[1].split("\n## ")[0]
    entry, workload = re.findall(r"```(?:python)?\n(.*?)```", section, re.DOTALL)
    return entry, workload


def the_guides(file: str) -> str:
    """What docs/workloads.md writes into ``file``."""
    guide = Path(__file__).parents[2] / "docs" / "workloads.md"
    (code,) = [
        block.partition("```")[0]
        for block in guide.read_text().split("```python\n")[1:]
        if file in block.partition("\n")[0]
    ]
    return code


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive with two workloads more: a file each, and an entry among the names."""
    folder = tmp_path_factory.mktemp("extended")
    source = folder / "source"
    shutil.copytree(SOURCE, source)
    (source / "tasks" / "new.py").write_text(NEW_WORKLOAD)
    entry, workload = the_guides_workload()
    (source / "tasks" / "parity_mlp.py").write_text(workload)
    names = (source / "names.py").read_text()
    line = "BUILT_IN: dict[str, Entry] = {\n"
    new = '"new": Entry("new", "a new one", Defaults(batch_size=10, epochs=1, lr=0.1)),'
    added = f"{line}{new}\n{entry}"
    (source / "names.py").write_text(names.replace(line, added))
    build(folder / "workloads.pyz", source)
    return folder / "workloads.pyz"


def test_a_workload_is_added_as_the_guide_says_in_under_fifty_lines(
    extended: Path, fork_workload: Run
) -> None:
    done = fork_workload("parity-mlp", archive=extended)
    assert done.code == 0, done.stderr
    assert len(done.seconds()) == 2 * 4096 // 128
    forward = 2 * (16 * 64 + 64 * 2)
    assert done.one("count")["flop_forward_per_sample"] == forward
    _, workload = the_guides_workload()
    assert len(workload.splitlines()) < 50


def test_work_that_cannot_be_counted_is_null_with_the_reason_and_never_zero(
    extended: Path, fork_workload: Run
) -> None:
    count = fork_workload("new", "--steps", 1, archive=extended).one("count")
    assert count["flop_per_step"] is count["bytes_per_step"] is None
    assert count["flop_forward_per_sample"] is None
    assert count["method"] == "not counted: RuntimeError: no shapes for this"


def test_a_worker_killed_by_a_bus_error_is_told_with_the_mend(
    extended: Path, fork_workload: Run
) -> None:
    done = fork_workload("new", "--workers", 1, archive=extended)
    assert done.code == 1
    assert done.one("error")["kind"] == "run"
    assert "/dev/shm" in done.one("error")["hint"]
    assert "Traceback" not in done.stderr
