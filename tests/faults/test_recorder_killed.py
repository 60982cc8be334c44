"""A recorder killed at a random moment: nothing of the run is harmed, next to nothing is lost."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from gpuwatch.session.reading.status import State
from tests.conftest import Cli
from tests.waiting import until

from .aftermath import (
    complete,
    in_order,
    kept,
    kill,
    left_behind,
    nothing_left,
    run_folders,
    running,
    sessions,
    started,
    stepping,
    workload,
)
from .table import Row

STEPS, PERIOD, CODE = 80, 0.01, 7
_HALF = re.compile(
    r"file (\.01-bare\.gpuwatch\.new(-journal)?|01-bare\.gpuwatch-journal|\.plan\.json\.PID)"
)
"""What is there for a moment while a file is begun, replaced or closed."""


def test_a_recorder_killed_at_any_moment_loses_no_step_and_no_line(
    cli: Cli,
    tmp_path: Path,
    times: Callable[[int, int], int],
    dice: random.Random,
    note_fault: Callable[[Row], None],
) -> None:
    go = tmp_path / "go"
    script = f'"$@"; until [ -e {go} ]; do sleep 0.05; done; exit {CODE}'
    run = ["--", "sh", "-c", script, "sh", *workload(STEPS, PERIOD)[1:]]
    command = ("--record", "--quiet", "--interval", "0.05", "--out")
    go.touch()
    begun = time.monotonic()
    cli(*command, tmp_path / "whole", *run, code=1)
    whole = time.monotonic() - begun
    tried = times(6, 200)
    moments: Counter[str] = Counter()
    lost, said = 0.0, set()
    for number in range(tried):
        # The first before the end, whatever the machine; the others from the launch to the end.
        out = tmp_path / f"out-{number}"
        if number == 0:
            go.unlink()
        recorder = cli.start(*command, out, *run)
        if number == 0:
            stepping(out)
        else:
            _wait(recorder, dice.uniform(0.0, whole))
        killed = time.monotonic()
        _kill(recorder)
        go.touch()
        if not sessions(out):
            moments["before the launch"] += 1
            continue
        (path,) = sessions(out)
        found = kept(path)
        in_order(found)
        if "result" in found.meta:
            moments["behind the end"] += 1
        elif not started(path):
            moments["before the launch"] += 1
            assert found.status.state is State.LOST and found.steps == []
            continue
        else:
            moments["during the run"] += 1
            assert found.status.state is State.LOST and found.status.exit_code is None
            lost = max(lost, killed - found.newest)
            said.add(found.status.text.replace(found.meta["session"]["id"], "ID"))
            # The workload runs on unharmed; another recorder takes it up and sees its end.
            assert "took over" in cli("attach", "--record", path, code=1).stderr
            found = kept(path)
            assert "resumed" in found.kinds
        assert (found.status.state, found.status.exit_code) == (State.FAILED, CODE)
        complete(found, STEPS)
    assert moments["during the run"]
    assert any("attach --record ID" in text for text in said)
    # What a recorder left that was killed before its run had begun, or once it was over. A folder
    # that does not name its recorder yet may be of one that lives, for its first minute.
    for folder in run_folders(cli):
        os.utime(folder, (0, 0))
    cli("stop", "--all", code=None)
    until(lambda: not running(cli))
    left = {each for n in range(tried) for each in left_behind(cli, tmp_path / f"out-{n}")}
    half = sorted({re.sub(r"(\.plan\.json\.)\d+", r"\1PID", each) for each in left})
    assert [each for each in half if not _HALF.fullmatch(each)] == []
    note_fault(
        Row(
            "recorder",
            f"killed (SIGKILL) at a random moment: {_list(moments)}",
            tried,
            f"samples of {lost:.2f} s at most; no step and no line, once the run is taken up",
            "the workload runs on, to its end; then " + (", ".join(half) or "nothing"),
            "; ".join(sorted(said)),
        )
    )


def test_the_end_is_found_even_when_nobody_recorded_it(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    script = "while [ ! -e go ]; do sleep 0.1; done; exit 9"
    recorder = cli.start("--record", "--quiet", "--out", out, "--", "sh", "-c", script)
    until(lambda: sessions(out) and started(sessions(out)[0]))
    _kill(recorder)
    (cli.home / "go").touch()
    (path,) = sessions(out)
    until(lambda: not running(cli))
    found = json.loads(cli.read("show", path, "--format", "json").stdout)
    assert found["session"]["status"] == "lost" and found["session"]["exit_code"] is None
    cli("attach", "--record", path, code=1)
    found = json.loads(cli.read("show", path, "--format", "json").stdout)
    assert (found["session"]["status"], found["session"]["exit_code"]) == ("failed", 9)


def test_stop_all_ends_what_a_dead_recorder_left(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    recorder = cli.start("--record", "--quiet", "--out", out, "--", "sleep", "300")
    until(lambda: sessions(out) and started(sessions(out)[0]))
    _kill(recorder)
    output = cli("--record", "--duration", "50ms", "--out", out).stderr
    assert "has lost its recorder" in output and "attach --record" in output
    assert "goes on" not in cli("--record", "--quiet", "--duration", "50ms", "--out", out).stderr
    assert "stopped" in cli("stop", "--all").stderr
    (path,) = (each for each in sessions(out) if "sleep" in each.parent.name)
    ended = kept(path).status
    assert (ended.state, ended.exit_code) == (State.STOPPED, 128 + signal.SIGTERM)
    nothing_left(cli, out)


def test_stop_all_leaves_nothing_of_a_run_whose_end_nobody_saw(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    recorder = cli.start("--record", "--quiet", "--out", out, "--", "sleep", "300")
    until(lambda: sessions(out) and started(sessions(out)[0]))
    _kill(recorder)
    while pids := running(cli):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                kill(pid)
    assert "its run had ended" in cli("stop", "--all").stderr
    assert kept(sessions(out)[0]).status.state is State.LOST
    nothing_left(cli, out)


def test_the_rest_of_a_study_whose_recorder_died_is_told(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    recorder = cli.start(
        "--record", "--quiet", "--out", out, "--env", "bare", "--env", "bare",
        "--", "sh", "-c", "while [ ! -e go ]; do sleep 0.1; done",
    )  # fmt: skip
    until(lambda: sessions(out) and started(sessions(out)[0]))
    _kill(recorder)
    (cli.home / "go").touch()
    output = cli("attach", "--record", sessions(out)[0]).stdout
    assert "bare#2 did not run: the recorder of the study died before its turn" in output
    (summary,) = out.glob("*/summary.md")
    assert "2 did not run" in summary.read_text()


def _kill(recorder: subprocess.Popen[str]) -> None:
    recorder.kill()  # nothing, where it has ended by itself
    recorder.communicate()


def _wait(process: subprocess.Popen[str], seconds: float) -> None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(seconds)


def _list(moments: Counter[str]) -> str:
    return ", ".join(f"{count} {when}" for when, count in sorted(moments.items()))
