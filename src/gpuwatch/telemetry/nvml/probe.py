"""What is known of one reading of one GPU, and what a GPU's threads tell each other."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.telemetry.base import Change, Event
from gpuwatch.telemetry.nvml.errors import LOST, describe
from gpuwatch.telemetry.nvml.fields import Numbers, Reading

FRESH_S = 3.0
"""Age in seconds up to which a value that is read each second is given, and silence after which a
call is reported."""


class GpuLost(Exception):
    """A call answered that the whole GPU, or the driver under it, is gone."""

    def __init__(self, code: int) -> None:
        super().__init__(describe(code).reason)
        self.code = code


@dataclass
class Journal:
    """Changes and events of a source since somebody asked; appended to by several threads."""

    changes: deque[Change]
    events: deque[Event]


class Probe:
    """One reading of one GPU: the way that works, the last values, the next time to try."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.watch = reading.watch() if reading.watch is not None else None
        self.fresh_s = FRESH_S + max(0.0, reading.every_s - 1.0) if reading.slow else 0.0
        """Age in seconds up to which a slow value is given; 0 for one that is read each time."""
        self.values: Numbers = ()
        self.at = -math.inf
        self.reset()

    def reset(self) -> None:
        """Forget what was found out, as after a loss."""
        self.way = 0
        self.worked = False
        self.next_at = -math.inf

    @property
    def source(self) -> str:
        """The way that works, or the last that was tried."""
        ways = self.reading.ways
        return ways[min(self.way, len(ways) - 1)].source


def together(
    nvml: Any, handle: Any, probes: Sequence[Probe | None], watched: Callable[..., Any]
) -> dict[int, Any]:
    """NVML's answers by field, where several that are due can be had by one call.

    ``watched(name, function, *arguments)`` makes it. Raises ``GpuLost``; any other failure is left
    to the calls for each field.
    """
    now = time.monotonic()
    ways = (each.reading.ways[each.way] for each in probes if each and each.next_at <= now)
    numbers = [way.field.number for way in ways if way.field is not None]
    if len(numbers) < 2:
        return {}
    name = f"nvmlDeviceGetFieldValues {', '.join(map(str, numbers))}"
    try:
        given = watched(name, nvml.nvmlDeviceGetFieldValues, handle, numbers)
    except nvml.NVMLError as error:
        if error.value in LOST:
            raise GpuLost(error.value) from error
        return {}
    return {int(answer.fieldId): answer for answer in given}
