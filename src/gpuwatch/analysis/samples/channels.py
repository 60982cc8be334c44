"""The samples of single channels, and what they add up to over a window."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from gpuwatch.analysis.samples.window import Window
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.session.rows import ChannelRow

if TYPE_CHECKING:
    import numpy as np

FULL = 0.9
"""Share of a window that samples must cover for their integral to stand for all of it."""


class Pairs(Sequence["tuple[int, float]"]):
    """When, and what: sixteen bytes each."""

    def __init__(self, t: np.ndarray, values: np.ndarray) -> None:
        self.t, self.values = t, values

    def __len__(self) -> int:
        return int(self.t.size)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return Pairs(self.t[at], self.values[at])
        return int(self.t[at]), float(self.values[at])

    def __iter__(self) -> Iterator[tuple[int, float]]:
        return zip(self.t.tolist(), self.values.tolist(), strict=True)


class Means(Pairs):
    """Means of many samples each, at the last of these; in order."""

    def __init__(
        self, t: np.ndarray, values: np.ndarray, reach: np.ndarray, whole: np.ndarray
    ) -> None:
        """``reach``: nanoseconds up to ``t`` that the samples cover; ``whole``: of ten seconds."""
        super().__init__(t, values)
        self.reach, self.whole = reach, whole


@dataclass(frozen=True)
class Samples:
    """One channel's known values, in order: when (nanoseconds since the session's start), what."""

    channel: ChannelRow
    values: Sequence[tuple[int, float]]


@dataclass(frozen=True)
class Integral:
    total: float
    """Value times seconds, over the part of the window that is covered."""
    coverage: float
    """Share of the window that the samples cover, 0 to 1."""


def arrays(values: Sequence[tuple[int, float]]) -> tuple[np.ndarray, np.ndarray]:
    """When and what, as arrays of integers and doubles."""
    # Here and not above: whoever takes but FULL of this module loads no numpy.
    import numpy as np

    if isinstance(values, Pairs):
        return values.t, values.values
    t, what = zip(*values, strict=True) if values else ((), ())
    return np.array(t, dtype=np.int64), np.array(what, dtype=float)


def middle(values: np.ndarray) -> float:
    """Their median."""
    import numpy as np

    return float(np.quantile(values, 0.5))  # np.median loads all of numpy.ma


def integral(values: Sequence[tuple[int, float]], window: Window) -> Integral:
    """Integrate a rate over ``window``.

    A value is the mean since the one before it, as GPM, DCGM and RAPL give it. It covers at most
    twice the median distance between values, or what is told of a mean: what lies further back is
    a gap, not covered.
    """
    import numpy as np

    if window.end <= window.start or len(values) < 2:
        return Integral(0.0, 0.0)
    t, what = arrays(values)
    reach = values.reach[1:] if isinstance(values, Means) else 2 * middle(np.diff(t))
    start = np.maximum(np.maximum(window.start, t[:-1]), t[1:] - reach)
    covered = np.maximum(0.0, np.minimum(window.end, t[1:]) - start)
    total = float(np.sum(what[1:] * covered) / 1e9)
    return Integral(total, float(covered.sum()) / (window.end - window.start))


def added(values: Sequence[tuple[int, float]], window: Window) -> Integral:
    """What a counter added in ``window``, interpolated linearly at both ends.

    The driver renews a counter more seldom than it is read: between two renewals the samples repeat
    the old value, and only the first sample of each value tells when it was renewed. A counter that
    goes backwards was reset, and covers nothing.
    """
    import numpy as np

    t, what = arrays(values)
    if window.end <= window.start or not t.size:
        return Integral(0.0, 0.0)
    renewed = np.concatenate([[0], 1 + np.flatnonzero(np.diff(what))])
    if renewed.size == 1 and t[-1] > t[0]:
        renewed = np.array([0, t.size - 1])  # a counter that stood still all the time
    t, rise = t[renewed], np.diff(what[renewed])
    if (rise < 0).any():
        return Integral(0.0, 0.0)
    span = np.minimum(window.end, t[1:]) - np.maximum(window.start, t[:-1])
    inside = span > 0
    span = span[inside]
    total = float(np.sum(rise[inside] * span / np.diff(t)[inside]))
    return Integral(total, float(span.sum()) / (window.end - window.start))
