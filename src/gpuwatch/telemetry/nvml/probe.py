"""State of one reading of one GPU, and what a GPU's threads share."""

from __future__ import annotations

import math
from collections import deque

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.telemetry.base import Change, Event, Value
from gpuwatch.telemetry.nvml.errors import describe
from gpuwatch.telemetry.nvml.fields import Reading

FRESH_S = 3.0
"""Maximum age, in seconds, of a value that is read once a second; also the silence after which a
hanging call is reported."""


class GpuLost(Exception):
    """A call reported that the whole GPU, or its driver, is gone."""

    def __init__(self, code: int) -> None:
        super().__init__(describe(code).reason)
        self.code = code


@dataclass
class Journal:
    """Changes and events of a source since the last drain; several threads append to it."""

    changes: deque[Change]
    events: deque[Event]


class Probe:
    """One reading of one GPU: the call that works, the last values, the time of the next try."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.watch = reading.watch() if reading.watch is not None else None
        self.fresh_s = FRESH_S + max(0.0, reading.every_s - 1.0) if reading.slow else 0.0
        """Maximum age in seconds of a slow value; 0 for one that is read at every sample."""
        self.values: tuple[Value, ...] = ()
        self.at = -math.inf
        self.reset()

    def reset(self) -> None:
        """Start over, as after a loss."""
        self.way = 0
        self.worked = False
        self.next_at = -math.inf

    @property
    def source(self) -> str:
        """The call that works, or the last one tried."""
        ways = self.reading.ways
        return ways[min(self.way, len(ways) - 1)].source
