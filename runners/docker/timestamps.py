"""Converts the daemon's wall clock times to the clock of a recording."""

from __future__ import annotations

import time
from datetime import datetime
from functools import lru_cache


def unix_ns(text: str) -> int | None:
    """Nanoseconds since 1970 of an RFC 3339 time; ``None`` if invalid, or Go's zero time."""
    whole, rest = text[:19], text[19:]
    digits = ""
    if rest.startswith("."):
        count = next((i for i, c in enumerate(rest[1:]) if not c.isdigit()), len(rest) - 1)
        digits, rest = rest[1 : count + 1], rest[count + 1 :]
    try:
        seconds = _seconds(whole, rest.replace("Z", "+00:00") or "+00:00")
    except ValueError:
        return None
    return None if seconds < 0 else seconds * 1_000_000_000 + int(digits[:9].ljust(9, "0"))


def monotonic_ns(unix: int) -> int:
    """``CLOCK_MONOTONIC`` at a wall clock time, if that clock was not set since; never later than
    now."""
    age = time.time_ns() - unix
    return time.monotonic_ns() - max(0, age)


@lru_cache(maxsize=16)
def _seconds(whole: str, zone: str) -> int:
    return int(datetime.fromisoformat(whole + zone).timestamp())
