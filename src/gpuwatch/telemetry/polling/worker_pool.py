"""Lanes beside each other: as few as a round needs to be over in time, since each costs wakes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic

from gpuwatch.telemetry.polling.worker import Item, Worker

LATE_ROUNDS = 3
"""So many rounds, one after the other, must have been late for there to be more lanes."""


class WorkerPool(Generic[Item]):
    """Runs ``work(item)`` for all items in rounds that shall be over within ``round_s`` seconds.

    There is one :class:`Worker` at first, and twice as many whenever that was not enough.
    """

    def __init__(
        self, name: str, work: Callable[[Item], None], patience_s: float, round_s: float
    ) -> None:
        self._stuck: dict[Item, float] = {}
        self._make: Callable[[], Worker[Item]] = partial(
            Worker, name, work, patience_s, self._stuck
        )
        self._lanes = [self._make()]
        self._round_s = round_s
        self._late = 0

    def __len__(self) -> int:
        return len(self._lanes)

    @property
    def stuck(self) -> dict[Item, float]:
        """The items left behind, each with the monotonic time since which its call hangs."""
        return dict(self._stuck)

    def run(self, items: Sequence[Item]) -> None:
        """Do a round over all items that are not stuck, until each is done or left behind."""
        begun = time.monotonic()
        lanes = self._lanes
        for place, lane in enumerate(lanes):
            lane.begin(items[place :: len(lanes)])
        for lane in lanes:
            lane.finish()
        self._late = self._late + 1 if time.monotonic() - begun > self._round_s else 0
        if self._late >= LATE_ROUNDS and len(lanes) < len(items):
            more = min(2 * len(lanes), len(items)) - len(lanes)
            self._lanes += [self._make() for _ in range(more)]
            self._late = 0

    def close(self, timeout_s: float) -> bool:
        """End the threads; whether no call is in progress any more."""
        deadline = time.monotonic() + timeout_s
        for lane in self._lanes:
            lane.close(max(0.0, deadline - time.monotonic()))
        return not self._stuck
