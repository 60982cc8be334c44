"""``gpuwatch noise``: one environment against itself."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import pytest

from gpuwatch.cli.commands import noise
from gpuwatch.cli.dispatch import dispatch
from gpuwatch.core.errors import UsageError
from gpuwatch.session.study.plan import Plan, read
from tests.conftest import Cli
from tests.reading import sessions

from ..parsed_request import plan_asked
from .test_record import STEPS


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> partial[Plan]:
    """What ``gpuwatch noise`` would start."""
    return partial(plan_asked, noise, monkeypatch)


def test_the_environment_stands_in_it_twice(ask: partial[Plan]) -> None:
    (part,) = ask("mnist-cnn", "--steps", 50, "--env", "docker=a").parts
    assert [each.label for each in part.environments] == ["docker=a#1", "docker=a#2"]
    assert part.blocks == 10 and part.warmup_blocks == 1
    assert part.workloads[0].parameters == {"steps": 50}
    (part,) = ask("mnist-cnn", "gcn", "--rigorous").parts
    assert part.workloads[0].parameters == {"steps": 100}
    assert [each.label for each in part.environments] == ["bare#1", "bare#2"]
    assert part.blocks == 20 and [case.name for case in part.workloads] == ["mnist-cnn", "gcn"]


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ([], "nothing to run"),
        (["gcn", "--env", "bare", "--env", "docker"], "one environment at a time"),
        (["gcn", "--", "true"], "both a workload"),
        (["--steps", "5", "--", "true"], "a flag of gpuwatch's own"),
        (["gnc"], "did you mean gcn"),
    ],
)
def test_what_cannot_be_measured_is_one_error(argv: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        dispatch(["noise", *argv])


def test_a_command_is_run_against_itself(cli: Cli, tmp_path: Path) -> None:
    cli(
        "noise", "--blocks", 1, "--cool-down", 0, "--out", tmp_path, "--quiet",
        "--", sys.executable, STEPS, 12, 0.002,
    )  # fmt: skip
    found = read(next(tmp_path.glob("steps.py-*")))
    assert found is not None
    by_block = {
        block: sorted(run.environment.label for run in found.runs if run.block == block)
        for block in (0, 1)
    }
    assert by_block == {0: ["bare#1", "bare#2"], 1: ["bare#1", "bare#2"]}
    assert [path.name for path in sessions(tmp_path)] == [run.file for run in found.runs]
