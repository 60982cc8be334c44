"""`gpuwatch resume`: a study that broke off is completed, and nothing of it is lost."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gpuwatch.cli.dispatch import dispatch
from gpuwatch.core.errors import StorageError, UsageError
from gpuwatch.core.models import Environment, Workload
from gpuwatch.recorder.request import plan_of
from gpuwatch.session.reading.status import process_id
from gpuwatch.session.study import study_folder
from gpuwatch.session.study.plan import PLAN, Part, Plan, Settings, read
from tests.conftest import Cli
from tests.reading import meta, sessions, step_numbers
from tests.runners.packages import installed
from tests.waiting import until

AA = ("--env", "bare", "--env", "bare")
BLOCK = ("--blocks", 1, "--order-seed", 3)


def only(out: Path) -> Path:
    (path,) = out.glob(f"*/{PLAN}")
    return path.parent


def planned(folder: Path) -> Plan:
    plan = read(folder)
    assert plan is not None
    return plan


WORK = """
import json, os, sys, time
begun, go, held = sys.argv[1], sys.argv[2], int(sys.argv[3])
with open(begun, "a") as file:
    file.write("x")
number = os.path.getsize(begun)
for step in range(1, 61):
    line = {"event": "step", "step": step, "samples": 64, "seconds": 0.01}
    print(":::GPUWATCH", json.dumps(line), flush=True)
    time.sleep(0.01)
    while step == 10 and number == held and not os.path.exists(go):
        time.sleep(0.01)
"""
"""Makes 60 steps; the run of one number makes the last 50 only once there is a file."""


def kill_in_run(cli: Cli, out: Path, number: int, *flags: object) -> None:
    """Start a study and kill its recorder with SIGKILL in the middle of a run of it."""
    recorder = cli.start("--record", "--quiet", *flags, "--out", out, *work(out, number))
    until(lambda: len(sessions(out)) == number and step_numbers(sessions(out)[-1]))
    os.kill(recorder.pid, signal.SIGKILL)
    recorder.wait()
    (out.parent / "go").touch()


def work(out: Path, held: int = 0) -> tuple[object, ...]:
    program = out.parent / "work.py"
    program.write_text(WORK)
    return ("--", sys.executable, program, out.parent / "begun", out.parent / "go", held)


def workload_over(path: Path) -> None:
    holder = meta(path)["handle"]["holder"]["pid"]
    until(lambda: not Path(f"/proc/{holder}").exists())


def holder(path: Path) -> object:
    """The process that holds the workload of a session; ``None`` before there is one."""
    return (meta(path).get("handle") or {}).get("holder")


def complete(folder: Path) -> None:
    """Every run of the plan has its session, in its order, and the summary has all of them."""
    plan = planned(folder)
    assert [path.name for path in study_folder.sessions_in(folder)] == [
        run.file for run in plan.runs
    ]
    assert plan.problems == {}
    for run in plan.runs:
        known = meta(folder / run.file)
        assert known["session"]["index"] == run.index
        assert known["environment"]["label"] == run.environment.label
        assert known["result"]["code"] == 0 and step_numbers(folder / run.file) == list(
            range(1, 61)
        )
    found = json.loads((folder / "summary.json").read_text())
    assert found["not_run"] == []


def test_a_study_killed_in_a_block_is_completed_and_nothing_of_it_is_lost(
    cli: Cli, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    kill_in_run(cli, out, 3, *BLOCK, "--cool-down", 0, *AA)
    folder = only(out)
    before = planned(folder)
    broken = folder / before.runs[2].file
    workload_over(broken)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    done = cli("resume", folder, folder=elsewhere)
    assert "2 of 4 runs done" in done.stderr and f"took over {broken}" in done.stderr
    assert "run 4 of 4 (block 1 of 1)" in done.stderr and "run 3 of 4" not in done.stderr
    complete(folder)
    assert planned(folder) == before, "the plan, and with it the order, is as it was"
    assert not list((cli.home / ".local/state/gpuwatch/runs").iterdir())
    told = cli("resume", folder, code=2).stderr
    assert f"{folder} is complete" in told


def test_a_run_of_which_nothing_else_is_left_is_kept_aside_and_done_again(
    cli: Cli, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    kill_in_run(cli, out, 1, *AA)
    folder = only(out)
    broken = sessions(out)[0]
    workload_over(broken)
    shutil.rmtree(meta(broken)["handle"]["folder"])  # as a restart of the machine does
    known = step_numbers(broken)
    done = cli("resume", broken)
    kept = folder / f"{broken.name}.lost-1"
    assert f"{broken.name} was cut short; it is kept as {kept.name}" in done.stderr
    assert step_numbers(kept) == known and meta(kept)["session"]["index"] == 1
    complete(folder)


def test_a_workload_that_still_runs_is_not_started_a_second_time(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    recorder = cli.start("--record", "--quiet", *AA, "--out", out, "--", "sleep", "300")
    until(lambda: sessions(out) and holder(sessions(out)[0]))
    (path,) = sessions(out)
    folder = only(out)
    told = cli("resume", folder, code=2).stderr
    assert "is being recorded now" in told
    os.kill(recorder.pid, signal.SIGKILL)
    recorder.wait()
    told = cli("resume", folder, code=2).stderr
    assert f"has lost its recorder; `gpuwatch attach --record {path}` takes" in told
    assert f"`gpuwatch stop {path}` ends it" in told
    cli("stop", path)
    (problem,) = planned(folder).problems[2]
    assert problem.hint == f"gpuwatch resume {folder.name}"
    assert meta(path)["result"]["stopped"] == "stop"


def test_a_stop_of_a_run_that_was_taken_over_starts_no_other(cli: Cli, tmp_path: Path) -> None:
    out, ran = tmp_path / "out", tmp_path / "ran"
    words = ("--", "sh", "-c", f"echo x >>{ran}; exec sleep 300")
    recorder = cli.start("--record", "--quiet", *AA, "--out", out, *words)
    until(lambda: sessions(out) and holder(sessions(out)[0]) and ran.exists())
    os.kill(recorder.pid, signal.SIGKILL)
    recorder.wait()
    (path,) = sessions(out)
    handle = {**meta(path)["handle"], "holder": None}  # as of one that died before it was noted
    with contextlib.closing(sqlite3.connect(path)) as session, session:
        session.execute("UPDATE meta SET value = ? WHERE key = 'handle'", [json.dumps(handle)])
    resumed = cli.start("resume", "--quiet", path)
    until(lambda: process_id(meta(path)["recorder"]).pid == resumed.pid)
    cli("stop", path)
    resumed.communicate()
    assert ran.read_text() == "x\n"
    assert (sessions(out), meta(path)["result"]["stopped"]) == ([path], "stop")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_was_stopped_is_done_again_and_its_session_kept(
    cli: Cli, tmp_path: Path, number: signal.Signals
) -> None:
    out, short = tmp_path / "out", tmp_path / "short"
    script = f"test -e {short} && exit 0; exec sleep 300"
    recorder = cli.start("--record", "--quiet", *AA, "--out", out, "--", "sh", "-c", script)
    until(lambda: sessions(out) and holder(sessions(out)[0]))
    os.kill(recorder.pid, number)
    recorder.wait(60)
    (stopped,) = sessions(out)
    assert meta(stopped)["result"]["stopped"] == number.name
    folder = only(out)
    short.touch()
    done = cli("resume", folder)
    kept = folder / f"{stopped.name}.lost-1"
    assert f"{stopped.name} was stopped; it is kept as {kept.name}" in done.stderr
    assert "0 of 2 runs done" in done.stderr
    assert meta(kept)["result"]["stopped"] == number.name
    assert [meta(path)["result"]["code"] for path in sessions(out)] == [0, 0]
    assert planned(folder).problems == {}
    assert "is complete" in cli("resume", folder, code=2).stderr


def test_a_run_that_its_time_limit_ended_is_complete(cli: Cli, tmp_path: Path) -> None:
    flags = ("--quiet", "--duration", "400ms", "--out", tmp_path)
    cli("--record", *flags, "--", "sleep", "300")
    assert "is complete" in cli("resume", only(tmp_path), code=2).stderr
    assert meta(sessions(tmp_path)[0])["result"]["stopped"] == "--duration 0.4s"


def test_a_study_killed_between_two_runs_goes_on_in_the_background(
    cli: Cli, tmp_path: Path
) -> None:
    recorder = cli.start("--record", "--quiet", *AA, "--cool-down", "10m", *work(tmp_path / "out"))
    data = cli.home / ".local/share/gpuwatch/studies"
    until(lambda: list(data.glob("*/summary.json")))
    os.kill(recorder.pid, signal.SIGKILL)
    recorder.wait()
    folder = only(data)
    said = cli("resume", folder.name, "--plan").stdout
    assert "once: bare#1 (done), bare#2\n" in said and "1 of 2 runs done" in said
    assert len(sessions(data)) == 1
    path = Path(cli("resume", folder.name, "--detach", "--quiet").stdout.strip())
    assert path == folder / planned(folder).runs[1].file
    workload_over(path)
    until(lambda: "result" in meta(path))
    until(lambda: len(json.loads((folder / "summary.json").read_text())["sessions"]) == 2)
    complete(folder)


def test_an_environment_that_could_not_run_is_tried_again(cli: Cli, tmp_path: Path) -> None:
    fixed, out = tmp_path / "fixed", tmp_path / "out"
    site = installed(tmp_path / "site", "late", "gw_late:Runner", LATE.format(flag=str(fixed)))
    cli.variables["PYTHONPATH"] = str(site)
    flags = ("--env", "bare", "--env", "late", "--out", out)
    cli("--record", "--quiet", *flags, *work(out), code=3)
    folder = only(out)
    assert [problem.code for problem in planned(folder).problems[2]] == ["not-yet"]
    assert "late: it is not ready" in cli("resume", folder, code=3).stderr
    fixed.write_text("")
    cli("resume", folder, "--quiet")
    complete(folder)


LATE = """
from pathlib import Path

from gpuwatch.core.models import Problem
from gpuwatch.runners.bare import BareRunner


class Runner(BareRunner):
    kind = "late"

    def preflight(self, spec):
        ready = Path({flag!r}).exists()
        return [] if ready else [Problem("not-yet", "it is not ready", "wait")]
"""


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    """A study of which nothing took place yet."""
    work = (Workload("true", "command", ("true",)),)
    part = Part("p", work, (Environment("bare", "a"), Environment("bare", "b")))
    return study_folder.create(tmp_path / "out", plan_of([part]))


def test_what_a_study_has_to_say_afterwards_is_said_when_it_was_gone_on_with(
    cli: Cli, tmp_path: Path
) -> None:
    part = Part("p", (Workload("true", "command", ("true",)),), (Environment("bare", "bare"),))
    settings = Settings(afterwards="Copy it\x1b[31m.\n")
    folder = study_folder.create(tmp_path / "out", plan_of([part], settings))
    assert cli("resume", "--trust", folder, "--plan").stderr == ""
    last = cli("resume", "--trust", folder).stderr.splitlines()[-1]
    assert last.startswith("gpuwatch: Copy it") and "\x1b" not in last


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"host": "elsewhere"}, "was recorded on elsewhere; this is"),
        ({"working_directory": "/nowhere/at/all"}, "is gone: /nowhere/at/all; create it again"),
    ],
)
def test_a_study_that_cannot_go_on_here_is_refused(
    begun: Path, change: dict[str, str], why: str
) -> None:
    plan = planned(begun)
    study_folder.write(begun, replace(plan, settings=replace(plan.settings, **change)))
    with pytest.raises(UsageError) as error:
        dispatch(["resume", "--trust", str(begun)])
    assert why in str(error.value)
    assert not study_folder.sessions_in(begun)


def test_a_plan_that_cannot_be_read_is_refused(begun: Path, tmp_path: Path) -> None:
    (begun / PLAN).write_text("{}")
    for folder, why in ((begun, "is not as gpuwatch wrote it"), (tmp_path, "is missing")):
        with pytest.raises(UsageError, match=f"no plan that can be read: plan.json {why}"):
            dispatch(["resume", str(folder)])
    with pytest.raises(StorageError, match="no such file"):
        dispatch(["resume", str(tmp_path / "nothing")])


def test_a_recording_of_the_machine_is_not_gone_on_with(tmp_path: Path) -> None:
    part = Part("p", (Workload("machine", "machine"),), (Environment("bare", "bare"),))
    folder = study_folder.create(tmp_path, plan_of([part]))
    with pytest.raises(UsageError, match="is not a study of a workload"):
        dispatch(["resume", str(folder)])


def test_two_recorders_do_not_go_on_with_one_study(begun: Path) -> None:
    with study_folder.held(begun), pytest.raises(UsageError, match="another recorder"):
        dispatch(["resume", str(begun), "--quiet"])
    assert not study_folder.sessions_in(begun)
