"""What a program tells by itself: its steps, its phases, and calls that make up a step's work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from . import tracking

_Result = TypeVar("_Result")


@contextmanager
def step(samples: int | None = None, tokens: int | None = None) -> Iterator[None]:
    """The block is a step of the training; the program's own steps are the only ones from here on.

    ``samples``, ``tokens``: how many it processes, where a DataLoader does not tell. A block that
    ends with an exception is no step.
    """
    tracking.start()
    tracker = tracking.tracker
    if tracker is not None:
        tracker.begin_own_step()
    yield
    if tracker is not None:
        tracker.end_own_step(samples, tokens)


@contextmanager
def phase(name: str) -> Iterator[None]:
    """The time of the block belongs to this phase of the step, whatever the hook sees in it."""
    tracker = tracking.tracker
    before = None if tracker is None else tracker.begin_own_phase(name)
    try:
        yield
    finally:
        if tracker is not None:
            tracker.end_own_phase(before)


def flop(function: Callable[..., _Result], *args: Any, **keywords: Any) -> _Result:
    """``function(*args, **keywords)``; in the first step that has such calls they are counted, and
    are the work of a step."""
    tracker = tracking.tracker
    counter = None if tracker is None else tracker.begin_own_count()
    try:
        return function(*args, **keywords)
    finally:
        if tracker is not None and counter is not None:
            tracker.end_own_count(counter)


def plan(steps: int) -> None:
    """Say how many steps are to come: progress and remaining time are told from it."""
    tracking.start()
    if tracking.tracker is not None:
        tracking.tracker.plan(steps)
