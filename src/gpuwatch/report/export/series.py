"""A session's time series: every tick, every channel, in base units."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from gpuwatch.analysis.hardware.program import unknown_rate
from gpuwatch.analysis.samples.rates import Span, StepLine, spans, spread, works
from gpuwatch.analysis.samples.step_lines import no_rates, no_steps
from gpuwatch.core.metrics import CATALOGUE, DERIVED, Method
from gpuwatch.core.models import mapping
from gpuwatch.report.export.table import Column, Export, Row
from gpuwatch.session.reading.reader import SessionReader

_Work = Callable[[StepLine], float | None]

SECONDS = Column("seconds", unit="s", key=True)
"""Time since the session's start."""


def series(reader: SessionReader) -> Export:
    """``seconds``, then a column ``DEVICE METRIC [UNIT]`` for each channel and each derived rate.

    A derived rate at a tick covers the time since the previous tick. Rows are read in chunks.
    """
    sampled = [
        _channel(c.device, c.metric, c.unit, c.sampled_as, c.source, c.reason)
        for c in reader.channels()
    ]
    timed = (row for row in reader.all_steps() if not row.warmup)
    doubt = no_rates(reader.meta(), timed)
    columns = (SECONDS, *sampled, *(_derived(reader, name, doubt) for name in DERIVED))
    return Export("series", columns, lambda: _batches(reader, doubt))


def _channel(
    device: str, metric: str, unit: str, method: Method, source: str, reason: str | None
) -> Column:
    return Column(
        f"{device} {metric} [{unit}]",
        unit=unit,
        device=device,
        metric=metric,
        method=method.value,
        source=source,
        reason=reason,
    )


def _derived(reader: SessionReader, name: str, doubt: str | None) -> Column:
    meta = reader.meta()
    count = mapping(meta.get("count"))
    work, source = works(count)[name]
    if reader.step_count() is None:
        reason: str | None = no_steps(meta)
    else:
        known = any(work(row) is not None for row in reader.all_steps())
        reason = doubt if known else unknown_rate(name, count)
    method = Method.COUNTED if reason is None else Method.UNAVAILABLE
    return _channel("workload", name, CATALOGUE[name].unit, method, source, reason)


def _batches(reader: SessionReader, doubt: str | None) -> Iterator[Sequence[Row]]:
    channels = [channel.id for channel in reader.channels()]
    count = mapping(reader.meta().get("count"))
    rates = _Rates(
        reader, [(lambda _: None) if doubt else work for work, _ in works(count).values()]
    )
    for piece in reader.sample_pieces(channels):
        columns = [[_known(value) for value in each] for each in piece.values]
        derived = rates.up_to(piece.t)
        yield [(t / 1e9, *values) for t, *values in zip(piece.t, *columns, *derived, strict=True)]


def _known(value: float) -> float | None:
    if value != value:
        return None
    return int(value) if value.is_integer() else value


class _Rates:
    """Derived rates between ticks; holds only the steps of one chunk in memory."""

    def __init__(self, reader: SessionReader, works: Sequence[_Work]) -> None:
        self._spans = spans(reader.all_steps())
        self._held: list[Span] = []
        self._works = works
        self._last: int | None = None

    def up_to(self, times: Sequence[int]) -> list[list[float | None]]:
        """For each work its rate up to each of ``times``, in units per second.

        ``times`` are in ns and must follow those of the previous call. Returns one list per work,
        each as long as ``times``; the very first rate is ``None``.
        """
        first: list[float | None] = [None] if self._last is None else []
        edges = [*times] if self._last is None else [self._last, *times]
        self._last = edges[-1]
        while not self._held or self._held[-1][0] < self._last:
            following = next(self._spans, None)
            if following is None:
                break
            self._held.append(following)
        rates = [[*first, *spread(self._held, work, edges)] for work in self._works]
        self._held = [span for span in self._held if span[1] > self._last]
        return rates
