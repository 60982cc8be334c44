"""``gpuwatch study``: presets and files of the user's own, and what flags change in them."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path

import pytest

from gpuwatch import studies
from gpuwatch.cli.commands import study
from gpuwatch.cli.dispatch import dispatch
from gpuwatch.core.errors import StorageError, UsageError
from gpuwatch.session.study.plan import Plan, read
from tests.conftest import Cli
from tests.reading import sessions

from ..parsed_request import plan_asked
from .test_record import STEPS

FILE = f"""
title = "Steps, twice"
question = "Is it the same?"
afterwards = "Look at it."
blocks = 1
cool_down = 0
order_seed = 5

[[part]]
name = "elsewhere"
environments = ["bare", "charliecloud=/nonexistent"]
command = ["{sys.executable}", "{STEPS}", "12", "0.002"]

[[part]]
name = "the same"
environments = ["bare", "bare"]
command = "'{sys.executable}' '{STEPS}' 12 0.004"
"""


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> partial[Plan]:
    """What ``gpuwatch study`` would start."""
    return partial(plan_asked, study, monkeypatch)


def written(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text)
    return path


def test_a_file_of_ones_own_is_run_whole(cli: Cli, tmp_path: Path) -> None:
    done = cli("study", written(tmp_path, FILE), "--out", tmp_path / "out", code=3)
    assert "there is no /nonexistent" in done.stderr
    assert done.stderr.rstrip().endswith("Look at it.")
    folder = next((tmp_path / "out").iterdir())
    found = read(folder)
    assert found is not None
    assert (found.title, found.question, found.preset) == ("Steps, twice", "Is it the same?", None)
    assert found.seed == 5
    assert [(part.name, part.blocks, part.cool_down) for part in found.parts] == [
        ("elsewhere", 1, 0.0),
        ("the same", 1, 0.0),
    ]
    assert [each.label for each in found.parts[1].environments] == ["bare#1", "bare#2"]
    assert found.parts[0].workloads[0].name == "steps.py"
    ran = {path.name for path in sessions(tmp_path / "out")}
    could = {run.file for run in found.runs if run.environment.kind == "bare"}
    assert ran == could and len(ran) == 6
    assert "2 of 2 runs did not run (warm-up, block 1): there is no /nonexistent" in " ".join(
        done.stdout.split()
    )
    assert json.loads((folder / "summary.json").read_text())["schema"]


def test_the_plan_is_printed_and_nothing_run(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    told = cli("study", "multi-environment", "--plan", "--out", out).stdout
    assert "66 runs, 10 blocks after a warm-up block" in " ".join(told.split())
    assert "60 runs, 5 blocks after a warm-up block" in " ".join(told.split())
    assert not out.exists()


def test_the_list_has_every_preset_with_its_runs_and_its_question(cli: Cli) -> None:
    lines = cli("study", "--list").stdout.splitlines()
    rows = {line.split()[0]: line for line in lines[1::2]}
    assert tuple(rows) == studies.presets()
    assert rows["imagenet-15"].split() == ["imagenet-15", "bare,", "docker", "66"]
    assert rows["multi-environment"].endswith("126") and rows["accelerators"].endswith("33")
    assert rows["accelerator"].endswith("30") and rows["precision"].endswith("64")
    assert all(line.startswith("  ") and line.endswith("?") for line in lines[2::2])


@pytest.mark.parametrize("name", studies.presets())
def test_what_show_prints_is_the_study_itself(
    name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, ask: partial[Plan]
) -> None:
    assert dispatch(["study", "--show", name]) == 0
    path = written(tmp_path, capsys.readouterr().out)
    preset, copy = ask(name), ask(path)
    assert preset.parts == copy.parts and preset.title == copy.title
    assert (preset.preset, copy.preset) == (name, None)


def test_environments_of_the_command_line_replace_those_of_the_file(ask: partial[Plan]) -> None:
    envs = ("--env", "docker=a", "--env", "bare")
    first, second = ask("multi-environment", *envs).parts
    assert [each.label for each in first.environments] == ["docker=a", "bare"]
    assert [each.label for each in second.environments] == ["docker=a"]
    (only,) = ask("accelerators", *envs).parts
    assert [each.label for each in only.environments] == ["docker=a", "bare"]


def test_blocks_of_the_command_line_hold_for_every_part(ask: partial[Plan]) -> None:
    assert [part.blocks for part in ask("multi-environment").parts] == [10, 5]
    assert [part.blocks for part in ask("multi-environment", "--blocks", 2).parts] == [2, 2]
    assert [part.blocks for part in ask("multi-environment", "--quick").parts] == [3, 3]
    assert [part.blocks for part in ask("multi-environment", "--rigorous").parts] == [20, 20]


def test_a_part_with_its_own_blocks_keeps_them_beside_a_rigorous_study(
    tmp_path: Path, ask: partial[Plan]
) -> None:
    text = "rigorous = true\n[[part]]\ncommand = 'a'\n[[part]]\ncommand = 'b'\nblocks = 4"
    assert [part.blocks for part in ask(written(tmp_path, text)).parts] == [20, 4]


def test_without_blocks_each_run_of_a_file_takes_place_once(
    tmp_path: Path, ask: partial[Plan]
) -> None:
    plan = ask(written(tmp_path, "[[part]]\ncommand = 'a'"))
    assert plan.parts[0].blocks is None and plan.seed is None
    assert len(plan.runs) == 1


def test_flags_of_the_command_line_come_before_the_file(tmp_path: Path, ask: partial[Plan]) -> None:
    text = (
        "margin = '3%'\ncool_down = '500ms'\norder_seed = 1\nblocks = 5\n[[part]]\ncommand = 'a'\n"
        "[[part]]\nworkloads = ['gcn']\nparameters = { steps = 10, lr = 0.1 }"
    )
    path = written(tmp_path, text)
    own = ask(path)
    assert own.seed == 1
    assert {(part.margin, part.cool_down) for part in own.parts} == {(0.03, 0.5)}
    given = ("--margin", "2%", "--cool-down", 0, "--order-seed", 2, "--steps", 3, "--device", "cpu")
    changed = ask(path, *given)
    assert changed.seed == 2
    assert {(part.margin, part.cool_down) for part in changed.parts} == {(0.02, 0.0)}
    (case,) = changed.parts[1].workloads
    assert case.parameters == {"steps": 3, "lr": 0.1, "device": "cpu"}
    assert changed.parts[0].workloads == own.parts[0].workloads


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[part]]\ncommand = 'a'\nenvironments = ['dokcer']",
         "part 'part 1': unknown environment 'dokcer'"),
        ("margin = '60%'\n[[part]]\ncommand = 'a'", "mine.toml: margin: invalid margin '60%'"),
        ("margin = 0.9\n[[part]]\ncommand = 'a'", "mine.toml: margin: invalid margin '0.9'"),
        ("[[part]]\ncommand = 'a'\nenvironments = ['bare,python=/a/python']",
         "mine.toml, part 'part 1': python= and --python choose"),
        ("cool_down = 'soon'\n[[part]]\ncommand = 'a'",
         "mine.toml: cool-down: invalid time 'soon'"),
        ("blocks = 1000\n[[part]]\ncommand = 'a'\nenvironments = ['bare', 'bare']", "2002 runs"),
    ],
)  # fmt: skip
def test_what_only_the_command_line_can_check_is_named_as_well(
    text: str, said: str, tmp_path: Path, ask: partial[Plan]
) -> None:
    with pytest.raises(UsageError, match=said):
        ask(written(tmp_path, text))


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ([], "name one study"),
        (["--list", "accelerators"], "name one study"),
        (["--show", "xyz"], "no study is named 'xyz'"),
        (["multienvironment"], "did you mean multi-environment"),
        (["accelerators", "--", "true"], "study takes no command"),
        (["accelerators", "--env", "dokcer"], "unknown environment 'dokcer'"),
        (["accelerators", "--env", "docker", "--python", "x"], "--python sets the interpreter"),
        (["multi-environment", "--batch-size", "8"], "part 'batch size' of multi-environment"),
        (["multi-environment", "--device", "cpu", "--dtype", "tf32"], "tensor cores"),
        (["accelerator", "--price", "3"], "afterwards: gpuwatch compare STUDY"),
    ],
)
def test_what_cannot_be_run_is_one_error(argv: list[str], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        dispatch(["study", *argv])
    assert said in str(caught.value)


def test_a_file_that_is_not_there_is_an_error_with_its_name() -> None:
    with pytest.raises(StorageError, match=r"nowhere\.toml does not exist"):
        dispatch(["study", "nowhere.toml"])
