"""The clock of a recording: when to sample, what was missed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from gpuwatch.metrics import CATALOGUE
from gpuwatch.recorder.slices import short_slices
from gpuwatch.session.store import Row, event
from gpuwatch.session.writer import SessionWriter
from gpuwatch.telemetry.base import Channel, Source, Value


class Sampler:
    """Samples all sources together, on ticks that never drift: a missed tick stays a gap."""

    def __init__(self, sources: Sequence[Source], interval: float, base_ns: int) -> None:
        self._sources = sources
        self._interval_ns = int(interval * 1e9)
        self._base_ns = base_ns
        self._missed = 0
        self._taken = 0

    def run(self, writer: SessionWriter, wake: threading.Event, over: Callable[[], bool]) -> None:
        """Sample until ``over()``; ``wake`` makes it look at once."""
        tick = (time.monotonic_ns() - self._base_ns) // self._interval_ns
        with short_slices():
            while not over():
                tick = self._take(tick, writer)
                self._wait(tick, wake, over)
            self._take(tick, writer)

    def columns(self, known: Sequence[tuple[str, str]]) -> None:
        """Map the sources' channels to the columns of the file, given as (device, metric)."""
        place = {key: index for index, key in enumerate(known)}
        self._width = len(known)
        self._place = [
            place[channel.device, channel.metric]
            for source in self._sources
            for channel in source.channels
        ]
        self._index = place

    def _take(self, tick: int, writer: SessionWriter) -> int:
        """One sample now; returns the number of the next tick that is not past already."""
        values: list[Value] = [None] * self._width
        now = time.monotonic_ns() - self._base_ns
        place = iter(self._place)
        for source in self._sources:
            for value, column in zip(source.sample(), place, strict=False):
                values[column] = value
            changes, events = source.drain()
            for change in changes:
                writer.put(self._change(now, change.channel))
            for happened in events:
                writer.put(event(now, happened.kind, happened.text, happened.device))
        writer.tick(tick, now, values)
        self._taken += 1
        following = (time.monotonic_ns() - self._base_ns) // self._interval_ns + 1
        if following > tick + 1:
            self._miss(following - tick - 1, now, writer)
        return max(following, tick + 1)

    def _wait(self, tick: int, wake: threading.Event, over: Callable[[], bool]) -> None:
        while not over():
            left = (tick * self._interval_ns + self._base_ns - time.monotonic_ns()) / 1e9
            if left <= 0:
                return
            if wake.wait(left):
                wake.clear()

    def _miss(self, count: int, now: int, writer: SessionWriter) -> None:
        before, self._missed = self._missed, self._missed + count
        # Told when it begins and at every tenfold, not at every tick.
        if before == 0 or len(str(before)) < len(str(self._missed)):
            writer.put(
                event(
                    now,
                    "interval-missed",
                    f"{self._missed} of {self._missed + self._taken} samples so far came too late "
                    f"for an interval of {self._interval_ns / 1e9:g} s and are missing",
                )
            )

    def _change(self, now: int, channel: Channel) -> Row:
        return (
            "INSERT INTO change (t, channel, method, source, reason) VALUES (?, ?, ?, ?, ?)",
            (
                now,
                self._index[channel.device, channel.metric],
                channel.method.value,
                channel.source,
                channel.reason,
            ),
        )


def described(channels: Sequence[Channel]) -> list[tuple[Channel, str, str]]:
    """Channels with their metric's unit and kind, as the session file wants them."""
    return [
        (channel, CATALOGUE[channel.metric].unit, CATALOGUE[channel.metric].kind.value)
        for channel in channels
    ]
