"""``--plan``: the runs of a study in their order, on few lines that fit."""

from __future__ import annotations

import re

import pytest

from gpuwatch import studies
from gpuwatch.cli.plan.block_order import DONE, IMPOSSIBLE, lines
from gpuwatch.core.models import Environment, Workload
from gpuwatch.session.study.blocks import plan_runs
from gpuwatch.session.study.plan import Part, Plan
from tests.conftest import Cli

BARE, DOCKER = Environment("bare", "bare"), Environment("docker", "docker=a/long/name:2.6")
GCN, CNN = Workload("gcn", "workload"), Workload("mnist-cnn", "workload")


def plan(*environments: Environment, cases: tuple[Workload, ...] = (GCN, CNN)) -> Plan:
    part = Part("p", cases, environments, blocks=3, warmup_blocks=1)
    return Plan("s", (part,), plan_runs((part,), 5), seed=5)


def test_a_block_is_a_line_of_short_names() -> None:
    found = plan(BARE, DOCKER, cases=(GCN,))
    told = lines(found, 0, {}, 80)
    for block, line in enumerate(told):
        kinds = [run.environment.kind for run in found.runs if run.block == block]
        name = f"block {block}" if block else "warm-up"
        assert line == f"  {name}: {', '.join(kinds)}"
    assert len(told) == 4
    twins = plan(BARE, Environment("bare", "bare,python=x"), cases=(GCN,))
    assert "bare,python=x" in lines(twins, 0, {}, 80)[0], "of one kind, so by their labels"
    assert sorted(lines(plan(BARE), 0, {}, 80)[0].removeprefix("  warm-up: ").split("; ")) == [
        "gcn",
        "mnist-cnn",
    ]


def test_where_names_are_too_long_letters_and_numbers_give_the_same_order() -> None:
    found = plan(BARE, DOCKER)
    legend, cases, *told = lines(found, 0, {}, 40)
    assert (legend, cases) == ("  A bare, B docker", "  1 gcn; 2 mnist-cnn")
    read = [
        ({"1": GCN, "2": CNN}[number], {"A": BARE, "B": DOCKER}[letter])
        for line in told
        for number, letters in re.findall(r"(\d)([AB]+)", line.partition(":")[2])
        for letter in letters
    ]
    assert read == [(run.workload, run.environment) for run in found.runs]


def test_what_is_done_and_what_cannot_run_is_marked_either_way() -> None:
    found = plan(BARE, DOCKER)
    marks = {1: DONE, 3: IMPOSSIBLE}
    assert lines(found, 0, marks, 200)[0].count("(done)") == 1
    assert lines(found, 0, marks, 200)[0].count("(cannot run here)") == 1
    _, _, signs, first, *rest = lines(found, 0, marks, 40)
    assert signs == "  * done, ! cannot run here"
    assert (first.count("*"), first.count("!")) == (1, 1) and not re.search("[*!]", "".join(rest))


@pytest.mark.parametrize("name", studies.presets())
def test_the_plan_of_a_preset_is_read_at_a_glance(cli: Cli, name: str) -> None:
    cli.variables["COLUMNS"] = "80"
    told = cli("study", name, "--plan").stdout.splitlines()
    assert len(told) <= 40 and max(map(len, told)) <= 80
    assert sum(": " in line and line.startswith("  ") for line in told) >= 5


def test_a_plan_says_what_cannot_run_here_and_how_many_runs_all_parts_have(cli: Cli) -> None:
    flags = ("--env", "bare", "--env", "charliecloud=/nonexistent", "--plan")
    told = " ".join(cli("study", "multi-environment", *flags).stdout.split())
    assert "104 runs in 2 parts" in told
    assert "charliecloud=nonexistent cannot run here: there is no /nonexistent" in told
    assert told.count("there is no /nonexistent") == 1
    nothing = cli("--record", "--gpus", "7", "--plan", "--env", "bare", "--", "true").stdout
    assert "bare cannot run here: " in nothing and "--gpus" in nothing
