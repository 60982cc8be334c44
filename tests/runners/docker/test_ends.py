"""How runs in containers end, and how the session tells of it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gpuwatch.session.reading.status import State
from tests.waiting import until

from .conftest import Lab, Launched

pytestmark = pytest.mark.docker


@pytest.mark.parametrize(
    ("command", "state", "code"),
    [
        ("exit 0", State.FINISHED, 0),
        ("exit 7", State.FAILED, 7),
        ("exit 137", State.KILLED, 137),
        ("kill -TERM $$", State.KILLED, 143),
        ("kill -KILL $$", State.KILLED, 137),
        ("kill -SEGV $$", State.KILLED, 139),
    ],
)
def test_exit_codes_and_signals_come_through(
    lab: Lab, command: str, state: State, code: int
) -> None:
    seen = lab.record("sh", "-c", command, code=0 if code == 0 else 1)
    assert (seen.status.state, seen.status.exit_code) == (state, code)
    assert seen.result["launcher_failed"] is False and seen.result["out_of_memory"] is False
    assert seen.result["real_seconds"] > 0
    assert lab.run_folders == []


def test_steps_and_times_of_a_run_are_recorded(lab: Lab) -> None:
    seen = lab.record("python3", "steps.py", 60, 0.01)
    assert seen.steps == list(range(1, 61))
    assert seen.log == [("stdout", f"log line {step}") for step in range(1, 61)]
    assert seen.result["cpu_is_bound"] is True
    assert seen.result["user_seconds"] + seen.result["sys_seconds"] > 0
    environment = seen.meta["environment"]
    assert environment["engine"].startswith("Docker ")
    assert environment["image"] == lab.image and environment["image_id"].startswith("sha256:")
    assert environment["image_layers"] == 1 and environment["image_bytes"] > 1e6
    assert environment["network"] == "none" and environment["gpu_request"] is None
    assert environment["user"] == f"{os.geteuid()}:{os.getegid()}"
    found = os.statvfs("/dev/shm")
    assert environment["shm_bytes"] == found.f_blocks * found.f_frsize
    assert environment["mounts"] == [f"{lab.cli.home}:{lab.cli.home}"]


def test_a_run_that_takes_more_memory_than_it_may_is_told_as_such(lab: Lab) -> None:
    program = "x = bytearray(200 << 20)"
    seen = lab.record("python3", "-c", program, options=",memory=64m", code=1)
    assert seen.status.state is State.KILLED and "out of memory" in seen.status.text
    assert seen.result["out_of_memory"] is True and seen.result["code"] == 137
    assert seen.meta["environment"]["memory_limit_bytes"] == 64 << 20


def test_a_program_that_is_not_in_the_image_was_never_started(lab: Lab) -> None:
    seen = lab.record("no-such-program", code=3)
    assert seen.result["launcher_failed"] is True and seen.result["code"] is None
    assert "no-such-program cannot be executed: No such file" in seen.result["text"]


def test_what_a_workload_detaches_ends_with_it(lab: Lab) -> None:
    mark = f"3{os.getpid()}"
    begun = "until grep -qa ^sleep /proc/$!/cmdline; do sleep 0.05; done"
    lab.record("sh", "-c", f"setsid sleep {mark} & {begun}; exit 0")
    assert not lives(f"sleep {mark}")


def test_a_stop_asks_the_whole_tree(launch: Callable[..., Launched]) -> None:
    # The first process does not pass SIGTERM on; its child is in a session of its own.
    child = "trap 'echo asked; exit 0' TERM; echo ready; while :; do sleep 0.05; done"
    parent = f'trap : TERM; setsid sh -c "{child}" & wait; wait; exit 5'
    launched = launch("sh", "-c", parent)
    until(lambda: b"ready" in launched.so_far("stdout"))
    launched.run.stop()
    result = launched.to_end()
    assert result.code == 5 and b"asked" in launched.data("stdout")


def test_a_workload_that_ignores_sigterm_is_killed_after_the_grace(
    launch: Callable[..., Launched], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpuwatch.runners.docker.stopping.GRACE_SECONDS", 3.0)
    launched = launch("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done")
    until(lambda: launched.so_far("stdout"))
    asked = time.monotonic()
    launched.run.stop()
    assert launched.to_end().code == 137
    assert time.monotonic() - asked >= 3.0
    launched.run.stop()


def test_a_second_stop_kills_at_once(
    launch: Callable[..., Launched], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpuwatch.runners.docker.stopping.GRACE_SECONDS", 3600.0)
    launched = launch("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done")
    until(lambda: launched.so_far("stdout"))
    launched.run.stop()
    launched.run.stop()
    assert launched.to_end().code == 137


def test_an_interrupt_of_the_recorder_stops_the_container(lab: Lab) -> None:
    recorder = lab.cli.start(*lab.arguments("python3", "steps.py", 10_000, 0.01))
    lab.until_step()
    recorder.send_signal(signal.SIGINT)
    assert recorder.wait(60) == 130
    seen = lab.seen()
    assert seen.status.state is State.STOPPED and seen.result["code"] == 143


def test_a_run_counts_from_its_launch_to_its_end(launch: Callable[..., Launched]) -> None:
    before = time.monotonic_ns()
    launched = launch("sleep", "600")
    (pid,) = launched.run.pids()
    # Docker says that it was started a moment before runc has become it.
    until(lambda: b"sleep" in Path(f"/proc/{pid}/cmdline").read_bytes())
    running, spawned = time.monotonic_ns(), launched.run.spawned_ns()
    launched.run.stop()
    result = launched.to_end()
    assert spawned is not None and before < spawned < running < result.t <= time.monotonic_ns()
    assert launched.run.pids() == ()


def lives(command: str) -> bool:
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    return command in listed.stdout.splitlines()
