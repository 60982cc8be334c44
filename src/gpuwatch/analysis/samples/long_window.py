"""What the tier and some samples of a long session say of its channels, over one window."""

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
"""Samples of each channel that quantiles are of: one in ten seconds of a day."""

Samples = tuple[np.ndarray, list[np.ndarray]]
"""Moments in nanoseconds, and the values of each channel at them."""


@dataclass(frozen=True)
class LongWindow:
    """Of several channels in their order."""

    whole: tuple[int, int]
    """The buckets that lie in the window and are in the tier: the first, and the one behind."""
    ends: tuple[Samples, Samples]
    """Samples before the first of them and behind the last, with one on each side of the window."""
    numbers: np.ndarray
    """Of the buckets."""
    means: tuple[np.ndarray, ...]
    counts: tuple[np.ndarray, ...]
    highest: list[float]
    drawn: Samples


Aside = Callable[
    [Callable[[], LongWindow]], AbstractContextManager[Callable[[], "LongWindow | None"]]
]
"""Has something read on another core: what it gives waits for that; ``None`` where it failed."""


def read_window(reader: SessionReader, channels: Sequence[int], window: Window) -> LongWindow:
    """Read ``channels``."""
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
        means=tuple(np.array(each[:size]) for each in tier.means),
        counts=tuple(np.array(each[:size]) for each in tier.counts),
        highest=reader.tier_highest(channels, begin, behind),
        drawn=(np.array(drawn.t, dtype=np.int64), [np.array(each) for each in drawn.values]),
    )


def read_halved(
    reader: SessionReader, channels: Sequence[int], window: Window, aside: Aside
) -> LongWindow:
    """Read ``channels``, the second half of them ``aside``."""
    half = len(channels) // 2
    with aside(partial(_read_anew, reader.path, channels[half:], window)) as theirs:
        both = _joined(read_window(reader, channels[:half], window), theirs())
    return both or read_window(reader, channels, window)


def _read_anew(path: Path, channels: Sequence[int], window: Window) -> LongWindow:
    with SessionReader(path) as reader:
        return read_window(reader, channels, window)


def _joined(one: LongWindow, two: LongWindow | None) -> LongWindow | None:
    """Both; ``None`` where they are not of the same samples, as more were recorded in between."""
    if two is None or one.whole != two.whole or not _same_moments(one, two):
        return None
    return LongWindow(
        whole=one.whole,
        ends=(_beside(one.ends[0], two.ends[0]), _beside(one.ends[1], two.ends[1])),
        numbers=one.numbers,
        means=one.means + two.means,
        counts=one.counts + two.counts,
        highest=one.highest + two.highest,
        drawn=_beside(one.drawn, two.drawn),
    )


def _beside(one: Samples, two: Samples) -> Samples:
    return one[0], one[1] + two[1]


def _same_moments(one: LongWindow, two: LongWindow) -> bool:
    pairs = zip((*one.ends, one.drawn), (*two.ends, two.drawn), strict=True)
    moments = ((a, b) for (a, _), (b, _) in pairs)
    return all(np.array_equal(a, b) for a, b in ((one.numbers, two.numbers), *moments))


def _drawn(first: int, last: int) -> list[int]:
    """One number of each of equal stretches of those behind ``first`` and up to ``last``."""
    some = random.Random(0)  # noqa: S311 (no secret; the same for the same session)
    count = min(_DRAWN, last - first)
    bounds = [first + (last - first) * place // count for place in range(count + 1)]
    return [some.randint(low + 1, high) for low, high in pairwise(bounds)]
