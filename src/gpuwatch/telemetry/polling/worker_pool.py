"""Workers side by side: as few as keep a round on time, because each costs wakeups."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic

from gpuwatch.telemetry.polling.worker import Item, Worker

LATE_ROUNDS = 3
"""Number of consecutive late rounds after which workers are added."""


class WorkerPool(Generic[Item]):
    """Runs ``work(item)`` for all items in rounds that should take at most ``round_s`` seconds.

    Starts with one :class:`Worker` and doubles their number whenever that is not enough.
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
        """The abandoned items, each with the start of its hanging call in monotonic seconds."""
        return dict(self._stuck)

    def run(self, items: Sequence[Item]) -> None:
        """Do a round over all items that are not stuck, until each is done or abandoned."""
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
        """End the threads; returns whether no call is in progress any more."""
        deadline = time.monotonic() + timeout_s
        for lane in self._lanes:
            lane.close(max(0.0, deadline - time.monotonic()))
        return not self._stuck
