"""Driver calls that do not return: which, since when, and the events about them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gpuwatch.telemetry.base import Event
from gpuwatch.telemetry.nvml.probe import FRESH_S

Call = tuple[str, float]
"""Name of the call and its start in monotonic seconds."""
Place = tuple[str, bool]
"""The GPU's id, and whether its slow thread is the one that waits."""


def unanswered(name: str) -> str:
    """Reason for the values missing after ``FRESH_S`` seconds without an answer."""
    return f"{name} has not answered for over {FRESH_S:g} s"


def left_out(name: str, patience_s: float) -> str:
    """Reason for the values missing from a sample that does not wait longer."""
    return f"{name} had not answered within {patience_s:g} s, or its thread had no processor"


class HungCalls:
    """Turns calls in progress into events: one when a call hangs, one when it returns."""

    def __init__(self) -> None:
        self._told: dict[Place, Call] = {}

    def seen(self, calls: Mapping[Place, Call], lost: Iterable[str], now: float) -> list[Event]:
        """Events since the last call. ``lost`` (ids) are lost GPUs, whose calls raise no event."""
        events = []
        lost_ids = set(lost)
        for place, hung in list(self._told.items()):
            if calls.get(place) != hung:
                del self._told[place]
                if place[0] not in lost_ids:
                    text = f"{hung[0]} answered after {now - hung[1]:.0f} s"
                    events.append(Event("nvml-back", text, place[0]))
        for place, call in calls.items():
            if now - call[1] > FRESH_S and place not in self._told:
                self._told[place] = call
                kind = "slow" if place[1] else "fast"
                text = (
                    f"{unanswered(call[0])}; until it does, none of this GPU's {kind} readings is "
                    "sampled; look for Xid errors in the kernel log"
                )
                events.append(Event("nvml-lost", text, place[0]))
        return events
