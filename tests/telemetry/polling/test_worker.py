from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

from gpuwatch.telemetry.polling.worker import Worker
from tests.waiting import until


def test_every_item_is_done_before_a_round_returns() -> None:
    done: list[str] = []
    lane = Worker("lane", done.append, patience_s=60)
    for _ in range(100):
        lane.run("abc")
    assert "".join(done) == "abc" * 100
    assert lane.close(60)


def test_an_item_that_hangs_is_left_behind_until_it_returns() -> None:
    done: list[str] = []
    gate = threading.Event()

    def work(item: str) -> None:
        if item == "b":
            gate.wait(120)
        done.append(item)

    lane = Worker("lane", work, patience_s=0.1)
    # One that had no processor is left behind too, and comes back.
    until(lambda: lane.run("abc") or (list(lane.stuck) == ["b"] and {*done} == {*"ac"}))
    done.clear()
    until(lambda: lane.run("abc") or (list(lane.stuck) == ["b"] and {*done} == {*"ac"}))
    gate.set()
    until(lambda: not lane.stuck)
    until(lambda: lane.run("abc") or done[-3:] == [*"abc"])
    assert lane.close(60)


STOOD_STILL = """
import os, signal, time
from gpuwatch.telemetry.polling.worker import Worker
done = []
def work(item):
    if item == "a": os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(0.2)
    done.append(item)
lane = Worker("lane", work, patience_s=1)
lane.run("ab")
print(*done, len(lane.stuck))
"""


def test_an_item_is_not_left_behind_because_the_whole_program_stood_still(programs: None) -> None:
    program = subprocess.Popen(
        [sys.executable, "-c", STOOD_STILL], stdout=subprocess.PIPE, text=True
    )
    os.waitpid(program.pid, os.WUNTRACED)
    time.sleep(2.5)
    program.send_signal(signal.SIGCONT)
    assert program.communicate(timeout=60)[0] == "a b 0\n"


def test_a_lane_that_hangs_still_closes_and_says_so() -> None:
    gate = threading.Event()
    lane: Worker[str] = Worker("lane", lambda item: gate.wait(120) and None, patience_s=0.05)
    lane.run("a")
    assert not lane.close(0.1)
    gate.set()
