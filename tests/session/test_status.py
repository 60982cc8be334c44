"""What became of a run, from what its file says and what still lives."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.core.processes import ProcessId, boot_id, identify
from gpuwatch.session.reading.status import SUMMARY_OF, State, status
from tests.waiting import until

PATH = Path("x.gpuwatch")


NONE = {"output_until": None}


def me() -> dict[str, Any]:
    process = identify(os.getpid())
    assert process is not None
    return asdict(process)


def dead() -> dict[str, Any]:
    return asdict(ProcessId(socket.gethostname(), boot_id(), 2**22 - 1, 1))


@pytest.mark.parametrize(
    ("result", "state", "code"),
    [
        ({"code": 0}, State.FINISHED, 0),
        ({"code": 7}, State.FAILED, 7),
        ({"signal": 9, "code": None}, State.KILLED, 137),
        ({"code": 143}, State.KILLED, 143),
        ({"code": 0, "stopped": "SIGINT"}, State.STOPPED, 0),
        ({"code": None, "signal": None, "text": "gone"}, State.LOST, None),
    ],
)
def test_the_end_of_a_workload(result: dict[str, Any], state: State, code: int | None) -> None:
    found = status({"result": result, "recorder": me()}, PATH)
    assert (found.state, found.exit_code) == (state, code)


@pytest.mark.parametrize(
    ("why", "text"),
    [
        ("stop", "stopped on request"),
        ("SIGTERM", "stopped by SIGTERM"),
        ("--duration 20s", "stopped: --duration 20s"),
    ],
)
def test_a_stop_says_by_whom(why: str, text: str) -> None:
    assert status({"result": {"code": None, "signal": 15, "stopped": why}}, PATH).text == text


@pytest.mark.parametrize("how", [{"code": 0}, {"code": 143, "stopped": "SIGTERM"}, {"code": 7}])
def test_a_run_whose_output_is_partly_missing_says_so(how: dict[str, Any]) -> None:
    text = "its output is known only up to 6.5 s: why"
    result = {**how, "signal": None, "text": text, "output_until": 6_500_000_000}
    assert text in status({"result": result}, PATH).text
    assert how["code"] == 7 or text not in status({"result": {**result, **NONE}}, PATH).text


def test_a_living_recorder_is_running() -> None:
    assert status({"recorder": me()}, PATH).state is State.RUNNING


def test_in_the_summary_that_a_recorder_has_written_a_run_without_an_end_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(SUMMARY_OF, str(os.getpid()))
    assert status({"recorder": me()}, PATH).state is State.LOST


def test_a_living_recorder_that_writes_nothing_on_a_full_disk_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.gpuwatch"
    path.touch()

    def warning(free: int, **meta: Any) -> str:
        disk = os.statvfs_result((4096, 4096, 9000, free, free, 0, 0, 0, 0, 255))
        monkeypatch.setattr(os, "statvfs", lambda _folder: disk)
        found = status({"recorder": me(), **meta}, path)
        assert found.state is State.RUNNING and found.live and found.warning in found.text
        return found.warning

    assert warning(4) == "", "it was written just now"
    os.utime(path, (time.time() - 60, time.time() - 60))
    full = f"nothing can be recorded: the disk of {tmp_path} is full; free some space"
    assert warning(4) == full
    assert warning(8000) == "" and warning(4, interval_seconds=30) == ""


def test_a_dead_recorder_with_a_living_workload_says_how_to_take_it_up() -> None:
    found = status({"recorder": dead(), "handle": {"holder": me()}}, PATH)
    assert found.state is State.LOST
    assert "attach --record" in found.text


def test_a_dead_recorder_and_workload_are_lost() -> None:
    assert status({"recorder": dead(), "handle": {"holder": dead()}}, PATH).state is State.LOST


def test_the_number_of_a_dead_process_given_to_another_is_not_mistaken() -> None:
    assert status({"recorder": {**me(), "start_time": 1}}, PATH).state is State.LOST


def test_a_zombie_is_dead() -> None:
    process = subprocess.Popen(["true"])
    until(lambda: identify(process.pid) is None)
    process.wait()


def test_on_another_host_a_silent_session_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "x.gpuwatch"
    path.touch()
    elsewhere = {"recorder": {**me(), "host": "another-host", "boot_id": "its-own"}}
    assert status(elsewhere, path).state is State.RUNNING
    os.utime(path, (time.time() - 60, time.time() - 60))
    assert status(elsewhere, path).state is State.LOST


@pytest.mark.parametrize("meta", [{}, {"recorder": 3}, {"recorder": {"pid": "x"}}, {"handle": []}])
def test_a_file_that_says_nonsense_is_lost_not_a_crash(meta: dict[str, Any]) -> None:
    assert status(meta, PATH).state is State.LOST
