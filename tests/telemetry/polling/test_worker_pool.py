from __future__ import annotations

import threading
import time

from gpuwatch.telemetry.polling.worker_pool import LATE_ROUNDS, WorkerPool


def test_rounds_that_are_late_get_more_lanes_until_they_are_in_time() -> None:
    by: dict[int, set[int]] = {item: set() for item in range(8)}

    def work(item: int) -> None:
        by[item].add(threading.get_ident())
        time.sleep(0.03)

    lanes = WorkerPool("test", work, 5.0, 0.02)
    began, took = [], []
    for _ in range(6 * LATE_ROUNDS):
        start = time.monotonic()
        lanes.run(range(8))
        took.append(time.monotonic() - start)
        began.append(len(lanes))
    assert began[0] == 1 and began[-1] == 8 and sorted(began) == began
    assert min(took[-LATE_ROUNDS:]) < 8 * 0.03, "all at once"
    assert lanes.close(5)


def test_rounds_in_time_stay_on_one_thread() -> None:
    threads: set[int] = set()
    lanes = WorkerPool("test", lambda item: threads.add(threading.get_ident()), 5.0, 5.0)
    for _ in range(20):
        lanes.run(range(8))
    assert len(threads) == len(lanes) == 1
    assert lanes.close(5)


def test_an_item_that_hangs_stays_left_behind_when_lanes_are_added() -> None:
    let_go = threading.Event()
    done: list[int] = []

    def work(item: int) -> None:
        if item == 3:
            let_go.wait(30)
        done.append(item)

    lanes = WorkerPool("test", work, 1.0, 0.0)
    for _ in range(4 * LATE_ROUNDS):
        lanes.run(range(4))
    assert len(lanes) == 4 and set(lanes.stuck) == {3} and 3 not in done
    assert done.count(0) == 4 * LATE_ROUNDS
    let_go.set()
    while lanes.stuck:
        time.sleep(0.001)
    lanes.run(range(4))
    assert done[-4:].count(3) == 1
    assert lanes.close(5)
