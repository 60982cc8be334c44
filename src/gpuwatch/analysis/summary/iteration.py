"""The length of an iteration of a program that reports no steps, where telemetry tells it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gpuwatch.analysis.samples.rhythm import MOST, period_of
from gpuwatch.analysis.samples.source import select_channels
from gpuwatch.core import units
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import Kind, Method, label
from gpuwatch.core.models import JSON, mapping
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.rows import ChannelRow

_METRICS = ("hw.gpu.power", "hw.gpu.utilization", "process.cpu.time")
"""In the order in which they are looked at: the first with a plain period decides."""


@dataclass(frozen=True)
class Iteration:
    """About the length of an iteration, in seconds, with a 95 % interval of the rhythm's period."""

    seconds: float
    low: float
    high: float
    method: Method
    source: str

    @property
    def text(self) -> str:
        """A sentence."""
        seconds, low, high = map(units.milliseconds, (self.seconds, self.low, self.high))
        return (
            f"iteration about {seconds} ({low} to {high}; {self.method.value}, {self.source}): the "
            "program reports no steps, and one iteration may be several of these periods, or a part"
        )


def iteration_of(reader: SessionReader, meta: Mapping[str, JSON]) -> Iteration | None:
    """The plain period of the newest samples of a command without steps; else ``None``.

    Of several GPUs the first that is used is looked at: each look can err.
    """
    if mapping(meta.get("workload")).get("kind") != "command":
        return None
    channels = [each for metric in _METRICS if (each := _first(reader, metric)) is not None]
    read = reader.samples([channel.id for channel in channels])
    t = np.array(read.t[-MOST:])
    for channel, column in zip(channels, read.values, strict=True):
        values = np.array(column[-MOST:])
        known = ~np.isnan(values)
        seconds, amounts = t[known] / 1e9, values[known]
        if channel.kind == Kind.COUNTER.value:
            seconds, amounts = seconds[1:], np.diff(amounts) / np.diff(seconds)
        period = period_of(seconds, amounts)
        if period is not None:
            source = f"from the rhythm of {label(channel.metric)}"
            return Iteration(period.seconds, period.low, period.high, Method.BOUND, source)
    return None


def _first(reader: SessionReader, metric: str) -> ChannelRow | None:
    used = [device.id for device in reader.devices() if device.used is not False]
    found = select_channels(reader, {metric}, used)
    return min(found, key=lambda channel: used.index(channel.device), default=None)
