"""``import gpuwatch_hook as g``: what a program tells by itself, in real processes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import gpuwatch.hook
from tests.hook.hooked import Hooked

OUTSIDE = Path(gpuwatch.hook.__file__).parent / "outside" / "gpuwatch_hook.py"
OWN = """
import time
import gpuwatch_hook as g

g.plan(5)
for step in range(5):
    with g.step(samples=3, tokens=30):
        with g.phase("encoder"):
            time.sleep(0.002)
"""
TRAINING = """
import torch
import gpuwatch_hook as g

model = torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def passes(inputs):
    loss = model(inputs).sum()
    loss.backward()
    return loss

for step in range(6):
    with g.step(samples=2):
        for _ in range(3):
            with g.phase("passes"):
                loss = g.flop(passes, torch.randn(2, 8))
            with g.phase("update"):
                optimizer.step()
print(g.flop(passes, torch.randn(2, 8)) is not None)
"""


@pytest.fixture
def hooked(tmp_path: Path, programs: None) -> Hooked:
    return Hooked(tmp_path)


def test_steps_and_phases_of_a_program_without_torch(hooked: Hooked) -> None:
    shutil.copy(OUTSIDE, hooked.folder)  # first on the path, and yet not what is imported
    hooked.run(OWN)
    assert hooked.steps == 5
    (report,) = hooked.reports
    steps = [line for line in report if line["event"] == "step"]
    assert sum(line["samples"] for line in steps) == 15
    assert {line["total_steps"] for line in steps} == {5}
    assert sum(line["tokens"] for line in steps) == 150
    assert sum(line["phases"]["encoder"] for line in steps) >= 0.01
    for line in steps:
        assert sum(line["phases"].values()) == pytest.approx(sum(line["seconds"]))
    assert report[-1] == {"event": "end", "steps": 5}


def test_the_same_program_without_gpuwatch_needs_one_file(hooked: Hooked) -> None:
    shutil.copy(OUTSIDE, hooked.folder)
    hooked.run(OWN, hook=False)
    assert hooked.reports == []


@pytest.mark.torch
def test_own_steps_are_the_steps_and_their_calls_are_the_work(hooked: Hooked) -> None:
    assert hooked.run(TRAINING) == "True\n"
    assert hooked.steps == 6
    (count,) = hooked.lines("count")
    forward = 2 * 2 * 8 * 4
    assert count["flop_per_step"] == 3 * 2 * forward and count["samples"] == 2
    (step, *_) = hooked.lines("step")
    assert step["phases"]["passes"] > 0 and step["phases"]["update"] > 0
    assert "backward" not in step["phases"], "the program's phases are the only ones"
    assert hooked.lines("problem") == []
