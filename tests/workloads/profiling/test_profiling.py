"""Steps under torch.profiler behind the timed ones."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import gpuwatch.workloads
from gpuwatch.workloads.archive import build

from ..conftest import Report, parse

pytestmark = pytest.mark.torch

Run = Callable[..., Report]
SOURCE = Path(gpuwatch.workloads.__file__).resolve().parent


def test_the_profile_comes_after_the_end_and_is_of_so_many_steps(fork_workload: Run) -> None:
    done = fork_workload("mnist-cnn", "--steps", 3, "--profile", 2)
    assert done.code == 0 and done.stderr == ""
    assert [event["event"] for event in done.events][-2:] == ["end", "profile"]
    profile = done.one("profile")
    assert (profile["tool"], profile["device"], profile["steps"]) == ("torch.profiler", "cpu", 2)
    assert profile["reason"] is None and profile["version"] == done.one("versions")["torch"]
    assert profile["table"] == "cpu_op_sum"
    assert profile["columns"] == ["Time (%)", "Total Time (ns)", "Calls", "Avg (ns)", "Name"]
    by_name = {row[-1]: row for row in profile["rows"]}
    assert by_name["aten::convolution_backward"][2] == 2 * 2, "two convolutions in two steps"
    assert sum(row[0] for row in profile["rows"]) == pytest.approx(100, abs=0.1)
    assert sum(row[1] for row in profile["rows"]) / 1e9 < 2 * profile["step_seconds"]
    assert profile["step_seconds"] * 2 < profile["real_seconds"]
    assert profile["user_seconds"] > 0


def test_four_steps_are_profiled_without_a_word_and_change_no_step_and_no_loss(
    fork_workload: Run,
) -> None:
    arguments = ("sentiment-rnn", "--steps", 4)
    with_it, without = fork_workload(*arguments), fork_workload(*arguments, "--profile", 0)
    assert with_it.one("profile")["steps"] == 4
    assert without.all("profile") == []
    assert with_it.losses() == without.losses()
    assert with_it.one("end")["steps"] == without.one("end")["steps"] == 4


@pytest.mark.parametrize(
    ("asked", "step_seconds", "steps", "warmup"),
    [(4, 0.005, 4, 1), (4, 1.0, 4, 1), (4, 2.0, 1, 1), (1, 4.0, 1, 0), (4, 50.0, 1, 0)],
)
def test_slow_steps_are_profiled_fewer_times(
    asked: int, step_seconds: float, steps: int, warmup: int
) -> None:
    from gpuwatch.workloads.profiling.torch_profiler import extent

    found = extent(asked, step_seconds)
    assert found is not None
    assert (found.steps, found.warmup) == (steps, warmup)


def test_steps_of_over_a_minute_are_not_profiled_and_the_reason_is_told() -> None:
    import torch

    from gpuwatch.workloads.profiling.torch_profiler import profile_steps

    def never() -> None:
        raise AssertionError

    found = profile_steps(never, never, torch.device("cpu"), 4, 61.0)
    assert found.steps is None and found.tables == ()
    assert found.reason == "a step takes 61 s, and steps over 60 s are not profiled"


def test_a_profiler_that_fails_is_a_reason() -> None:
    import torch

    from gpuwatch.workloads.profiling.torch_profiler import profile_steps

    def fails() -> None:
        raise RuntimeError("CUPTI is busy\nin detail")

    found = profile_steps(lambda: None, fails, torch.device("cpu"), 4, 0.01)
    assert found.reason == "torch.profiler failed: RuntimeError: CUPTI is busy"


def test_a_gpu_whose_kernels_are_not_seen_is_told_with_the_mend(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import torch

    from gpuwatch.workloads.profiling import torch_profiler

    monkeypatch.setattr(torch_profiler, "_synchronize", lambda device: None)

    def step() -> None:
        torch.ones(8, 8).mm(torch.ones(8, 8))

    found = torch_profiler.profile_steps(lambda: None, step, torch.device("cuda"), 2, 0.01)
    assert found.reason is not None
    assert "saw no kernel" in found.reason and "end nsys" in found.reason
    assert [table.name for table in found.tables] == ["cpu_op_sum"]


def test_no_line_of_a_large_profile_is_over_48_kib(capsys: pytest.CaptureFixture[str]) -> None:
    import torch

    from gpuwatch.workloads.lines import emit
    from gpuwatch.workloads.profiling.torch_profiler import ProfileResult, report
    from gpuwatch.workloads.profiling.traces import Table

    rows = [[1.0, 10, 1, 10.0, f"{number}" + "k" * 490] for number in range(300)]
    large = Table(
        "cpu_op_sum", ("Time (%)", "Total Time (ns)", "Calls", "Avg (ns)", "Name"), rows, 7
    )
    report(ProfileResult(4, 0.1, [large]), torch.device("cpu"), emit)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 3 and max(map(len, lines)) < 48 * 1024
    events = [json.loads(line.partition(" ")[2]) for line in lines]
    assert [row for event in events for row in event["rows"]] == rows
    assert sum(event["rows_left_out"] for event in events) == 7


BLOCKS = """
import time
import torch
from torch.utils.data import TensorDataset
from ..names import defaults
from ..task import Data, Definition, Task

class Blocks(torch.nn.Linear):
    calls = 0
    def forward(self, x):
        if x.device.type != "meta":
            Blocks.calls += 1
            if Blocks.calls > 2:
                print("in the profile", flush=True)
                for _ in range(3000):  # one long sleep would outlast a signal just before it
                    time.sleep(0.1)
        return super().forward(x)

def objective(model, inputs, target):
    scores = model(*inputs)
    return torch.nn.functional.cross_entropy(scores, target), scores, target

def make(settings):
    dataset = TensorDataset(torch.ones(20, 4), torch.ones(20, dtype=torch.long))
    data = Data("synthetic", "ones", 20, dataset)
    optimizer = lambda parameters: torch.optim.SGD(parameters, lr=settings.lr)
    return Task(Blocks(4, 2), "linear", data, objective, optimizer)

def definition(name):
    return Definition(defaults(name), make)
"""


def test_a_signal_during_the_profile_ends_the_run_cleanly(tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(SOURCE, source)
    (source / "tasks" / "blocks.py").write_text(BLOCKS)
    names = (source / "names.py").read_text()
    line = "BUILT_IN: dict[str, Entry] = {\n"
    entry = '"blocks": Entry("blocks", "a test", Defaults(batch_size=10, epochs=1, lr=0.1)),'
    added = names.replace(line, f"{line}{entry}")
    (source / "names.py").write_text(added)
    build(tmp_path / "workloads.pyz", source)
    process = subprocess.Popen(
        [sys.executable, tmp_path / "workloads.pyz", "blocks", "--steps", "1", "--warmup", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line == "in the profile\n":
            break
    process.send_signal(signal.SIGTERM)
    rest, stderr = process.communicate(timeout=60)
    assert process.returncode == 143 and stderr == ""
    events, _ = parse("".join(lines) + rest)
    assert [event["event"] for event in events][-2:] == ["end", "profile"]
    assert events[-1]["reason"] == "the run was stopped while it was profiled"
    assert events[-1]["steps"] is None and events[-1]["rows"] == []
