"""Steps of a program under torch.profiler: in no figure, and nothing that it computes changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.forks import Forks
from tests.hook.hooked import Hooked
from tests.hook.test_programs import Start, Told

pytestmark = [pytest.mark.torch, pytest.mark.timeout(600)]

WITHOUT_TORCH = """
import gpuwatch_hook as g
for _ in range(30):
    with g.step(samples=1):
        pass
"""
PLANNED = """
import gpuwatch_hook as g
from training import train
g.plan({plan})
train(steps={steps})
"""


@pytest.fixture
def start(tmp_path: Path, plainly: Forks) -> Start:
    return Start(tmp_path, plainly)


def out_of_figures(steps: list[dict[str, Any]]) -> list[int]:
    """Numbers of the steps that are in no statistic."""
    return [
        number
        for line in steps
        if line.get("warmup")
        for number in range(line["step"] - line["count"] + 1, line["step"] + 1)
    ]


@pytest.mark.parametrize("how", ["eager", "compiled"])
def test_profiled_steps_change_no_loss_and_no_compilation_and_are_in_no_figure(
    start: Start, how: str
) -> None:
    (told,) = start.unchanged("profiled.py", how, options="profile=3").told
    assert isinstance(told, Told) and told.steps == 30
    (profile,) = told.of("profile")
    assert (profile["tool"], profile["device"], profile["steps"]) == ("torch.profiler", "cpu", 3)
    assert (profile["table"], profile["reason"]) == ("cpu_op_sum", None)
    assert profile["notes"] == ["steps 24 to 26 of the program, which are in no other figure"]
    assert {23, 24, 25, 26, 27} <= set(out_of_figures(told.of("step")))
    assert not {20, 21, 22, 28, 29, 30} & set(out_of_figures(told.of("step")))
    calls = {row[-1]: row[2] for row in profile["rows"]}
    if how == "eager":
        assert calls["aten::addmm"] == 3 * 2
    assert told.count["flop_per_step"]


@pytest.fixture
def hooked(tmp_path: Path) -> Iterator[Hooked]:
    found = Hooked(tmp_path)
    found.variables["GPUWATCH_HOOK_OPTIONS"] = "profile=2"
    yield found


def test_of_a_plan_the_last_steps_are_profiled(hooked: Hooked) -> None:
    hooked.run(PLANNED.format(plan=400, steps=400))
    (profile,) = hooked.lines("profile")
    assert profile["notes"] == ["steps 399 to 400 of the program, which are in no other figure"]
    assert out_of_figures(hooked.lines("step"))[-3:] == [398, 399, 400] and hooked.steps == 400


@pytest.mark.parametrize(
    ("program", "why"),
    [
        (PLANNED.format(plan=100, steps=12), "ended after 12 steps, and those after 97 were"),
        (PLANNED.format(plan=12, steps=11), "the program ended while its steps were profiled"),
        (WITHOUT_TORCH, "the program has no torch"),
    ],
)
def test_why_no_step_was_profiled_is_told(hooked: Hooked, program: str, why: str) -> None:
    hooked.run(program)
    (profile,) = hooked.lines("profile")
    assert why in profile["reason"] and profile["table"] is None
