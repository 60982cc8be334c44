"""State of one reading of one GPU, and what a GPU's threads share."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.telemetry.base import Change, Event, Value
from gpuwatch.telemetry.nvml.errors import LOST, describe
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


def together(
    nvml: Any, handle: Any, probes: Sequence[Probe | None], watched: Callable[..., Any]
) -> dict[int, Any]:
    """NVML's answers by field, if several due fields can be read by one call.

    ``watched(name, function, *arguments)`` makes the call. Raises ``GpuLost``; after any other
    failure each field is called on its own.
    """
    now = time.monotonic()
    ways = (probe.reading.ways[probe.way] for probe in probes if probe and probe.next_at <= now)
    numbers = [way.field.number for way in ways if way.field is not None]
    if len(numbers) < 2:
        return {}
    name = f"nvmlDeviceGetFieldValues {', '.join(map(str, numbers))}"
    try:
        answers = watched(name, nvml.nvmlDeviceGetFieldValues, handle, numbers)
    except nvml.NVMLError as error:
        if error.value in LOST:
            raise GpuLost(error.value) from error
        return {}
    return {int(answer.fieldId): answer for answer in answers}
