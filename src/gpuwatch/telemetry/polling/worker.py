"""A thread that processes several items in turn, replaced when one of them hangs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")
_Result = TypeVar("_Result")


class _Worker(Generic[Item]):
    """One thread of a worker: does rounds until told to end, or until it is abandoned."""

    def __init__(self, name: str, work: Callable[[Item], None], stuck: dict[Item, float]):
        self._work = work
        self._stuck = stuck
        self._go = threading.Lock()
        self._go.acquire()
        self._done = threading.Lock()
        self._done.acquire()
        self._moving = threading.Lock()
        self._items: Sequence[Item] = ()
        self._position = 0
        self._since = 0.0
        self._left_behind = False
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.thread.start()

    def begin(self, items: Sequence[Item]) -> None:
        self._items = items
        self._position = 0
        self._since = time.monotonic()
        self._go.release()

    def end(self) -> None:
        """End the thread after its current work."""
        self.begin(())

    def finished(self, timeout_s: float) -> bool:
        return self._done.acquire(True, timeout_s)

    def leave_behind(self, patience_s: float) -> Sequence[Item] | None:
        """Abandon the current item if it has taken too long; returns the items after it."""
        with self._moving:
            place = self._position
            if place >= len(self._items) or time.monotonic() - self._since < patience_s:
                return None
            self._left_behind = True
            self._stuck[self._items[place]] = self._since
            return self._items[place + 1 :]

    def _run(self) -> None:
        while True:
            self._go.acquire()
            if not self._items:
                return
            for item in self._items:
                self._work(item)
                with self._moving:
                    if self._left_behind:
                        del self._stuck[item]
                        return
                    self._position += 1
                    self._since = time.monotonic()
            self._done.release()


class Worker(Generic[Item]):
    """Runs ``work(item)`` for items in turn on another thread.

    An item that takes longer than ``patience_s`` is abandoned with its thread and skipped until its
    call returns, so the caller waits for it at most once. ``work`` must not raise.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[Item], None],
        patience_s: float,
        stuck: dict[Item, float] | None = None,
    ) -> None:
        """``stuck``: the abandoned items, shared by several workers."""
        self._name = name
        self._work = work
        self._patience_s = patience_s
        self._stuck = {} if stuck is None else stuck
        self._worker: _Worker[Item] | None = None
        self._running = False

    @property
    def stuck(self) -> dict[Item, float]:
        """The abandoned items, each with the start of its hanging call in monotonic seconds."""
        return dict(self._stuck)

    def run(self, items: Sequence[Item]) -> None:
        """Do a round over all items that are not stuck, until each is done or abandoned."""
        self.begin(items)
        self.finish()

    def begin(self, items: Sequence[Item]) -> None:
        """Begin a round; :meth:`finish` ends it."""
        if self._stuck:
            items = [item for item in items if item not in self._stuck]
        self._running = bool(items)
        if items:
            self._engage(items)

    def finish(self) -> None:
        """Wait until each item of the round is done or abandoned."""
        while self._running and (worker := self._worker) is not None:
            begun = time.monotonic()
            if worker.finished(self._patience_s):
                self._running = False
            elif time.monotonic() - begun > 2 * self._patience_s:
                continue  # this thread stood still, and so did the call: it is given more time
            elif (remaining := worker.leave_behind(self._patience_s)) is not None:
                self._worker = None
                self._running = bool(remaining)
                if remaining:
                    self._engage(remaining)

    def close(self, timeout_s: float) -> bool:
        """End the thread; returns whether no call is in progress any more."""
        if self._worker is not None:
            self._worker.end()
            self._worker.thread.join(timeout_s)
            self._worker = None
        return not self._stuck

    def _engage(self, items: Sequence[Item]) -> None:
        try:
            self._worker = self._worker or _Worker(self._name, self._work, self._stuck)
        except RuntimeError:  # no thread available now: the round is skipped
            self._running = False
            return
        self._worker.begin(items)


def within(seconds: float, function: Callable[[], _Result]) -> _Result:
    """Call on another thread. Raises ``TimeoutError`` after ``seconds``, or the call's error."""
    results: list[_Result] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(function())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="gpuwatch-nvml-call", daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not results:
        raise TimeoutError
    return results[0]
