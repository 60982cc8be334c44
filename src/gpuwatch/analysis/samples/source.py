"""The steps and samples of a session, as its figures are made of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from gpuwatch.analysis.samples.channels import Pairs, Samples, integral
from gpuwatch.analysis.samples.rates import StepLine
from gpuwatch.analysis.samples.window import Window, few_sample_times
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import Kind
from gpuwatch.core.units import NS
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.rows import ChannelRow
from gpuwatch.session.schema import BUCKET_SECONDS

MOST_RATES = 20_000
"""Samples in a window from which on rates of steps are averaged over ten seconds."""
MOST_LINES = 20_000
"""Step lines from which on those of ten seconds are read together."""
_BUCKET_NS = BUCKET_SECONDS * NS
_NEAR_NS = 10 * NS
"""Before and behind a window every channel has a value within this time, also those that are read
less often than every tick."""
_RATES = f"long: step rates are averages over {BUCKET_SECONDS} s; their mean is exact"


@dataclass(frozen=True)
class Column:
    """A channel's samples in a window; for a counter also its values at the two ends.

    The end values are interpolated linearly, so that a counter's increase is that of the window
    and not of the samples that happen to lie in it.
    """

    values: np.ndarray
    """Shape (n,), in order, NaN where unknown."""
    coverage: float
    """Share of the window that the samples cover, of a gauge with the one behind its end."""
    mean: float | None
    """As of :class:`Integral`."""


class Source:
    """Reads a session: every sample and every step."""

    def __init__(self, reader: SessionReader) -> None:
        self._reader = reader
        self._many = reader.last_step() >= MOST_LINES
        self._steps: Sequence[StepLine] | None = None
        self._averaged = False

    def steps(self) -> Sequence[StepLine]:
        """All step lines, in order; of very many those of ten seconds together."""
        if self._steps is None:
            reader = self._reader
            self._steps = reader.steps_together() if self._many else reader.some_steps()
        return self._steps

    def sample_times(self, span: tuple[int, int] | None) -> Sequence[int]:
        """See :func:`few_sample_times`."""
        return few_sample_times(self._reader, span)

    def edges(self, start: int, end: int) -> list[int]:
        """Times between ``start`` and ``end`` in nanoseconds that divide a series of rates: of the
        samples; where these or the step lines are many, of every ten seconds that have any."""
        times = self._reader.samples((), start, end - 1).t
        if not self._many and len(times) <= MOST_RATES:
            return times.tolist()
        self._averaged = True
        # Not every ten seconds: of a damaged file the last step may end in 292 years.
        ends = [line.t for line in self.steps()]
        marks = np.unique(np.array([*times, *ends], np.int64) // _BUCKET_NS) * _BUCKET_NS
        return [int(mark) for mark in marks if start < mark < end]

    def columns(self, channels: Sequence[ChannelRow], window: Window) -> dict[int, Column]:
        """The samples of these channels in ``window``, by channel id."""
        t, values = _around(self._reader, channels, window)
        return {
            channel.id: _column(channel, t, of_channel, window)
            for channel, of_channel in zip(channels, values, strict=True)
        }

    def samples(
        self, metrics: Collection[str], devices: Collection[str], window: Window
    ) -> tuple[Samples, ...]:
        """The known samples of every channel of these metrics on these devices, in ``window`` and
        a little around it."""
        channels = select_channels(self._reader, metrics, devices)
        t, values = _around(self._reader, channels, window)
        return tuple(
            Samples(channel, _known(t, each))
            for channel, each in zip(channels, values, strict=True)
        )

    def notes(self) -> tuple[str, ...]:
        """How the figures were read, as far as it affects their accuracy."""
        return (_RATES,) if self._averaged else ()


def select_channels(
    reader: SessionReader, metrics: Collection[str], devices: Collection[str]
) -> list[ChannelRow]:
    """The channels of these metrics on these devices."""
    return [c for c in reader.channels() if c.metric in metrics and c.device in devices]


def _around(
    reader: SessionReader, channels: Sequence[ChannelRow], window: Window
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Times (n,) in nanoseconds of the samples in the window and near it, and the values (n,) of
    each channel."""
    ids = [channel.id for channel in channels]
    read = reader.samples(ids, window.start - _NEAR_NS - 1, window.end + _NEAR_NS)
    return np.asarray(read.t), [np.asarray(values) for values in read.values]


def _known(t: np.ndarray, values: np.ndarray) -> Pairs:
    """The ``values`` (n,) that are not NaN, with their times ``t`` (n,)."""
    unknown = np.isnan(values)
    return Pairs(t[~unknown], values[~unknown]) if unknown.any() else Pairs(t, values)


def _column(channel: ChannelRow, t: np.ndarray, values: np.ndarray, window: Window) -> Column:
    """The column of ``values`` (n,) taken at ``t`` (n,), which reach beyond the window."""
    first, behind = np.searchsorted(t, window.start), np.searchsorted(t, window.end, "right")
    if channel.kind != Kind.COUNTER.value:
        total = integral(_known(t, values), window)
        # A rate is of the time since the sample before: that of the first is partly of before.
        cut = channel.unit.endswith("/s") and 0 < first < behind - 1
        return Column(values[first + cut : behind], total.coverage, total.mean)
    moments = np.concatenate([[window.start], t[first:behind], [window.end]])
    readings, coverage = _known(t, values), 0.0
    between = np.full(moments.size, np.nan)
    if readings and window.end > window.start:
        # Some counters are read with every other sample, or less often.
        between = np.interp(moments, readings.t, readings.values, left=np.nan, right=np.nan)
        known = min(window.end, readings.t[-1]) - max(window.start, readings.t[0])
        coverage = max(0.0, float(known) / (window.end - window.start))
    return Column(between, coverage, None)
