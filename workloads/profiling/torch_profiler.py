"""A few steps under ``torch.profiler`` after the timed ones, reported as ``profile`` events.

Unlike counters, tracing needs no privileges. It slows small steps to half their speed, so it stays
out of the timed window; its cost is in the event.
"""

from __future__ import annotations

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

from ..lines import emit, finite
from .kinds import Traced
from .traces import Table, launches, read, tables

DEFAULT_STEPS = 4
BUDGET_SECONDS = 10.0
"""Limit for the profiled steps together, in seconds; one step is always taken."""

LONGEST_STEP_SECONDS = 60.0
"""No step is profiled if one takes longer than this."""

SLOWDOWN = 2.0
"""Assumed slowdown of a step under the profiler."""

LARGEST_LINE = 48 * 1024
"""Maximum bytes of a step line."""

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
    notes: tuple[str, ...] = ()
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
        now, before = os.times(), self._times
        return {
            "real_seconds": time.monotonic() - self._start,
            "user_seconds": now.user + now.children_user - before.user - before.children_user,
            "sys_seconds": now.system
            + now.children_system
            - before.system
            - before.children_system,
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
        return ProfileResult(
            reason=f"a step takes {step_seconds:.0f} s, and steps over "
            f"{LONGEST_STEP_SECONDS:.0f} s are not profiled"
        )
    try:
        begin()
        seconds, tables, launched = _trace(step, device, planned)
    except Exception as error:
        message = str(error).strip().partition("\n")[0]
        return ProfileResult(
            reason=f"torch.profiler failed: {type(error).__name__}: {message}"[:1000]
        )
    reason, notes = None, []
    if planned.steps < requested:
        notes.append(
            f"{planned.steps} of {requested} steps: a step takes {step_seconds:.2g} s, and "
            f"profiling is limited to about {BUDGET_SECONDS:.0f} s"
        )
    if device.type == "cuda" and not any(table.name == "cuda_gpu_kern_sum" for table in tables):
        reason = (
            "the profiler saw no kernel: CUPTI, which allows one user at a time, was busy "
            "(end nsys, ncu or DCGM's profiling on this GPU), or this torch was built without it; "
            f"{_KINETO_LOG}=0 shows what it says"
        )
    return ProfileResult(planned.steps, seconds, tables, reason, tuple(notes), launched)


def report(result: ProfileResult, device: torch.device, cost: Cost) -> None:
    """Print the ``profile`` events: one per part of a table, or one without a table."""
    keys = {
        "tool": "torch.profiler",
        "version": str(torch.__version__),
        "device": device.type,
        "steps": result.steps,
        "step_seconds": result.step_seconds,
        "reason": result.reason,
        "notes": list(result.notes),
        **cost.keys(),
    }
    if not result.tables:
        emit("profile", **keys, table=None, columns=[], rows=[], rows_left_out=0)
    for table in result.tables:
        listed = list(parts(table.rows, LARGEST_LINE - 4096))
        for number, rows in enumerate(listed, 1):
            emit(
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
        length = len(json.dumps(finite(row))) + 2
        if at > start and size + length > most:
            yield rows[start:at]
            start, size = at, 0
        size += length
    yield rows[start:]


def _trace(
    step: Callable[[], None], device: torch.device, planned: ProfileExtent
) -> tuple[float, list[Table], list[Traced]]:
    """Mean seconds of a profiled step, the tables of the steps, and the kernels of one."""
    os.environ.setdefault(_KINETO_LOG, _QUIET)
    activities = [ProfilerActivity.CPU]
    if device.type == "cuda":
        activities.append(ProfilerActivity.CUDA)
    phases = schedule(wait=0, warmup=planned.warmup, active=planned.steps, repeat=1)
    start = end = 0.0
    with tempfile.TemporaryDirectory(prefix="gpuwatch-") as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder, "trace.json")

        def export(profiler: Any) -> None:
            profiler.export_chrome_trace(str(path))

        with profile(activities=activities, schedule=phases, on_trace_ready=export) as profiler:
            for number in range(planned.warmup + planned.steps):
                if number == planned.warmup:
                    _synchronize(device)
                    start = time.perf_counter()
                step()
                if number == planned.warmup + planned.steps - 1:
                    _synchronize(device)
                    end = time.perf_counter()
                profiler.step()
        events = read(path)
        seconds = (end - start) / planned.steps
        return seconds, tables(events), launches(events, planned.steps)


def _synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
