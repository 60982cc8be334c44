"""The parts of benchmarks/hook.py."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import hook
from gpuwatch.hook.archive import build


def test_an_interval_is_that_of_students_mean() -> None:
    found = hook.interval([1.0, 2.0, 3.0, 4.0])
    error = 3.1824 * math.sqrt(5 / 3) / 2  # Student's t of 3 degrees of freedom
    assert found.mean == 2.5 and found.high - found.low == pytest.approx(2 * error, rel=1e-4)
    assert str(found.times(10)) == f"25.00 ({10 * found.low:.2f} to {10 * found.high:.2f})"


def test_what_the_hook_does_is_what_it_costs() -> None:
    """A program of 1 s a step, and a hook that takes 10 us of each: on a clock that drifts."""
    now, hooked = 0.0, False

    def clock() -> float:
        return now

    def step() -> None:
        nonlocal now
        now += 1.0 + 1e-9 * now + (10e-6 if hooked else 0.0)

    def switch(on: bool) -> None:
        nonlocal hooked
        hooked = on

    costs = hook.step_costs(step, switch, 200, clock=clock)
    assert len(costs) == 200 // hook.BLOCK
    assert hook.interval(costs).mean == pytest.approx(10e-6, rel=0.01)


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Path]:
    build(tmp_path / "hook.pyz")
    (tmp_path / "hook").mkdir()
    yield tmp_path / "hook.pyz"


@pytest.mark.torch
def test_the_hook_is_taken_out_and_put_back(archive: Path) -> None:
    """In a real process: it reports what runs while it is in, and nothing of the rest."""
    folder = archive.parent / "hook"
    costs = "hook.step_costs(hook.training(2, True), hook.Switch().set, 20)"
    assert len(hook.inside(costs, hook.variables(archive, folder))) == 2
    (file,) = folder.iterdir()
    assert f'"event": "end", "steps": {20 + hook.BLOCK}' in file.read_text()


@pytest.mark.torch
def test_a_compiled_program_is_compiled_as_often_with_the_hook(archive: Path) -> None:
    folder = archive.parent / "hook"
    plain, hooked = (
        hook.inside("hook.compilations()", environment)
        for environment in (hook.variables(None, folder), hook.variables(archive, folder))
    )
    assert hooked == plain and plain["optimizer.step, first"] > 0


def test_what_a_start_costs_is_the_difference_of_two(
    archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = archive.parent / "hook"
    assert hook.started("pass", hook.variables(archive, folder)) > 0
    hooked = "GPUWATCH_HOOK"
    monkeypatch.setattr(hook, "started", lambda _, given: 1.25 if hooked in given else 1.0)
    cost, plain = hook.start_costs("pass", archive, folder, 3)
    assert (cost.mean, plain) == (0.25, 1.0)
