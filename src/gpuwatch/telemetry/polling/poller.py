"""One thread that reads several items in turn, again and again, as long as each reading is quick.

An item that is not gets a thread of its own, so that it holds up no other: eight GPUs cost one
wake a second and not eight.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")

EVERY_S = 1.0
"""Between two rounds, in seconds."""
QUICK_S = 0.05
"""How long reading one item may take, in seconds, for it to stay."""
PATIENCE_S = 0.25
"""After so long a reading in progress is left alone with its thread, in seconds."""


class EverySecond:
    """Waits for the next round of :class:`Poller` on a beat; for ``closing`` at most so long."""

    def __init__(self, closing: threading.Event) -> None:
        self._closing = closing
        self._due = -math.inf

    def __call__(self, items: Sequence[object]) -> None:
        now = time.monotonic()
        self._due = max(self._due + EVERY_S, now + EVERY_S / 2) if self._due > 0 else now + EVERY_S
        self._closing.wait(self._due - now)


class Poller(Generic[Item]):
    """Calls ``read(item)`` for each item that was added; ``read`` must not raise.

    It says whether the item may stay; one that may not, or was not quick, goes to ``alone(item)``
    for good, which gets a thread. ``wait(items)`` returns when the next round is due, or when
    ``closing`` is set, which ends the threads.
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
        """Which thread goes round: one that was left behind has an earlier number."""
        self._present: tuple[Item, float] | None = None
        """What is being read, and the monotonic time since which."""
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
        """Have another thread go on with the rest where a reading hangs; for others to call."""
        with self._lock:
            if self._present is None or time.monotonic() - self._present[1] < PATIENCE_S:
                return
            item, self._present = self._present, None
            self._items.remove(item[0])
            self._turn += 1
            try:
                self._start()
            except RuntimeError:  # the system gives no thread now: tried again at the next call
                self._turn -= 1
                self._items.append(item[0])
                self._present = item

    def close(self, deadline: float) -> bool:
        """Wait for the threads until then (monotonic); whether all have ended."""
        for thread in list(self._threads):
            thread.join(max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in list(self._threads))

    def _start(self) -> None:
        self._thread("gpuwatch-slow", self._run, self._turn)

    def _thread(self, name: str, target: Callable[..., None], argument: object) -> None:
        thread = threading.Thread(target=target, args=(argument,), name=name, daemon=True)
        thread.start()
        self._threads = [each for each in self._threads if each.is_alive()] + [thread]

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
                    except RuntimeError:  # the system gives no thread now: it stays for another
                        with self._lock:
                            self._items.append(item)
                if self._closing.is_set():
                    return
