"""A recorder killed at a random moment: nothing of the run is harmed, next to nothing is lost."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import pytest

from gpuwatch.session.reader import SessionReader
from gpuwatch.session.status import State, status
from tests.conftest import Cli

from .test_record import STEPS, sessions, until

PERIOD = 0.01
TOTAL = 400


@pytest.mark.parametrize("seed", range(6))
def test_a_killed_recorder_loses_at_most_one_second(cli: Cli, tmp_path: Path, seed: int) -> None:
    out = tmp_path / "out"
    recorder = cli.start(
        "--record", "--quiet", "--interval", "0.05", "--out", out, "--",
        sys.executable, STEPS, TOTAL, PERIOD, 7,
    )  # fmt: skip
    until(lambda: sessions(out) and _steps(sessions(out)[0]) > 0)
    time.sleep(random.Random(seed).uniform(0, 1.5))
    os.kill(recorder.pid, signal.SIGKILL)
    recorder.wait()
    killed_at = time.monotonic_ns()
    (path,) = sessions(out)

    with SessionReader(path) as reader:
        meta = reader.meta()
        steps = reader.steps(limit=10**6)
        ticks = list(reader.all_ticks([]))
        found = status(meta, path)
    base = meta["clock"]["monotonic_ns"]
    assert found.state is State.LOST and "attach --record" in found.text
    assert (killed_at - base - steps[-1].t) / 1e9 < 1.0
    assert (killed_at - base - ticks[-1][1]) / 1e9 < 1.0

    # The workload runs on unharmed; another recorder takes it up and sees its end.
    done = cli("attach", "--record", path, code=1)
    assert "took up" in done.stderr
    with SessionReader(path) as reader:
        steps = reader.steps(limit=10**6)
        ended = status(reader.meta(), path)
        log = [row.text for row in reader.log(limit=10**6)]
        kinds = [row.kind for row in reader.events()]
        buckets = reader.tier([0], 0)
    assert (ended.state, ended.exit_code) == (State.FAILED, 7)
    assert [row.step for row in steps] == list(range(1, TOTAL + 1))
    assert log == [f"log line {step}" for step in range(1, TOTAL + 1)]
    assert "resumed" in kinds
    assert max(row.seconds[0] for row in steps if row.seconds) < 0.5
    assert buckets, "the tier was rebuilt"
    assert not list((cli.home / ".local/state/gpuwatch/runs").iterdir())


def test_the_end_is_found_even_when_nobody_recorded_it(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    recorder = cli.start("--record", "--quiet", "--out", out, "--", "sh", "-c", "sleep 1; exit 9")
    until(lambda: sessions(out) and _handle(sessions(out)[0]))
    os.kill(recorder.pid, signal.SIGKILL)
    recorder.wait()
    time.sleep(1.5)
    (path,) = sessions(out)
    found = json.loads(cli("show", path, "--format", "json").stdout)
    assert found["session"]["status"] == "lost" and found["session"]["exit_code"] is None
    cli("attach", "--record", path, code=1)
    found = json.loads(cli("show", path, "--format", "json").stdout)
    assert (found["session"]["status"], found["session"]["exit_code"]) == ("failed", 9)


def test_stop_all_ends_what_a_dead_recorder_left(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    recorder = cli.start("--record", "--quiet", "--out", out, "--", "sleep", "300")
    until(lambda: sessions(out) and _handle(sessions(out)[0]))
    os.kill(recorder.pid, signal.SIGKILL)
    recorder.wait()
    told = cli("--record", "--duration", "50ms", "--out", out).stderr
    assert "goes on without its recorder" in told and "attach --record" in told
    assert "goes on" not in cli("--record", "--quiet", "--duration", "50ms", "--out", out).stderr
    assert "stopped" in cli("stop", "--all").stderr
    (path,) = (each for each in sessions(out) if "sleep" in each.parent.name)
    with SessionReader(path) as reader:
        holder = reader.meta()["handle"]["holder"]["pid"]
    until(lambda: not Path(f"/proc/{holder}").exists())
    with SessionReader(path) as reader:
        ended = status(reader.meta(), path)
    assert (ended.state, ended.exit_code) == (State.STOPPED, 128 + signal.SIGTERM)
    assert not list((cli.home / ".local/state/gpuwatch/runs").iterdir())


def test_the_rest_of_a_study_whose_recorder_died_is_told(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    recorder = cli.start(
        "--record", "--quiet", "--out", out, "--env", "bare", "--env", "bare",
        "--", sys.executable, STEPS, 100, PERIOD,
    )  # fmt: skip
    until(lambda: sessions(out) and _handle(sessions(out)[0]))
    os.kill(recorder.pid, signal.SIGKILL)
    recorder.wait()
    told = cli("attach", "--record", sessions(out)[0]).stdout
    assert "bare#2 did not run: the recorder of the study died before its turn" in told
    (summary,) = out.glob("*/summary.md")
    assert "2 did not run" in summary.read_text()


def _steps(path: Path) -> int:
    with SessionReader(path) as reader:
        return len(reader.steps())


def _handle(path: Path) -> object:
    with SessionReader(path) as reader:
        return (reader.meta().get("handle") or {}).get("holder")
