"""One thread that reads several items in turn, repeatedly, while each read is quick.

A slow item gets a thread of its own, so that it delays no other. Eight GPUs thus cost one wakeup a
second instead of eight.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")

EVERY_S = 1.0
"""Interval between two rounds, in seconds."""
QUICK_S = 0.05
"""Maximum duration of one item's read, in seconds, for it to stay in the shared thread."""
PATIENCE_S = 0.25
"""After this many seconds a read in progress is abandoned together with its thread."""


class EverySecond:
    """Waits for the next round of :class:`Poller` on a fixed beat, or for ``closing``."""

    def __init__(self, closing: threading.Event) -> None:
        self._closing = closing
        self._due = -math.inf

    def __call__(self, items: Sequence[object]) -> None:
        now = time.monotonic()
        self._due = max(self._due + EVERY_S, now + EVERY_S / 2) if self._due > 0 else now + EVERY_S
        self._closing.wait(self._due - now)


class Poller(Generic[Item]):
    """Calls ``read(item)`` for each added item; ``read`` must not raise.

    ``read`` returns whether the item may stay. One that may not, or was not quick, goes to
    ``alone(item)`` for good, on its own thread. ``wait(items)`` returns when the next round is due,
    or when ``closing`` is set, which ends the threads.
    """

    def __init__(
        self,
        read: Callable[[Item], bool],
        alone: Callable[[Item], None],
        closing: threading.Event,
        wait: Callable[[Sequence[Item]], None],
    ) -> None:
        self._read = read
        self._alone = alone
        self._closing = closing
        self._wait = wait
        self._lock = threading.Lock()
        self._items: list[Item] = []
        self._turn = 0
        """Number of the thread in charge; an abandoned thread has an earlier one."""
        self._present: tuple[Item, float] | None = None
        """The item being read, and since when (monotonic seconds)."""
        self._going = False
        self._threads: list[threading.Thread] = []

    def add(self, item: Item) -> None:
        """Read ``item`` from the next round on."""
        with self._lock:
            self._items.append(item)
            if not self._going:
                self._going = True
                self._start()

    def relieve(self) -> None:
        """Continue on a new thread if a read hangs; called from other threads."""
        with self._lock:
            if self._present is None or time.monotonic() - self._present[1] < PATIENCE_S:
                return
            item, self._present = self._present, None
            self._items.remove(item[0])
            self._turn += 1
            try:
                self._start()
            except RuntimeError:  # no thread available now: retried at the next call
                self._turn -= 1
                self._items.append(item[0])
                self._present = item

    def close(self, deadline: float) -> bool:
        """Wait for the threads until ``deadline`` (monotonic); returns whether all have ended."""
        for thread in list(self._threads):
            thread.join(max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in list(self._threads))

    def _start(self) -> None:
        self._thread("gpuwatch-slow", self._run, self._turn)

    def _thread(self, name: str, target: Callable[..., None], argument: object) -> None:
        thread = threading.Thread(target=target, args=(argument,), name=name, daemon=True)
        thread.start()
        self._threads = [other for other in self._threads if other.is_alive()] + [thread]

    def _run(self, turn: int) -> None:
        while True:
            self._wait(tuple(self._items))
            if self._closing.is_set():
                return
            for item in tuple(self._items):
                begun = time.monotonic()
                with self._lock:
                    if self._turn != turn:
                        return
                    self._present = item, begun
                stays = self._read(item) and time.monotonic() - begun < QUICK_S
                with self._lock:
                    left_behind = self._turn != turn
                    if not left_behind:
                        self._present = None
                        if not stays:
                            self._items.remove(item)
                if left_behind:
                    self._alone(item)
                    return
                if not stays:
                    try:
                        self._thread("gpuwatch-alone", self._alone, item)
                    except RuntimeError:  # no thread available now: it stays for another
                        with self._lock:
                            self._items.append(item)
                if self._closing.is_set():
                    return
