from __future__ import annotations

import threading
import time

from gpuwatch.telemetry.polling.worker import Worker


def test_every_item_is_done_before_a_round_returns() -> None:
    done: list[str] = []
    lane = Worker("lane", done.append, patience_s=5)
    for _ in range(100):
        lane.run("abc")
    assert "".join(done) == "abc" * 100
    assert lane.close(1)


def test_an_item_that_hangs_is_left_behind_until_it_returns() -> None:
    done: list[str] = []
    gate = threading.Event()

    def work(item: str) -> None:
        if item == "b":
            gate.wait(10)
        done.append(item)

    lane = Worker("lane", work, patience_s=0.1)
    start = time.monotonic()
    lane.run("abc")
    assert time.monotonic() - start < 2
    assert done == ["a", "c"]
    assert list(lane.stuck) == ["b"]
    lane.run("abc")
    assert done == ["a", "c", "a", "c"]
    gate.set()
    end = time.monotonic() + 5
    while lane.stuck:
        assert time.monotonic() < end
        time.sleep(0.005)
    lane.run("abc")
    assert "".join(done[-3:]) == "abc"
    assert lane.close(1)


def test_a_lane_that_hangs_still_closes_and_says_so() -> None:
    gate = threading.Event()
    lane: Worker[str] = Worker("lane", lambda item: gate.wait(10) and None, patience_s=0.05)
    lane.run("a")
    assert not lane.close(0.1)
    gate.set()
