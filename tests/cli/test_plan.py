"""``--plan`` and ``--dry-run``: what a study is going to do, for people and for programs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from gpuwatch import studies
from gpuwatch.cli.plan import DONE, IMPOSSIBLE, blocks
from gpuwatch.core.models import Environment, Workload
from gpuwatch.session.study.blocks import plan_runs
from gpuwatch.session.study.plan import Part, Plan
from tests.conftest import Cli
from tests.reading import meta

from .test_errors import one_line

BARE, DOCKER = Environment("bare", "bare"), Environment("docker", "docker=a/long/name:2.6")
GCN, CNN = Workload("gcn", "workload"), Workload("mnist-cnn", "workload")


def plan(*environments: Environment, cases: tuple[Workload, ...] = (GCN, CNN)) -> Plan:
    part = Part("p", cases, environments, blocks=3, warmup_blocks=1)
    return Plan("s", (part,), plan_runs((part,), 5), seed=5)


def test_a_block_is_a_line_of_short_names() -> None:
    found = plan(BARE, DOCKER, cases=(GCN,))
    told = blocks(found, 0, {}, 80)
    for block, line in enumerate(told):
        kinds = [run.environment.kind for run in found.runs if run.block == block]
        name = f"block {block}" if block else "warm-up"
        assert line == f"  {name}: {', '.join(kinds)}"
    assert len(told) == 4
    twins = plan(BARE, Environment("bare", "bare,python=x"), cases=(GCN,))
    assert "bare,python=x" in blocks(twins, 0, {}, 80)[0], "of one kind, so by their labels"
    assert sorted(blocks(plan(BARE), 0, {}, 80)[0].removeprefix("  warm-up: ").split("; ")) == [
        "gcn",
        "mnist-cnn",
    ]


def test_where_names_are_too_long_letters_and_numbers_give_the_same_order() -> None:
    found = plan(BARE, DOCKER)
    legend, cases, *told = blocks(found, 0, {}, 40)
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
    assert blocks(found, 0, marks, 200)[0].count("(done)") == 1
    assert blocks(found, 0, marks, 200)[0].count("(cannot run here)") == 1
    _, _, signs, first, *rest = blocks(found, 0, marks, 40)
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
    lacking = " ".join(cli("study", "precision", "--device", "cpu", "--plan").stdout.split())
    assert "64 runs in 2 parts bert, dtype tf32 in bare, resnet50, dtype tf32 in bare" in lacking


def asked(cli: Cli, *arguments: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        cli("--record", "--plan", "--format", "json", *arguments).stdout
    )
    assert found["schema"] == 2
    return found


def test_a_plan_names_its_runs_by_block_case_and_environment(cli: Cli) -> None:
    found = asked(
        cli,
        *("mnist-cnn", "gcn", "--env", "bare", "--env", "docker=x", "--quick"),
        *("--order-seed", 7),
    )
    (part,) = found["parts"]
    assert [each["label"] for each in part["cases"]] == ["mnist-cnn", "gcn"]
    assert part["cases"][0]["parameters"] == {"steps": 100}
    assert [each["label"] for each in part["environments"]] == ["bare", "docker=x"]
    assert (part["blocks"], part["warmup_blocks"], found["order_seed"]) == (3, 1, 7)
    assert [run["index"] for run in found["runs"]] == [*range(1, 17)]
    assert found["on"] == []
    for block in range(4):
        runs = [run for run in found["runs"] if run["block"] == block]
        cells = {(run["case"], run["environment"]) for run in runs}
        assert cells == {(0, 0), (0, 1), (1, 0), (1, 1)}


def test_what_cannot_run_says_why_at_its_run(cli: Cli) -> None:
    found = asked(cli, "--env", "bare", "--", "no-such-program")
    (run,) = found["runs"]
    (problem,) = run["problems"]
    assert "no-such-program" in problem["text"] and problem["hint"] and not run["done"]


def test_a_time_that_is_not_known_is_null_with_its_reason_and_then_known(cli: Cli) -> None:
    found = asked(cli, "--", "true")
    assert found["seconds"] is None
    assert found["reason"] == "no earlier run of true in bare with these settings that finished"
    cli("--record", "--", "true")
    found = asked(cli, "--", "true")
    assert found["seconds"] > 0 and found["reason"] is None


def test_a_format_without_a_plan_is_refused(cli: Cli) -> None:
    said = one_line(cli("--record", "--format", "json", "--", "true", code=2).stderr)
    assert "--plan" in said


def launches(cli: Cli, *arguments: object) -> list[dict[str, Any]]:
    found = json.loads(cli("--record", "--dry-run", "--format", "json", *arguments).stdout)
    assert found["schema"] == 2
    return list(found["launches"])


def test_a_bare_run_is_shown_as_it_is_then_started(cli: Cli, tmp_path: Path) -> None:
    work = ("--", "sh", "-c", "exit 0", "a b")
    text = cli("--record", "--dry-run", "--out", tmp_path / "out", *work).stdout
    assert "command: sh -c 'exit 0' 'a b'" in text
    assert not (tmp_path / "out").exists()
    (launch,) = launches(cli, *work)
    cli("--record", "--out", tmp_path / "out", *work)
    (session,) = (tmp_path / "out").glob("*/*.gpuwatch")
    assert launch["command"] == meta(session)["launch"]["command"] == ["sh", "-c", "exit 0", "a b"]
    assert launch["working_directory"] == str(cli.home)
    assert (launch["runs"], launch["problems"]) == ([1], [])


def test_each_way_of_launching_stands_once_with_its_runs(cli: Cli) -> None:
    flags = ("--quick", "--order-seed", 1, "--env", "bare", "--env", "docker=no/such")
    bare, docker = launches(cli, *flags, "--", "true")
    assert len(bare["runs"]) == len(docker["runs"]) == 4
    assert sorted([*bare["runs"], *docker["runs"]]) == [*range(1, 9)]
    assert docker["command"] is None and docker["problems"][0]["text"]


def test_a_folder_of_missing_runs_is_shown_too(cli: Cli, tmp_path: Path) -> None:
    flags = ("--quick", "--out", tmp_path / "out", "--env", "bare")
    cli("--record", *flags, "--", "true")
    (study,) = (tmp_path / "out").iterdir()
    (study / "02-bare.gpuwatch").unlink()
    text = cli("resume", "--dry-run", study).stdout
    assert "bare (1 run)" in text and "command: true" in text


@pytest.mark.docker
def test_dockers_container_is_created_with_the_settings_that_were_shown(
    cli: Cli, small_image: str
) -> None:
    from gpuwatch.runners.docker.client import connect

    work = ("--env", f"docker={small_image},memory=64m", "--", "sleep", "300")
    (launch,) = launches(cli, *work)
    session = Path(cli("--record", "--detach", *work).stdout.strip())
    run = meta(session)["session"]["id"]
    with connect().client() as api:
        found = api.inspect_container(f"gpuwatch-{run}")
    cli("stop", session)
    container, host = launch["settings"]["container"], launch["settings"]["host_config"]
    assert found["Config"]["Entrypoint"] == container["entrypoint"] == ["sleep"]
    assert found["Config"]["Cmd"] == container["command"] == ["300"]
    assert found["Image"] == container["image"]
    variables = {f"{name}={value}" for name, value in container["environment"].items()}
    assert variables <= set(found["Config"]["Env"])
    assert found["HostConfig"]["Memory"] == host["mem_limit"] == 64 << 20
    assert found["HostConfig"]["CapDrop"] == host["cap_drop"] == ["ALL"]
    mounts = [mount["Source"].replace("/RUN/", f"/{run}/") for mount in host["mounts"]]
    assert [mount["Source"] for mount in found["HostConfig"]["Mounts"]] == mounts
