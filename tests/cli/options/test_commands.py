"""``--command LABEL=COMMAND``: several programs of the user's own in one study, for real."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from gpuwatch.session.study.plan import Plan, read
from tests.conftest import Cli
from tests.reading import meta, sessions
from tests.waiting import until

from ..commands.test_record import STEPS
from ..test_errors import one_line

FAST = f"a={sys.executable} {STEPS} 20 0.005"
SLOW = f"slow={sys.executable} {STEPS} 20 0.02"
TWO = ("--command", FAST, "--command", SLOW)


TOLD = """
import json, pathlib, sys
ran = len(list(pathlib.Path().iterdir()))
pathlib.Path(str(ran)).touch()
for step in range(20):
    line = {"event": "step", "step": step, "seconds": float(sys.argv[1]) * (1 + ran % 3 / 1000)}
    print(":::GPUWATCH", json.dumps(line), flush=True)
"""
"""Its steps take as long as it is told, and a little more in some runs."""


def plan_in(out: Path) -> Plan:
    (path,) = out.glob("*/plan.json")
    plan = read(path.parent)
    assert plan is not None
    return plan


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["X=1 python train.py"], "--env bare,set=X=1, or --command 'a=env X=1 python train.py'"),
        (["Amp=python train.py"], "Amp= before a command is not a label (small letters)"),
        (["python train.py"], "has no label; write --command 'a=python train.py'"),
        (["python train.py --lr=1"], "has no label; write --command 'a=python train.py --lr=1'"),
        (["a=true", "a=false"], "two commands are labelled a; label them differently"),
        (["a="], "--command a is empty; write --command 'a=python train.py'"),
        (["a=' '"], "there is no command ' '"),
        (["a=''"], "--command a is empty"),
        (["a=echo 'x"], "--command a cannot be split: No closing quotation"),
        (
            ["a=true | cat"],
            "for a shell; write --command 'a=bash -o pipefail -c '\"'\"'true | cat'\"'\"''",
        ),
        (["a=X=1 true"], "sets a variable only in a shell; write --command 'a=env X=1 true'"),
    ],
)
def test_a_wrong_command_is_told_with_the_one_that_is_right(
    cli: Cli, tmp_path: Path, arguments: list[str], says: str
) -> None:
    options = [part for text in arguments for part in ("--command", text)]
    for how in ("--record", "run"):
        done = cli(how, *options, "--out", tmp_path / "out", code=None)
        assert says in one_line(done.stderr)
        assert done.returncode == (3 if "there is no" in says else 2)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["gcn"], "both --command and gcn; write it as a command: --command b=gcn"),
        (["--", "sleep", "1"], "both --command and sleep"),
        (["--steps", "5"], "--steps is a flag of gpuwatch's own workloads"),
        (["--env", "bare,python=/p/python"], "not of true; call it in the command"),
    ],
)
def test_nothing_else_is_named_beside_commands(cli: Cli, arguments: list[str], says: str) -> None:
    done = cli("--record", "--command", "a=true", *arguments, code=2)
    assert says in one_line(done.stderr)


def test_commands_are_compared_with_the_first_and_what_differs_is_listed(
    cli: Cli, tmp_path: Path
) -> None:
    out, program, folder = tmp_path / "out", tmp_path / "steps.py", tmp_path / "ran"
    program.write_text(TOLD)
    folder.mkdir()
    blocks = ("--blocks", 5, "--cool-down", 0, "--order-seed", 3)
    fast, slow = (f"{sys.executable} {program} {seconds}" for seconds in (0.005, 0.02))
    both = ("--command", f"a={fast}", "--command", f"slow={slow}")
    done = cli("--record", *both, *blocks, "--out", out, folder=folder)
    assert "a, slow in bare; margin 1 %" in done.stderr and "a in bare" in done.stderr
    plan = plan_in(out)
    (part,) = plan.parts
    assert [case.label for case in part.workloads] == ["a", "slow"] and part.compares_commands
    assert [path.name for path in sessions(out)] == [run.file for run in plan.runs]
    for block in range(6):
        assert {r.workload.label for r in plan.runs if r.block == block} == {"a", "slow"}
    first = meta(sessions(out)[0])
    assert first["session"]["label"] == "a (bare)" and first["workload"]["label"] == "a"
    said = " ".join(done.stdout.split())
    assert "SLOWER slow is slower than a: typical step +" in said
    assert "differs by design: command: " in said and " 0.005 against " in said
    (study,) = out.iterdir()
    found = json.loads((study / "summary.json").read_text())
    (question,) = found["questions"]
    assert question["label"] == "commands in bare"
    assert question["contrasts"][0]["verdict"]["kind"] == "slower"
    assert question["contrasts"][0]["by_design"][0].startswith("command: ")
    for page in ("summary.md", "summary.html"):
        assert "differs by design: command: " in (study / page).read_text()
    assert {
        row.rpartition(",")[2] for row in (study / "summary.csv").read_text().splitlines()[1:]
    } == {"a", "slow"}
    listed = cli.read("sessions", out).stdout
    assert "a, slow" in listed
    listed = cli.read("sessions", out, "--runs").stdout
    assert "a: steps.py" in listed and "slow: steps.py" in listed


def test_a_study_of_commands_that_was_interrupted_is_completed(cli: Cli, tmp_path: Path) -> None:
    environments = ("--env", "bare", "--env", "bare,label=own,set=GREETING=hello")
    recorder = cli.start("--record", *TWO, *environments, "--out", tmp_path / "out")
    until(lambda: len(sessions(tmp_path / "out")) == 2)
    recorder.send_signal(signal.SIGINT)
    assert recorder.wait(60) == 130
    plan = plan_in(tmp_path / "out")
    (folder,) = (tmp_path / "out").iterdir()
    done = cli("resume", folder)
    assert "of 4 runs done" in done.stderr and "a, slow in bare, own" in done.stderr
    assert [path.name for path in sessions(tmp_path / "out")] == [run.file for run in plan.runs]
    for path, planned in zip(sessions(tmp_path / "out"), plan.runs, strict=True):
        known = meta(path)
        assert known["workload"]["label"] == planned.workload.label
        assert known["environment"].get("variables", {}) == planned.environment.variables
    assert "is complete" in cli("resume", folder, code=2).stderr


@pytest.mark.torch
def test_a_dry_run_says_once_which_interpreter_all_runs_have(cli: Cli, tmp_path: Path) -> None:
    """Python's own finds no torch in an empty folder of packages; gpuwatch's has it."""
    python = tmp_path / "bin" / "python3"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S -I "$@"\n')
    python.chmod(0o755)
    cli.variables["PATH"] = f"{python.parent}:{os.environ['PATH']}"
    told = cli("study", "accelerators", "--dry-run", "--env", "bare").stderr
    assert told.count("the workload runs with") == 1


def test_a_dry_run_shows_each_command_with_its_variables(cli: Cli) -> None:
    environments = ("--env", "bare", "--env", "bare,label=own,set=GREETING=hello")
    shown = cli("--record", *TWO, *environments, "--dry-run", "--format", "json").stdout
    found = json.loads(shown)
    assert [case["label"] for case in found["parts"][0]["cases"]] == ["a", "slow"]
    assert [each["label"] for each in found["launches"]] == [
        "a in bare", "a in own", "slow in bare", "slow in own",
    ]  # fmt: skip
    assert [each["command"][-1] for each in found["launches"]] == ["0.005", "0.005", "0.02", "0.02"]
    assert found["launches"][1]["variables"]["GREETING"] == "hello"
    assert found["parts"][0]["environments"][1]["variables"] == {"GREETING": "hello"}
    text = cli("run", *TWO, "--plan").stdout
    assert "2 runs, each once: a, slow in bare" in " ".join(text.split())


def test_a_plan_of_others_is_shown_with_the_variables_it_would_set(
    cli: Cli, tmp_path: Path
) -> None:
    recorder = cli.start(
        "--record", *TWO, "--env", "bare,set=LD_PRELOAD=/x.so", "--out", tmp_path / "out"
    )
    until(lambda: sessions(tmp_path / "out"))
    recorder.send_signal(signal.SIGINT)
    recorder.wait(60)
    (path,) = (tmp_path / "out").glob("*/plan.json")
    path.write_text(path.read_text().replace("/x.so", "/y.so"))
    done = cli("resume", path.parent, code=2)
    assert "set LD_PRELOAD=/y.so" in done.stderr and "was not started by you" in done.stderr


def test_a_study_file_has_commands_too(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        "[[part]]\nname = 'speed'\n[part.commands]\n"
        f"a = {json.dumps(FAST[2:])}\nslow = {json.dumps(SLOW[5:])}\n"
    )
    text = " ".join(cli("study", file, "--plan").stdout.split())
    assert "2 runs, each once: a, slow in bare" in text
