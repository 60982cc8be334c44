"""`gpuwatch rerun`: what was recorded is run again, as a new study."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from gpuwatch.session.study.plan import PLAN, Plan, read
from tests.conftest import Cli
from tests.reading import meta, sessions


def plans(out: Path) -> list[Plan]:
    """In the order of their start."""
    found = [read(path.parent) for path in sorted(out.glob(f"*/{PLAN}"))]
    return [plan for plan in found if plan is not None]


def test_a_study_is_run_again_in_a_new_order_though_its_program_was_changed(
    cli: Cli, tmp_path: Path
) -> None:
    out, program = tmp_path / "out", tmp_path / "work.py"
    program.write_text("print('first')")
    commands = [f"--command={name}={sys.executable} {program} {name}" for name in ("a", "b")]
    cli("--record", "--quiet", *commands, "--blocks", 1, "--cool-down", 0, "--out", out)
    (first,) = out.iterdir()
    program.write_text("print('second')")
    assert f"gpuwatch rerun {first}" in cli("resume", first, code=2).stderr
    again = ("rerun", first, "--plan")
    (hint,) = re.findall("add (--order-seed .*) to run this order", cli(*again).stdout)
    shown = cli(*again, *hint.split()).stdout
    assert shown == cli(*again, *hint.split()).stdout and "--order-seed" not in shown
    cli("rerun", first, "--quiet")
    old, new = plans(out)
    assert new.parts == old.parts and new.seed != old.seed and new.study != old.study
    assert len(sessions(out)) == 8
    for path in sessions(out):
        written = "first" if path.parent == first else "second"
        assert meta(path)["result"]["code"] == 0
        assert cli.read("log", path).stdout.strip() == written


def test_the_last_one_is_run_again_only_if_asked_for_and_a_plan_of_others_only_prints_its_commands(
    cli: Cli, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    cli("--record", "--quiet", "--", "sh", "-c", f"echo x >>{ran}")
    assert "required: STUDY" in cli("rerun", code=2).stderr
    assert "once: sh" in cli("rerun", "last", "--plan").stdout
    cli("rerun", "last", "--quiet")
    assert ran.read_text() == "x\nx\n"
    plan, *_ = (cli.home / ".local/share/gpuwatch/studies").glob(f"*/{PLAN}")
    plan.write_text(plan.read_text().replace("echo x", "echo y"))
    told = cli("rerun", plan.parent, code=2).stderr
    assert "echo y" in told and "--trust" in told
    assert ran.read_text() == "x\nx\n"
