"""Calls into the driver that do not return: which, since when, and what is said of them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gpuwatch.telemetry.base import Event
from gpuwatch.telemetry.nvml.probe import FRESH_S

Call = tuple[str, float]
"""Its name and the monotonic time at which it began."""
Place = tuple[str, bool]
"""The GPU's id, and whether it is its slow thread that waits."""


def unanswered(name: str) -> str:
    """The reason of what a call should have given, after ``FRESH_S`` seconds."""
    return f"{name} has not answered for over {FRESH_S:g} s"


class HungCalls:
    """Turns the calls in progress into events: one when a call hangs, one when it returned."""

    def __init__(self) -> None:
        self._told: dict[Place, Call] = {}

    def seen(self, calls: Mapping[Place, Call], lost: Iterable[str], now: float) -> list[Event]:
        """Events since the last call. A GPU that is lost (ids) answers no more: no event."""
        events = []
        gone = set(lost)
        for place, told in list(self._told.items()):
            if calls.get(place) != told:
                del self._told[place]
                if place[0] not in gone:
                    text = f"{told[0]} answered after {now - told[1]:.0f} s"
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
