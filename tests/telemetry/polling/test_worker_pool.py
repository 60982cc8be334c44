from __future__ import annotations

import math
import threading

from gpuwatch.telemetry.polling.worker_pool import LATE_ROUNDS, WorkerPool
from tests.waiting import until


def test_rounds_that_are_late_get_more_lanes_until_each_item_has_its_own() -> None:
    at_once = threading.Barrier(8)
    met: list[int] = []

    def work(item: int) -> None:
        if met:
            met.append(at_once.wait(60))

    lanes = WorkerPool("test", work, 90.0, -1.0)
    began = []
    for _ in range(6 * LATE_ROUNDS):
        lanes.run(range(8))
        began.append(len(lanes))
    assert began[0] == 1 and began[-1] == 8 and sorted(began) == began
    met.append(-1)
    lanes.run(range(8))
    assert sorted(met) == [-1, *range(8)], "all at once"
    assert lanes.close(60)


def test_rounds_in_time_stay_on_one_thread() -> None:
    threads: set[int] = set()
    lanes = WorkerPool("test", lambda item: threads.add(threading.get_ident()), 60.0, math.inf)
    for _ in range(20):
        lanes.run(range(8))
    assert len(threads) == len(lanes) == 1
    assert lanes.close(60)


def test_an_item_that_hangs_stays_left_behind_when_lanes_are_added() -> None:
    let_go = threading.Event()
    done: list[int] = []

    def work(item: int) -> None:
        if item == 3:
            let_go.wait(120)
        done.append(item)

    lanes = WorkerPool("test", work, 3.0, -1.0)
    for _ in range(4 * LATE_ROUNDS):
        lanes.run(range(4))
    assert len(lanes) == 4 and set(lanes.stuck) == {3} and 3 not in done
    assert done.count(0) == 4 * LATE_ROUNDS
    let_go.set()
    until(lambda: not lanes.stuck)
    lanes.run(range(4))
    assert done[-4:].count(3) == 1
    assert lanes.close(60)
