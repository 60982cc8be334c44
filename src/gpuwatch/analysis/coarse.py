"""Long sessions read from their ten-second tier: for a screen, which cannot wait for every sample.

A day at 10 Hz is a hundredth of the rows. Steps are read as they are, so that step times, and with
them the verdicts, are the same; what is told of samples is of ten-second means, but for their
highest values, which the tier keeps.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import cast

from gpuwatch.analysis.cells import Read
from gpuwatch.analysis.read import read, read_with
from gpuwatch.analysis.statistics import Statistic
from gpuwatch.analysis.summary import Summary
from gpuwatch.metrics import Kind
from gpuwatch.models import JSON
from gpuwatch.session.reader import SessionReader
from gpuwatch.session.rows import StepRow
from gpuwatch.session.schema import TIER_SECONDS, TIER_STATS

MOST_TICKS = 20_000
"""A session of more samples is read from the tier: half an hour at 10 Hz."""
NOTE = (
    f"long: statistics of samples are of {TIER_SECONDS}-second means; step times are exact, and "
    "`gpuwatch compare --format table` reads every sample"
)
_BUCKET_NS = TIER_SECONDS * 1_000_000_000


class CoarseReader(SessionReader):
    """A session whose ticks are the means of its tier, each in the middle of its ten seconds.

    Its step lines are read once, those of ten seconds as one line that has every step's time.
    """

    _lines: list[StepRow] | None = None

    def all_ticks(self, channels: Sequence[int], after: int = -1) -> Iterator[tuple[JSON, ...]]:
        for bucket, *values in self.tier(channels, TIER_STATS.index("mean")):
            if bucket > after:
                yield (bucket, int(bucket) * _BUCKET_NS + _BUCKET_NS // 2, *values)

    def all_steps(self, after: int = -1) -> Iterator[StepRow]:
        if self._lines is None:
            self._lines = list(_folded(super().all_steps()))
        yield from (row for row in self._lines if row.n > after)


def _folded(rows: Iterable[StepRow]) -> Iterator[StepRow]:
    """Neighbouring lines of one kind and of ten seconds as one."""
    group: list[StepRow] = []
    for row in rows:
        # A line without times is of the gap before it: it stays alone.
        if group and not (
            row.seconds is not None
            and group[0].seconds is not None
            and row.warmup is group[0].warmup
            and row.t - group[0].t < _BUCKET_NS
        ):
            yield _as_one(group)
            group = []
        group.append(row)
    if group:
        yield _as_one(group)


def _as_one(rows: Sequence[StepRow]) -> StepRow:
    if len(rows) == 1:
        return rows[0]
    phases: dict[str, float] = {}
    for row in rows:
        for name, value in row.phases.items():
            phases[name] = phases.get(name, 0.0) + value
    losses = [value for row in (rows[0], rows[-1]) for value in row.loss or ()]
    return replace(
        rows[-1],
        count=sum(row.count for row in rows),
        samples=_sum([row.samples for row in rows]),
        # Eight bytes a step; whoever reads it goes through it as through a tuple.
        seconds=cast(
            "tuple[float, ...]", array("d", chain.from_iterable(row.seconds or () for row in rows))
        ),
        loss=(losses[0], losses[-1]) if losses else None,
        phases=phases,
        partial=tuple(number for row in rows for number in row.partial),
        flop=_sum([row.flop for row in rows]),
        bytes=_sum([row.bytes for row in rows]),
    )


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def read_fast(path: Path) -> Read:
    """One session, from its tier where it is long; its notes say so.

    Raises:
        NotASession, NewerSchema, StorageError: it cannot be read.
    """
    with CoarseReader(path) as reader:
        last = reader.last_tick()
        if last is not None and last[0] >= MOST_TICKS:
            found = read_with(reader)
            return replace(found, summary=_with_highest(found.summary, reader))
    return read(path)


def _with_highest(summary: Summary, reader: SessionReader) -> Summary:
    """The highest samples in place of the highest means, of whole buckets inside the window."""
    gauges = [each for each in reader.channels() if each.kind == Kind.GAUGE.value]
    highest: list[float | None] = [None] * len(gauges)
    first, last = summary.window.start / _BUCKET_NS, summary.window.end / _BUCKET_NS
    for bucket, *values in reader.tier([each.id for each in gauges], TIER_STATS.index("max")):
        if first <= bucket and bucket + 1 <= last:
            for at, value in enumerate(values):
                if value is not None:
                    known = highest[at]
                    highest[at] = value if known is None else max(known, value)
    used = {device.id for device in summary.devices if device.used}
    of_device: dict[tuple[str, str], float] = {}
    of_metric: dict[str, float] = {}
    for channel, value in zip(gauges, highest, strict=True):
        if value is None:
            continue
        of_device[channel.device, channel.metric] = value
        if channel.device in used:
            of_metric[channel.metric] = max(value, of_metric.get(channel.metric, value))
    return replace(
        summary,
        metrics={
            name: _raised(each, of_metric.get(name)) for name, each in summary.metrics.items()
        },
        devices=tuple(
            replace(
                device,
                metrics={
                    name: _raised(each, of_device.get((device.id, name)))
                    for name, each in device.metrics.items()
                },
            )
            for device in summary.devices
        ),
        notes=(*summary.notes, NOTE),
    )


def _raised(statistic: Statistic, highest: float | None) -> Statistic:
    if highest is None or statistic.max is None:
        return statistic
    return replace(statistic, max=max(statistic.max, highest))
