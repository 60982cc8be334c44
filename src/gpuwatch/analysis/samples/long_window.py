"""The channels of a long session over one window, from the tier and some samples."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np

from gpuwatch.analysis.samples.every_sample import around, ticks_between, within
from gpuwatch.analysis.samples.window import Window
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.schema import TIER_SECONDS

BUCKET_NS = TIER_SECONDS * 1_000_000_000
_DRAWN = 8_640
"""Samples drawn per channel for quantiles: one in ten seconds of a day."""

Samples = tuple[np.ndarray, list[np.ndarray]]
"""Times (n,) in nanoseconds, and the values (n,) of each channel, NaN where unknown."""


@dataclass(frozen=True)
class LongWindow:
    """Buckets and samples of several channels, in the channels' order."""

    whole: tuple[int, int]
    """First bucket that lies wholly in the window, and the one after the last in the tier."""
    ends: tuple[Samples, Samples]
    """Samples before and after those buckets, including one on each side of the window."""
    numbers: np.ndarray
    """Bucket numbers (b,)."""
    means: tuple[np.ndarray, ...]
    """Mean of each bucket (b,), one array per channel."""
    counts: tuple[np.ndarray, ...]
    """Known samples in each bucket (b,), one array per channel."""
    highest: list[float]
    """Maximum over the buckets, one per channel."""
    drawn: Samples
    """Samples drawn evenly over the window."""


ParallelRead = Callable[
    [Callable[[], LongWindow]], AbstractContextManager[Callable[[], "LongWindow | None"]]
]
"""Reads on another core: the function that it yields waits for the result; ``None``: failure."""


def read_window(reader: SessionReader, channels: Sequence[int], window: Window) -> LongWindow:
    """Read ``channels`` (ids) over ``window``."""
    begin = -(-window.start // BUCKET_NS)
    tier = reader.tier_columns(channels, begin - 1)
    size = int(np.searchsorted(np.array(tier.n), window.end // BUCKET_NS))
    behind = tier.n[size - 1] + 1 if size else begin
    first, last = within(reader, window.start, window.end)
    before, upto = around(reader, first, last)
    middle = reader.row_at("tick", begin * BUCKET_NS - 1)
    rest = reader.row_at("tick", behind * BUCKET_NS - 1)
    drawn = reader.ticks_at(channels, _drawn(first, last))
    return LongWindow(
        whole=(begin, behind),
        ends=(
            ticks_between(reader, channels, before, middle),
            ticks_between(reader, channels, rest, upto),
        ),
        numbers=np.array(tier.n[:size], dtype=np.int64),
        means=tuple(np.array(bucket_values[:size]) for bucket_values in tier.means),
        counts=tuple(np.array(bucket_values[:size]) for bucket_values in tier.counts),
        highest=reader.tier_highest(channels, begin, behind),
        drawn=(np.array(drawn.t, dtype=np.int64), [np.array(values) for values in drawn.values]),
    )


def read_halved(
    reader: SessionReader, channels: Sequence[int], window: Window, parallel: ParallelRead
) -> LongWindow:
    """Like :func:`read_window`, with the second half of ``channels`` read by ``parallel``."""
    half = len(channels) // 2
    with parallel(partial(_read_anew, reader.path, channels[half:], window)) as second_half:
        both = _joined(read_window(reader, channels[:half], window), second_half())
    return both or read_window(reader, channels, window)


def _read_anew(path: Path, channels: Sequence[int], window: Window) -> LongWindow:
    with SessionReader(path) as reader:
        return read_window(reader, channels, window)


def _joined(one: LongWindow, two: LongWindow | None) -> LongWindow | None:
    """Both halves in one; ``None`` where their samples differ, as more were recorded meanwhile."""
    if two is None or one.whole != two.whole or not _same_moments(one, two):
        return None
    return LongWindow(
        whole=one.whole,
        ends=(_adjoined(one.ends[0], two.ends[0]), _adjoined(one.ends[1], two.ends[1])),
        numbers=one.numbers,
        means=one.means + two.means,
        counts=one.counts + two.counts,
        highest=one.highest + two.highest,
        drawn=_adjoined(one.drawn, two.drawn),
    )


def _adjoined(one: Samples, two: Samples) -> Samples:
    return one[0], one[1] + two[1]


def _same_moments(one: LongWindow, two: LongWindow) -> bool:
    pairs = zip((*one.ends, one.drawn), (*two.ends, two.drawn), strict=True)
    moments = ((a, b) for (a, _), (b, _) in pairs)
    return all(np.array_equal(a, b) for a, b in ((one.numbers, two.numbers), *moments))


def _drawn(first: int, last: int) -> list[int]:
    """One random tick number from each of equal stretches of ``first < n <= last``."""
    generator = random.Random(0)  # noqa: S311 (not for secrets; seeded, so repeatable)
    count = min(_DRAWN, last - first)
    bounds = [first + (last - first) * place // count for place in range(count + 1)]
    return [generator.randint(low + 1, high) for low, high in pairwise(bounds)]
