"""The clocks of a recording: samples on time, missed ones, and a machine that slept."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import CATALOGUE, Method
from gpuwatch.session.writing.statements import Row, change, event
from gpuwatch.session.writing.writer import SessionWriter
from gpuwatch.telemetry.base import Channel, Source, Value

_SWITCH_S = 0.0005
"""Seconds for which a thread that holds the GIL keeps another waiting; a tenth of the default."""
_NOT_SAMPLED = "the recorder that took over the run could not sample it"


STRIDE = 0.25
"""Most that the moment moves from one interval to the next, as a share of the interval."""


class Beat:
    """The moment of each sample within its interval: 0 is the beginning, 1 the end.

    A load whose period is the sampling interval looks constant to samples that are taken at the
    same moment of every interval. So the moment moves by random strides to the end of the interval
    and back, and is everywhere equally often. Two samples are 3/4 to 5/4 of the interval apart, and
    nothing drifts: each interval has its one sample.
    """

    def __init__(self, moment: float) -> None:
        """``moment``: of the first sample."""
        self._way = moment
        """How far it is on the way to the end (up to 1) and back (up to 2)."""

    def next(self) -> float:
        """The moment of the next sample."""
        self._way = (self._way + random.uniform(0, STRIDE)) % 2  # noqa: S311 (no secret)
        return 1 - abs(1 - self._way)


class Sampler:
    """Samples all sources together, once in each interval; a missed tick stays a gap.

    The moment within the interval is that of :class:`Beat`.
    """

    def __init__(self, sources: Sequence[Source], interval: float, base_ns: int) -> None:
        self._sources = sources
        self._interval_ns = int(interval * 1e9)
        self._base_ns = base_ns
        self._missed = 0
        self._taken = 0

    def run(self, writer: SessionWriter, wake: SimpleQueue[None], over: Callable[[], bool]) -> None:
        """Sample until ``over()``, which is asked at once when something is put into ``wake``."""
        tick, into = divmod(time.monotonic_ns() - self._base_ns, self._interval_ns)
        beat = Beat(into / self._interval_ns)
        usual = sys.getswitchinterval()
        sys.setswitchinterval(_SWITCH_S)
        try:
            while not over():
                tick = self._take(tick, writer)
                self._wait(tick + beat.next(), wake, over)
            self._take(tick, writer)
        finally:
            sys.setswitchinterval(usual)

    def columns(self, known: Sequence[tuple[str, str]]) -> None:
        """Map the sources' channels to the columns of the file, given as (device, metric)."""
        self._index = {key: index for index, key in enumerate(known)}
        self._place = [
            self._index[channel.device, channel.metric]
            for source in self._sources
            for channel in source.channels
        ]

    def _take(self, tick: int, writer: SessionWriter) -> int:
        """Take one sample now; returns the next tick whose interval is not over."""
        values: list[Value] = [None] * len(self._index)
        now = time.monotonic_ns() - self._base_ns
        place = iter(self._place)
        for source in self._sources:
            for value, column in zip(source.sample(), place, strict=False):
                values[column] = value
            changes, events = source.drain()
            for changed in changes:
                channel = changed.channel
                column = self._index[channel.device, channel.metric]
                writer.put(change(now, column, *_state(channel)))
            for happened in events:
                writer.put(event(now, happened.kind, happened.text, happened.device))
        writer.tick(tick, now, values)
        self._taken += 1
        following = (time.monotonic_ns() - self._base_ns) // self._interval_ns
        if following > tick + 1:
            self._miss(following - tick - 1, now, writer)
        return max(following, tick + 1)

    def _wait(self, due: float, wake: SimpleQueue[None], over: Callable[[], bool]) -> None:
        """Wait until ``due``, in intervals since the recording began."""
        while not over():
            left = (due * self._interval_ns + self._base_ns - time.monotonic_ns()) / 1e9
            if left <= 0:
                return
            with suppress(Empty):
                wake.get(timeout=left)

    def _miss(self, count: int, now: int, writer: SessionWriter) -> None:
        before, self._missed = self._missed, self._missed + count
        # One event for the first miss and one for each power of ten, not one per tick.
        if before == 0 or len(str(before)) < len(str(self._missed)):
            text = (
                f"{self._missed} of the first {self._missed + self._taken} samples came too "
                f"late for an interval of {self._interval_ns / 1e9:g} s and are missing"
            )
            writer.put(event(now, "interval-missed", text))


ChannelState = tuple[str, str, "str | None"]
"""Method, source and reason."""


def changes(
    columns: Sequence[tuple[str, str]],
    before: Sequence[ChannelState],
    sampled: Sequence[Channel],
    now: int,
) -> list[Row]:
    """Rows of ``change`` for a recorder that takes over a file.

    ``columns``: (device, metric) of each column; ``before``: their states, in the same order, left
    by the previous recorder; ``sampled``: the channels from session time ``now`` (ns) on.
    """
    states = {(channel.device, channel.metric): _state(channel) for channel in sampled}
    rows = []
    for column, (key, (method, source, reason)) in enumerate(zip(columns, before, strict=True)):
        gone = (Method.UNAVAILABLE.value, source, reason or _NOT_SAMPLED)
        state = states.get(key, gone)
        if state != (method, source, reason):
            rows.append(change(now, column, *state))
    return rows


def _state(channel: Channel) -> ChannelState:
    return channel.method.value, channel.source, channel.reason


def described(channels: Sequence[Channel]) -> list[tuple[Channel, str, str]]:
    """Channels with their metric's unit and kind, in the form that a session file takes."""
    return [
        (channel, CATALOGUE[channel.metric].unit, CATALOGUE[channel.metric].kind.value)
        for channel in channels
    ]


_LEAST_NS = 1_000_000_000
"""Smaller steps are ignored: time synchronisation makes steps of milliseconds."""


_MOMENT_NS = 100_000_000


@dataclass(frozen=True)
class Reading:
    """The three clocks at one moment, in nanoseconds."""

    monotonic: int
    """Stops while the machine sleeps; all session times come from it."""
    boot: int
    """Continues while the machine sleeps."""
    wall: int
    """May be set at any time."""


def read_clocks() -> Reading:
    """Read the clocks; again if the process paused in between, which would look like sleep."""
    while True:
        start = time.monotonic_ns()
        now = Reading(start, time.clock_gettime_ns(time.CLOCK_BOOTTIME), time.time_ns())
        if time.monotonic_ns() - start < _MOMENT_NS:
            return now


class Clocks:
    """Compares the clocks from one look to the next."""

    def __init__(self, now: Reading) -> None:
        self._before = now

    def look(self, t: int, now: Reading) -> list[Row]:
        """Events since the previous look, at session time ``t`` in nanoseconds."""
        before, self._before = self._before, now
        slept = (now.boot - before.boot) - (now.monotonic - before.monotonic)
        stepped = (now.wall - before.wall) - (now.boot - before.boot)
        rows = []
        if slept >= _LEAST_NS:
            text = f"the machine slept for {_length(slept)}: times here do not count that"
            rows.append(event(t, "suspended", text))
        if abs(stepped) >= _LEAST_NS:
            way = "forwards" if stepped > 0 else "backwards"
            text = (
                f"its clock was set {way} by {_length(abs(stepped))}: "
                "times here follow the clock as set at the start"
            )
            rows.append(event(t, "clock-stepped", text))
        return rows


def _length(nanoseconds: int) -> str:
    seconds = nanoseconds / 1e9
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
