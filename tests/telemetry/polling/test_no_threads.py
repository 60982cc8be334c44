"""What goes on without a thread that the system refuses, and with it once there is one."""

from __future__ import annotations

import math
import os
import pwd
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from gpuwatch.core.errors import NO_THREAD
from gpuwatch.telemetry.polling import poller
from gpuwatch.telemetry.polling.poller import Poller
from gpuwatch.telemetry.polling.worker import Worker
from gpuwatch.telemetry.process.users import Users
from tests.waiting import until

_MORE_THAN_THERE_IS = 1 << 46


@contextmanager
def refused() -> Iterator[None]:
    """No thread can be started meanwhile: none has room for its stack."""
    before = threading.stack_size(_MORE_THAN_THERE_IS)
    try:
        yield
    finally:
        threading.stack_size(before)


@pytest.fixture(autouse=True)
def no_matter_how_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every item is quick, and one that is being read has been for too long."""
    monkeypatch.setattr(poller, "QUICK_S", math.inf)
    monkeypatch.setattr(poller, "PATIENCE_S", 0.0)


def test_python_says_what_is_looked_for() -> None:
    with refused(), pytest.raises(RuntimeError) as said:
        threading.Thread(target=int).start()
    assert str(said.value) == NO_THREAD


def test_a_lane_leaves_rounds_out_until_there_is_a_thread() -> None:
    done: list[str] = []
    lane = Worker("lane", done.append, patience_s=60)
    with refused():
        lane.run("ab")
    assert done == [] and lane.stuck == {}
    lane.run("ab")
    assert done == ["a", "b"]
    assert lane.close(60)


def test_a_lane_whose_item_hangs_goes_on_once_there_is_a_thread() -> None:
    done: list[str] = []
    gate = threading.Event()

    def work(item: str) -> None:
        if item == "a" and not gate.is_set():
            gate.wait(120)
        done.append(item)

    lane = Worker("lane", work, patience_s=60)
    lane.run("c")
    with refused():
        lane._patience_s = 0.1
        lane.run("ab")  # a hangs, and b would be for another thread
        lane._patience_s = 60
    assert done == ["c"] and list(lane.stuck) == ["a"]
    lane.run("ab")
    assert done == ["c", "b"]
    gate.set()
    until(lambda: not lane.stuck)
    assert lane.close(60)


def test_items_that_need_a_thread_of_their_own_stay_with_the_others_without_one() -> None:
    closing, lonely = threading.Event(), threading.Event()
    read: list[str] = []

    def work(item: str) -> bool:
        read.append(item)
        return item != "lost"

    def alone(item: str) -> None:
        assert item == "lost"
        lonely.set()

    rounds = Poller(work, alone, closing, lambda _: time.sleep(0.001))
    rounds.add("quick")
    with refused():
        rounds.add("lost")
        until(lambda: read.count("lost") > 2 and read.count("quick") > 2)
        assert not lonely.is_set()
    until(lonely.is_set)
    closing.set()
    assert rounds.close(time.monotonic() + 60)


def test_what_hangs_is_relieved_once_there_is_a_thread() -> None:
    closing, gate, begun = threading.Event(), threading.Event(), threading.Event()
    read: list[str] = []

    def work(item: str) -> bool:
        if item == "hangs":
            begun.set()
            gate.wait(120)
        read.append(item)
        return True

    rounds = Poller(work, lambda item: None, closing, lambda _: time.sleep(0.001))
    rounds.add("hangs")
    rounds.add("other")
    with refused():
        until(begun.is_set)
        rounds.relieve()
        assert read == []
    rounds.relieve()
    until(lambda: "other" in read)
    assert "hangs" not in read
    gate.set()
    until(lambda: "hangs" in read)
    closing.set()
    assert rounds.close(time.monotonic() + 60)


def test_a_user_s_name_is_asked_for_again() -> None:
    users = Users()
    with refused():
        assert users.name(os.getuid()) == f"uid {os.getuid()}"
    until(lambda: users.name(os.getuid()) == pwd.getpwuid(os.getuid()).pw_name)
