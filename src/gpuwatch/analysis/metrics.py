"""The statistics of every metric of a session, over a window."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from gpuwatch import units
from gpuwatch.analysis.cpu_time import MOST_SECONDS, TICK_SECONDS
from gpuwatch.analysis.program import uncounted
from gpuwatch.analysis.rates import bytes_of, flop_of, intervals, rate_series, samples_of
from gpuwatch.analysis.samples import FULL, integral
from gpuwatch.analysis.statistics import Statistic, describe, unavailable
from gpuwatch.analysis.window import Window
from gpuwatch.metrics import CATALOGUE, DERIVED, Kind, Method
from gpuwatch.models import JSON, mapping
from gpuwatch.session.reader import SessionReader
from gpuwatch.session.rows import ChannelRow, StepRow

_Tick = tuple[int, Sequence[float | None]]
"""When, in nanoseconds since the session's start, and the values of the channels asked for."""


@dataclass(frozen=True)
class _Column:
    """A channel's samples in a window."""

    values: Sequence[float | None]
    coverage: float | None
    """Share of the window that they cover; of a gauge."""


CPU_TIME = "process.cpu.time"
_SPAN = ", from the start of the first timed step to the end of the last"
_MOST_NAMED = 4
_NO_STEPS = "the workload reported no steps"
_IMPORTED = "an imported profile holds no samples and no steps"


def device_statistics(
    reader: SessionReader, device: str, window: Window
) -> Mapping[str, Statistic]:
    """Every sampled metric of one device."""
    channels = [channel for channel in reader.channels() if channel.device == device]
    columns = _columns(reader, channels, window)
    return {channel.metric: _describe([channel], [columns[channel.id]]) for channel in channels}


def session_statistics(
    reader: SessionReader,
    window: Window,
    steps: Sequence[StepRow],
    count: Mapping[str, JSON],
) -> Mapping[str, Statistic]:
    """Every metric of the catalogue, pooled over the devices that the run used.

    Of several devices a gauge's samples are pooled and a counter's values added up.
    """
    if mapping(reader.meta().get("workload")).get("kind") == "import":
        return {name: unavailable(each.unit, "", _IMPORTED) for name, each in CATALOGUE.items()}
    used = {device.id for device in reader.devices() if device.used}
    channels = [channel for channel in reader.channels() if channel.device in used]
    columns = _columns(reader, channels, window)
    missing = _missing_reason(reader)
    found: dict[str, Statistic] = {}
    for name, metric in CATALOGUE.items():
        if name in DERIVED:
            found[name] = _derived(reader, name, steps, count)
            continue
        of_metric = [channel for channel in channels if channel.metric == name]
        if not of_metric:
            found[name] = unavailable(metric.unit, "", missing(name))
            continue
        described = _describe(of_metric, [columns[channel.id] for channel in of_metric])
        found[name] = _resolved(described) if name == CPU_TIME else described
    return found


def _columns(
    reader: SessionReader, channels: Sequence[ChannelRow], window: Window
) -> dict[int, _Column]:
    """The samples of each channel within the window; a counter's also at its two ends.

    There they are interpolated linearly between the samples on both sides, so that what a counter
    added is of the window and not of the samples that happen to lie in it.
    """
    ids = [channel.id for channel in channels]
    before: _Tick | None = None
    after: _Tick | None = None
    inside: list[_Tick] = []
    for _, t, *values in reader.all_ticks(ids):
        if t < window.start:
            before = (t, values)
        elif t <= window.end:
            inside.append((t, values))
        elif after is None:
            after = (t, values)
    found: dict[int, _Column] = {}
    around = [each for each in (before, *inside, after) if each is not None]
    for place, channel in enumerate(channels):
        column = [values[place] for _, values in inside]
        coverage = None
        if channel.kind == Kind.COUNTER.value:
            first = inside[0] if inside else after
            last = inside[-1] if inside else before
            column.insert(0, _at(window.start, before, first, place))
            column.append(_at(window.end, last, after, place))
        else:
            timed = [(t, values[place]) for t, values in around]
            known = [(t, value) for t, value in timed if value is not None]
            coverage = integral(known, window).coverage
        found[channel.id] = _Column(column, coverage)
    return found


def _at(t: int, left: _Tick | None, right: _Tick | None, place: int) -> float | None:
    """A channel's value at ``t``, between two samples; ``None`` where one is missing."""
    if left is None or right is None or right[0] <= left[0]:
        return None
    low, high = left[1][place], right[1][place]
    if low is None or high is None:
        return None
    return float(low + (high - low) * (t - left[0]) / (right[0] - left[0]))


def _describe(channels: Sequence[ChannelRow], columns: Sequence[_Column]) -> Statistic:
    first = channels[0]
    reason = "no sample fell into the window"
    if first.kind == Kind.COUNTER.value:
        values = _added([_from_start(column.values) for column in columns])
        if sum(value is not None for value in values) < 2:
            values, reason = [], "a difference takes two samples, and the window has fewer"
    else:
        values = [value for column in columns for value in column.values]
    sampled = next((c for c in channels if c.sampled_as is not Method.UNAVAILABLE), first)
    described = describe(
        values,
        unit=first.unit,
        method=sampled.sampled_as,
        source=sampled.source,
        reason=first.reason or reason,
    )
    known = [column.coverage for column in columns if column.coverage is not None]
    if not described.count or not known:
        return described
    return replace(described, coverage=min(known))


def partly_sampled(metrics: Mapping[str, Statistic], window: Window) -> list[str]:
    """What a reader must know of means of GPU metrics that are not over all of the timed steps."""
    if window.kind != "timed steps":
        return []
    by_share: dict[str, list[str]] = {}
    for name, each in metrics.items():
        if name.startswith("hw.gpu.") and each.coverage is not None and each.coverage < FULL:
            by_share.setdefault(units.percent(each.coverage), []).append(name)
    return [
        f"sampled over only {share} of the timed steps, so that statistics are of that part: "
        + ", ".join(names[:_MOST_NAMED])
        + (f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else "")
        for share, names in by_share.items()
    ]


def _from_start(column: Sequence[float | None]) -> list[float | None]:
    start = next((value for value in column if value is not None), None)
    if start is None:
        return list(column)
    return [None if value is None else value - start for value in column]


def _added(columns: Sequence[Sequence[float | None]]) -> list[float | None]:
    """Sum across devices, tick by tick; unknown where any device is."""
    return [
        None if any(value is None for value in row) else sum(value or 0 for value in row)
        for row in zip(*columns, strict=True)
    ]


def _derived(
    reader: SessionReader,
    name: str,
    steps: Sequence[StepRow],
    count: Mapping[str, JSON],
) -> Statistic:
    unit = CATALOGUE[name].unit
    work, source, missing = _work(name, count)
    if not steps:
        return unavailable(unit, source, _NO_STEPS)
    # Rates of steps are known to the step: their window does not depend on samples being in it.
    timed = [row for row in steps if not row.warmup] or steps
    spans = intervals(timed)
    start, end = spans[0][0], spans[-1][1]
    if end <= start:
        return unavailable(unit, source, "the steps' times are not known")
    inside = [row[1] for row in reader.all_ticks(()) if start < row[1] < end]
    edges = [start, *inside, end]
    rates = rate_series(timed, work, edges)
    described = describe(rates, unit=unit, method=Method.COUNTED, source=source, reason=missing)
    # Ticks are not equally far apart at the window's ends: the mean is work over time.
    known = [
        (rate, after - before)
        for rate, before, after in zip(rates, edges, edges[1:], strict=False)
        if rate is not None
    ]
    if not known:
        return described
    total = sum(span for _, span in known)
    return replace(described, mean=sum(rate * span for rate, span in known) / total)


def _work(
    name: str, count: Mapping[str, JSON]
) -> tuple[Callable[[StepRow], float | None], str, str]:
    """The work of a step line for a derived metric, its source, and why it may be unknown."""
    if name == "gpuwatch.flop.rate":
        return flop_of(count), f"FLOP per step x step rate{_SPAN}", uncounted(count, "FLOP")
    if name == "gpuwatch.bytes.rate":
        source = f"algorithmic bytes per step x step rate{_SPAN}"
        return bytes_of(count), source, uncounted(count, "bytes")
    return samples_of, "samples / step time", "the workload reported no samples"


def _resolved(time: Statistic) -> Statistic:
    """``process.cpu.time``, a bound where the window added less than the account resolves."""
    if time.max is None or time.max >= TICK_SECONDS:
        return time
    most = MOST_SECONDS
    source = f"{time.source}; at most: it counts in ticks of {TICK_SECONDS * 1e3:.0f} ms"
    return replace(
        time, method=Method.BOUND, source=source, mean=most, p50=most, p95=most, max=most
    )


def _missing_reason(reader: SessionReader) -> Callable[[str], str]:
    host = reader.facts().get("host", {})
    used = any(device.kind == "gpu" and device.used for device in reader.devices())
    no_gpu = "not sampled" if used else str(host.get("gpu.unavailable") or "the run used no GPU")

    def reason(name: str) -> str:
        if name.startswith(("hw.gpu.", "process.gpu.")):
            return no_gpu
        if name.startswith("process."):
            return "the machine alone was recorded, without a workload"
        if name.startswith("container."):
            return "only of Docker's containers is the control group read"
        return "not sampled"

    return reason
