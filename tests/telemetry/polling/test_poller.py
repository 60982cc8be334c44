from __future__ import annotations

import math
import threading
import time
from collections import defaultdict

import pytest

from gpuwatch.telemetry.polling import poller
from gpuwatch.telemetry.polling.poller import EverySecond, Poller
from tests.waiting import until


class Readings:
    """What was read, and on which thread."""

    def __init__(self) -> None:
        self.closing = threading.Event()
        self.going = threading.Event()
        self.going.set()
        self.hangs: set[str] = set()
        self.hanging = False
        self.lost: set[str] = set()
        self.slow: set[str] = set()
        self.by: dict[str, list[int]] = defaultdict(list)
        self.alone: dict[str, int] = {}
        beat = EverySecond(self.closing)
        self.rounds: Poller[str] = Poller(self._read, self._alone, self.closing, beat)

    def _read(self, item: str) -> bool:
        if item in self.hangs:
            self.hanging = True
            self.going.wait(120)
        # One thread reads: no item is slow because the machine is.
        poller.QUICK_S = 0.0 if item in self.slow else math.inf
        self.by[item].append(threading.get_ident())
        return item not in self.lost

    def _alone(self, item: str) -> None:
        self.alone[item] = threading.get_ident()
        self.closing.wait()

    def close(self) -> None:
        self.closing.set()
        self.going.set()
        assert self.rounds.close(time.monotonic() + 60)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(poller, "EVERY_S", 0.05)
    monkeypatch.setattr(poller, "PATIENCE_S", 0.0)
    monkeypatch.setattr(poller, "QUICK_S", math.inf)


def test_quick_items_are_read_by_one_thread_again_and_again() -> None:
    readings = Readings()
    for item in "abc":
        readings.rounds.add(item)
    until(lambda: all(len(readings.by[item]) > 2 for item in "abc"))
    readings.close()
    assert len({thread for threads in readings.by.values() for thread in threads}) == 1
    assert not readings.alone


@pytest.mark.parametrize("why", ["slow", "lost"])
def test_an_item_that_is_slow_or_lost_gets_a_thread_of_its_own(why: str) -> None:
    readings = Readings()
    getattr(readings, why).add("b")
    for item in "abc":
        readings.rounds.add(item)
    until(lambda: "b" in readings.alone and len(readings.by["c"]) > 2)
    readings.close()
    assert len(readings.by["b"]) == 1 and set(readings.alone) == {"b"}
    assert readings.alone["b"] not in readings.by["a"]


def test_one_that_hangs_holds_up_no_other_and_keeps_its_thread() -> None:
    readings = Readings()
    readings.hangs.add("b")
    readings.going.clear()
    for item in "abc":
        readings.rounds.add(item)
    until(lambda: readings.hanging)
    readings.rounds.relieve()
    until(lambda: len(readings.by["c"]) > 2)
    assert not readings.by["b"]
    readings.going.set()
    until(lambda: "b" in readings.alone)
    readings.close()
    assert readings.alone["b"] == readings.by["b"][0] != readings.by["c"][0]
