"""How a container ended and when, according to the daemon and its wall clock."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache

import docker

from gpuwatch.core.models import JSON

_NOT_STARTED = re.compile(
    rb"\[FATAL tini \(\d+\)\] exec (?P<program>.+) failed: (?P<why>.+)"
    rb"|ERROR \(catatonit:\d+\): failed to exec pid1: (?P<reason>.+)"
)
"""The init's message if the workload's program cannot be executed."""

_NOT_EXECUTED = (126, 127)
_TIME = re.compile(r"^(.{,19})(?:\.(\d*))?(.*)", re.DOTALL)
"""Seconds, their fraction, which Python does not read to the nanosecond, and the zone."""
_PROMPT_NS = 1_000_000_000
"""A running daemon reports an end much faster than this; starting one takes longer."""


def over(state: Mapping[str, JSON]) -> bool:
    """Whether the container's ``State`` is final."""
    return state.get("Status") in ("exited", "dead", "created")


def seen(api: docker.APIClient, name: str, state: Mapping[str, JSON]) -> bool:
    """Whether the daemon was running when the container ended: it then has an event of that moment.
    One that comes back later reports it at that time, or not at all, or has forgotten it.

    Raises:
        DockerException, OSError: the daemon did not answer.
    """
    finished = unix_ns(str(state.get("FinishedAt") or ""))
    filters = {"container": name, "event": "die"}
    # The query waits until the second is over, so that it misses nothing in it.
    events = api.events(since=1, until=int(time.time()) + 1, filters=filters, decode=True)
    with contextlib.closing(events):
        return finished is not None and any(
            abs(event["timeNano"] - finished) < _PROMPT_NS for event in events
        )


def failure(state: Mapping[str, JSON], last_words: bytes) -> str | None:
    """Why the workload was never executed; ``None`` if it was."""
    if state.get("Status") == "created":
        return str(state.get("Error") or "its container was created but never started")
    match = _NOT_STARTED.search(last_words) if state.get("ExitCode") in _NOT_EXECUTED else None
    if match is None:
        return None
    reason = (match["why"] or match["reason"]).decode(errors="replace").strip()
    program = (match["program"] or b"the program").decode(errors="replace")
    return f"{program} cannot be executed: {reason}"


def unix_ns(text: str) -> int | None:
    """Nanoseconds since 1970 of an RFC 3339 time; ``None`` if invalid, or Go's zero time."""
    whole, digits, zone = _TIME.findall(text)[0]
    try:
        seconds = _seconds(whole, zone.replace("Z", "+00:00") or "+00:00")
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
