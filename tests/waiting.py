"""Waiting for a condition: the one way in which tests let time pass."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")


def until(
    condition: Callable[[], Found], what: str = "it did not happen", seconds: float = 60
) -> Found:
    """Wait until ``condition`` is true, and return what it gave; fail with ``what`` after that.

    A minute is for a machine that does much else. It costs nothing where the condition comes true.
    """
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"{what}, in {seconds:g} s"
        time.sleep(0.01)
    return found
