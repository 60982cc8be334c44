"""Some of the program's own steps under ``torch.profiler``, if that was asked for.

They are in no statistic, and neither is the one after them, in which the trace is read. Where it is
known how many steps are to come, they are the last; otherwise they follow the first timed ones. In
all ranks they are the same, and the first rank traces them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

from .channel import world

TIMED = 20
"""Timed steps before them, where nobody told how many are to come."""
_OVER = "the program ended after {} steps, and those after {} were to be profiled"
_DURING = "the program ended while its steps were profiled"
_NOTE = "steps {} to {} of the program, which are in no other figure"


class Profiling:
    """Which steps are profiled, and what came out."""

    def __init__(self, steps: int, first: int, tell: Callable[..., None]) -> None:
        """``steps``: how many; ``first``: steps of the program that are never timed; ``tell`` takes
        an event and its keys."""
        self.on = False
        """Whether the step that runs now is in no statistic."""
        self._steps = steps
        self._first = first
        self._tell = tell
        self._before = first + TIMED
        """Steps before those that are profiled."""
        self._began: int | None = None
        """As many, once they are over."""
        self._number = 0
        self._since = 0.0
        """When the first steps were over."""
        self._seconds = 0.0
        """Of a step before, on average."""
        self._on_gpu = False
        self._tracing: Any = None
        self._told = False

    def plan(self, total: int) -> int:
        """There are so many steps in all. Returns how many come before those to be profiled."""
        if self._began is None:
            self._before = max(self._first + 1, total - self._steps - 1)
        return self._before

    def end_step(self, number: int, *, on_gpu: bool) -> bool:
        """A step ended; returns whether it is in no statistic."""
        was, now = self.on, time.perf_counter()
        self._number, self._on_gpu = number, on_gpu
        if number <= self._first:
            self._since = now
        elif self._began is None and number >= self._before:
            self._began, self.on = number, True
            self._seconds = (now - self._since) / (number - self._first)
            self._told = bool(world()[0])  # the first rank tells
            if not self._told:
                self._trace()
        elif self._began is not None and self.on:
            if self._tracing is not None and self._tracing.end_step():
                self._report(self._tracing.result(self._steps, self._seconds))
                self.leave()
            self.on = number < self._began + self._steps + 2
        return was

    def leave(self) -> None:
        """Take the profiler out of the program."""
        tracing, self._tracing = self._tracing, None
        if tracing is not None:
            tracing.close()

    def close(self) -> None:
        """The program ends, or takes no further steps."""
        self.leave()
        if not self._told:
            over = _OVER.format(self._number, self._before)
            self._refuse(over if self._began is None else _DURING)

    def _trace(self) -> None:
        if "torch" not in sys.modules:
            self._refuse("the program has no torch, whose profiler it is")
            return
        module = _module()
        planned = module.extent(self._steps, self._seconds)
        if planned is None:
            self._report(module.too_long(self._seconds))
            return
        try:
            self._tracing = module.Tracing(self._device(), planned)
        except Exception as error:
            self._report(module.failed(error))

    def _refuse(self, reason: str) -> None:
        self._told = True
        lacking = dict.fromkeys(("version", "device", "steps", "step_seconds", "table"))
        none: dict[str, list[Any]] = {"notes": [], "columns": [], "rows": []}
        self._tell("profile", tool="torch.profiler", reason=reason, **lacking, **none)

    def _report(self, result: Any) -> None:
        self._told = True
        if result.steps is not None:
            result.notes.append(_NOTE.format(self._number - result.steps + 1, self._number))
        _module().report(result, self._device(), self._tell)

    def _device(self) -> Any:
        import torch

        return torch.device("cuda" if self._on_gpu else "cpu")


def _module() -> Any:
    return import_module(".profiler.torch_profiler", __package__)
