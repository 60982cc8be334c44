"""A few steps under ``torch.profiler`` after the timed ones, reported as ``profile`` events.

Unlike counters, tracing needs no privileges. It slows small steps to half their speed, so it stays
out of the timed window; its cost is in the event.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, schedule

from .traces import Table, Traced, launches, read, tables

DEFAULT_STEPS = 4
BUDGET_SECONDS = 10.0
"""Limit for the profiled steps together, in seconds; one step is always taken."""

LONGEST_STEP_SECONDS = 60.0
"""No step is profiled if one takes longer than this."""

SLOWDOWN = 2.0
"""Assumed slowdown of a step under the profiler."""

LARGEST_LINE = 48 * 1024
"""Maximum bytes of a step line."""

LARGEST_TRACE = 512 << 20
"""Most bytes of a trace that is read."""

_KINETO_LOG = "KINETO_LOG_LEVEL"
_QUIET = "99"


@dataclass(frozen=True)
class ProfileExtent:
    """Number of profiled steps, and of traced and discarded steps before them."""

    steps: int
    warmup: int


@dataclass(frozen=True)
class ProfileResult:
    """The result of profiling."""

    steps: int | None = None
    step_seconds: float | None = None
    """Mean seconds of a step under the profiler."""
    tables: Sequence[Table] = ()
    reason: str | None = None
    notes: Sequence[str] = ()
    launches: Sequence[Traced] = ()
    """The kernels of one step, in order."""


class Cost:
    """Cost of a stage after the timed window, as keys of its event.

    With them a reader can subtract the stage from the times of the whole process.
    """

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._times = os.times()

    def keys(self) -> dict[str, float]:
        """Seconds so far, and processor seconds including ended children."""
        spent = [now - before for now, before in zip(os.times(), self._times, strict=True)]
        user, system, user_of_children, system_of_children, _ = spent
        return {
            "real_seconds": time.monotonic() - self._start,
            "user_seconds": user + user_of_children,
            "sys_seconds": system + system_of_children,
        }


def extent(requested: int, step_seconds: float) -> ProfileExtent | None:
    """The part of the requested steps that fits the budget; None if steps are too long."""
    if step_seconds > LONGEST_STEP_SECONDS:
        return None
    fit = int(BUDGET_SECONDS / (SLOWDOWN * step_seconds)) if step_seconds > 0 else requested + 1
    return ProfileExtent(max(1, min(requested, fit - 1)), int(fit > 1))


def profile_steps(
    begin: Callable[[], None],
    step: Callable[[], None],
    device: torch.device,
    requested: int,
    step_seconds: float,
) -> ProfileResult:
    """Take steps under the profiler; a failure becomes a reason, never an error.

    ``begin`` prepares the data and ``step`` takes one step; ``step_seconds`` is the mean of the
    timed ones.
    """
    planned = extent(requested, step_seconds)
    if planned is None:
        return too_long(step_seconds)
    try:
        begin()
        with contextlib.closing(Tracing(device, planned)) as tracing:
            step()
            while not tracing.end_step():
                step()
            return tracing.result(requested, step_seconds)
    except Exception as error:
        return failed(error)


def too_long(step_seconds: float) -> ProfileResult:
    """No profile, because a step takes so long."""
    most = f"steps over {LONGEST_STEP_SECONDS:.0f} s are not profiled"
    return ProfileResult(reason=f"a step takes {step_seconds:.0f} s, and {most}")


def failed(error: Exception) -> ProfileResult:
    """No profile, because the profiler failed."""
    message = str(error).strip().partition("\n")[0]
    return ProfileResult(reason=f"torch.profiler failed: {type(error).__name__}: {message}"[:1000])


class Tracing:
    """The profiler while steps are taken; it begins at once."""

    def __init__(self, device: torch.device, planned: ProfileExtent) -> None:
        self._device = device
        self._planned = planned
        self._ended = 0
        self._seconds = 0.0
        self._trace = ""
        activities = [ProfilerActivity.CPU]
        if device.type == "cuda":
            activities.append(ProfilerActivity.CUDA)
        phases = schedule(wait=0, warmup=planned.warmup, active=planned.steps, repeat=1)
        self._profiler = profile(
            activities=activities, schedule=phases, on_trace_ready=self._export
        )
        with _quietly():
            self._profiler.start()
        self._begin()

    def end_step(self) -> bool:
        """A step is over; whether it was the last."""
        self._ended += 1
        last = self._ended == self._planned.warmup + self._planned.steps
        if last:
            _synchronize(self._device)
            self._seconds = (time.perf_counter() - self._start) / self._planned.steps
        with _quietly():
            self._profiler.step()
            if last:
                self._profiler.stop()
        if self._ended == self._planned.warmup:
            self._begin()
        return last

    def result(self, requested: int, step_seconds: float) -> ProfileResult:
        """What was traced; ``requested`` steps were asked for, which take ``step_seconds``."""
        planned, path = self._planned, Path(self._trace)
        if (size := path.stat().st_size) > LARGEST_TRACE:
            return ProfileResult(reason=f"the trace is too large: {size >> 20} MiB")
        events = read(path)
        found, traced = tables(events), launches(events, planned.steps)
        reason, notes = None, []
        if planned.steps < requested:
            notes.append(
                f"{planned.steps} of {requested} steps: a step takes {step_seconds:.2g} s, and "
                f"profiling is limited to about {BUDGET_SECONDS:.0f} s"
            )
        if self._device.type == "cuda" and not any(t.name == "cuda_gpu_kern_sum" for t in found):
            reason = (
                "the profiler saw no kernel: CUPTI, which allows one user at a time, was busy "
                "(end nsys, ncu or DCGM's profiling on this GPU), or this torch was built without "
                f"it; {_KINETO_LOG}=0 shows what it says"
            )
        return ProfileResult(planned.steps, self._seconds, found, reason, notes, traced)

    def close(self) -> None:
        """Leave the profiler, whatever it has seen."""
        if self._ended < self._planned.warmup + self._planned.steps:
            with _quietly(), contextlib.suppress(Exception):
                self._profiler.stop()
        if self._trace:
            Path(self._trace).unlink(missing_ok=True)

    def _begin(self) -> None:
        _synchronize(self._device)
        self._start = time.perf_counter()

    def _export(self, profiler: Any) -> None:
        handle, self._trace = tempfile.mkstemp(prefix="gpuwatch-", suffix=".json")
        os.close(handle)
        profiler.export_chrome_trace(self._trace)


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """What the profiler says is of no concern to who reads the program's output."""
    silences = _KINETO_LOG not in os.environ
    if silences:
        os.environ[_KINETO_LOG] = _QUIET
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        if silences:
            del os.environ[_KINETO_LOG]


def report(
    result: ProfileResult, device: torch.device, tell: Callable[..., None], **more: Any
) -> None:
    """``tell`` the ``profile`` events: one per part of a table, or one without a table."""
    keys = {
        "tool": "torch.profiler",
        "version": str(torch.__version__),
        "device": device.type,
        "steps": result.steps,
        "step_seconds": result.step_seconds,
        "reason": result.reason,
        "notes": list(result.notes),
        **more,
    }
    if not result.tables:
        tell("profile", **keys, table=None, columns=[], rows=[], rows_left_out=0)
    for table in result.tables:
        listed = list(parts(table.rows, LARGEST_LINE - 4096))
        for number, rows in enumerate(listed, 1):
            tell(
                "profile",
                **keys,
                table=table.name,
                columns=table.columns,
                rows=rows,
                rows_left_out=table.left_out if number == len(listed) else 0,
            )


def parts(rows: Sequence[Sequence[Any]], most: int) -> Iterator[Sequence[Sequence[Any]]]:
    """Split the rows into parts of at most ``most`` bytes of JSON, or one row."""
    start = size = 0
    for at, row in enumerate(rows):
        length = len(json.dumps(row)) + 2
        if at > start and size + length > most:
            yield rows[start:at]
            start, size = at, 0
        size += length
    yield rows[start:]


def _synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
