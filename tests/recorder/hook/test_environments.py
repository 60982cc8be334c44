"""The hook and its channel in every environment: real runs, real engines."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.session.reading.reader import SessionReader
from tests.conftest import Cli
from tests.reading import meta, steps
from tests.waiting import until

REPORTER = Path(__file__).with_name("reporter.py")
INSIDE = {"docker": "/gpuwatch", "apptainer": "/gpuwatch", "charliecloud": "/tmp/gpuwatch"}
OF_A_BUSY_MACHINE = ("interval-missed", "sampling-late")


def ran(cli: Cli, out: Path, *options: object, ranks: int = 0, code: int = 0) -> dict[str, Any]:
    """A recorded run of the reporter: its session's meta, what it found, steps and ranks."""
    where = out.parent / "where"
    where.mkdir(parents=True, exist_ok=True)
    shutil.copy(REPORTER, where / "train.py")
    command = ("--", "python3", "train.py", *([ranks] if ranks else []))
    cli("--record", "--quiet", "--out", out, *options, *command, folder=where, code=code)
    (path,) = out.glob("*/*.gpuwatch")
    with SessionReader(path) as reader:
        return {
            "path": path,
            "meta": reader.meta(),
            "found": json.loads(reader.log()[0].text) if reader.log() else None,
            "steps": reader.steps(),
            "ranks": [row.rank for row in reader.ranks()],
            "events": [row.text for row in reader.events() if row.kind not in OF_A_BUSY_MACHINE],
        }


def test_a_bare_program_finds_the_hook_before_its_own_path(cli: Cli, tmp_path: Path) -> None:
    cli.variables["PYTHONPATH"] = "/callers/own"
    run = ran(cli, tmp_path / "out", "--hook", "loss")
    path = run["found"]["path"]
    assert path[1].endswith("/hook.pyz") and path[2] == "/callers/own"
    assert run["found"]["variables"]["GPUWATCH_HOOK_OPTIONS"] == "loss"
    hook = run["meta"]["hook"]
    assert (hook["given"], hook["options"], hook["processes"]) == (True, ["loss"], 1)
    assert len(hook["sha256"]) == 64 and hook["text"] is None
    assert [row.step for row in run["steps"]] == [1, 2, 3, 4, 5, 6]
    assert run["meta"]["count"]["flop_per_step"] == 1000
    assert run["meta"]["step_ends"] == "told" and run["events"] == []
    shown = cli.read("show", run["path"]).stdout
    assert "throughput" in shown and "model FLOP" in shown


def test_without_the_hook_nothing_of_it_is_there(cli: Cli, tmp_path: Path) -> None:
    run = ran(cli, tmp_path / "out", "--hook", "off")
    assert not any("gpuwatch" in each for each in run["found"]["path"])
    assert set(run["found"]["variables"].values()) == {None}
    hook = run["meta"]["hook"]
    assert (hook["given"], hook["processes"], run["steps"]) == (False, 0, [])


def test_an_option_that_is_not_there_is_refused(cli: Cli, tmp_path: Path) -> None:
    done = cli("--record", "--hook", "flops", "--", "true", code=2)
    assert "no 'flops': write on, off or loss" in done.stderr


def test_steps_of_several_ranks_are_those_of_one_run(cli: Cli, tmp_path: Path) -> None:
    run = ran(cli, tmp_path / "out", ranks=3)
    assert sum(row.count for row in run["steps"]) == 6 and run["ranks"] == [0, 1, 2]
    assert {row.samples / row.count for row in run["steps"]} == {12}
    assert run["meta"]["count"]["flop_per_step"] == 3000 and run["events"] == []


def test_why_there_are_no_steps_is_shown(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    cli("--record", "--quiet", "--out", out, "--", "true")
    (path,) = out.glob("*/*.gpuwatch")
    assert "no Python program of the run imported torch" in " ".join(
        cli.read("show", path).stdout.split()
    )


def test_runs_of_which_only_one_was_hooked_are_not_compared(cli: Cli, tmp_path: Path) -> None:
    one = ran(cli, tmp_path / "one" / "out")
    two = ran(cli, tmp_path / "two" / "out", "--hook", "off")
    said = " ".join(cli.read("compare", one["path"], two["path"]).stdout.split())
    assert "different measurement: by the hook against without the hook" in said


def test_a_recorder_that_takes_over_goes_on_with_the_steps(cli: Cli, tmp_path: Path) -> None:
    out, where = tmp_path / "out", tmp_path / "where"
    where.mkdir()
    program = REPORTER.read_text().replace("steps(0 if ranks else None, ranks)", "steps(0, 1, 400)")
    (where / "train.py").write_text(program)
    recorder = subprocess.Popen(
        cli.argv("--record", "--quiet", "--out", out, "--", "python3", "train.py"),
        cwd=where,
        env=cli.env,
    )

    def reached() -> int:
        for path in out.glob("*/*.gpuwatch"):
            return max((row.step for row in steps(path)), default=0)
        return 0

    until(reached)
    recorder.send_signal(signal.SIGKILL)
    recorder.wait()
    (path,) = out.glob("*/*.gpuwatch")
    cli("attach", "--record", path)
    assert [row.step for row in steps(path)] == list(range(1, 401))
    assert meta(path)["hook"]["processes"] == 1


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=getattr(pytest.mark, kind))
        for kind in ("docker", "apptainer", "charliecloud")
    ],
)
@pytest.mark.parametrize("ranks", [0, 2])
def test_a_program_in_a_container_finds_and_uses_the_hook(
    cli: Cli, tmp_path: Path, request: pytest.FixtureRequest, kind: str, ranks: int
) -> None:
    fixture = "small_image" if kind == "docker" else "small_root"
    image = request.getfixturevalue(fixture)
    run = ran(
        cli,
        tmp_path / "out",
        *("--env", f"{kind}={image},set=PYTHONPATH=/images/own", "--hook", "loss"),
        ranks=ranks,
    )
    folder = INSIDE[kind]
    assert run["found"]["path"][1:3] == [f"{folder}/hook.pyz", "/images/own"]
    variables = run["found"]["variables"]
    assert variables["GPUWATCH_HOOK"] == f"{folder}/hook"
    assert variables["GPUWATCH_HOOK_OPTIONS"] == "loss"
    assert sum(row.count for row in run["steps"]) == 6
    assert run["ranks"] == list(range(ranks)) and run["events"] == []
    assert run["meta"]["hook"]["processes"] == max(1, ranks)


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=getattr(pytest.mark, kind))
        for kind in ("apptainer", "charliecloud")
    ],
)
def test_a_command_that_is_not_there_is_still_the_launchers_failure(
    cli: Cli, tmp_path: Path, small_root: Path, kind: str
) -> None:
    out = tmp_path / "out"
    where = tmp_path / "where"
    where.mkdir()
    words = ("--record", "--quiet", "--out", out, "--env", f"{kind}={small_root}")
    cli(*words, "--", "no-such-program", folder=where, code=None)
    (path,) = out.glob("*/*.gpuwatch")
    result = meta(path)["result"]
    assert result["launcher_failed"] and "no-such-program" in result["text"]


def test_a_dry_run_shows_the_hook_and_a_resumed_study_has_it(cli: Cli, tmp_path: Path) -> None:
    out, where = tmp_path / "out", tmp_path / "where"
    where.mkdir()
    shutil.copy(REPORTER, where / "train.py")
    words = ("--out", out, "--hook", "loss", "--", "python3", "train.py")
    shown = cli("--record", "--dry-run", *words, folder=where).stdout
    assert "runs/RUN/hook.pyz" in shown and "sets GPUWATCH_HOOK_OPTIONS: loss" in shown
    without = cli("--record", "--dry-run", "--hook", "off", "--", "true").stdout
    assert "hook.pyz" not in without and "GPUWATCH_HOOK" not in without
    cli("--record", "--quiet", *words, folder=where)
    (path,) = out.glob("*/*.gpuwatch")
    path.unlink()
    cli("resume", path.parent)
    assert meta(path)["hook"]["options"] == ["loss"]
    assert max(row.step for row in steps(path)) == 6
