"""Cells whose runs are sessions of known figures, put together by hand."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from gpuwatch.analysis.hardware.profile import KERNELS, MEMORY_TIME, OPERATORS
from gpuwatch.analysis.results import Cell, Run
from gpuwatch.analysis.samples.steady_state import Steady
from gpuwatch.analysis.summary.summary import Summary

PROFILED_STEPS = 4
_COLUMNS = {
    KERNELS: ["Total Time (ns)", "Instances", "Name"],
    OPERATORS: ["Total Time (ns)", "Calls", "Name"],
    MEMORY_TIME: ["Total Time (ns)", "Count", "Operation"],
}


def profile(
    kernels: dict[str, float] | None = None,
    copies: float | None = None,
    operators: dict[str, float] | None = None,
) -> dict[str, Any]:
    """``meta.profile`` of four steps: seconds per step of each kernel, of copies to the device, of
    each operator of the CPU."""
    tables = {}
    for name, rows in (
        (KERNELS, kernels),
        (MEMORY_TIME, None if copies is None else {"[CUDA memcpy Host-to-Device]": copies}),
        (OPERATORS, operators),
    ):
        if rows is not None:
            tables[name] = {
                "columns": _COLUMNS[name],
                "rows": [
                    [seconds * PROFILED_STEPS * 1e9, PROFILED_STEPS, each]
                    for each, seconds in rows.items()
                ],
                "rows_left_out": 0,
            }
    return {"tool": "torch.profiler", "steps": PROFILED_STEPS, "tables": tables}


def cell(
    label: str,
    sessions: Sequence[Summary],
    blocks: Sequence[int | None] | None = None,
    reasons: Sequence[str | None] | None = None,
) -> Cell:
    """One run of each session, in blocks 1, 2, ...; the steady step time is the median.

    A run with a reason has no value.
    """
    blocks = range(1, len(sessions) + 1) if blocks is None else blocks
    reasons = [None] * len(sessions) if reasons is None else reasons
    runs = tuple(
        Run(
            session,
            block,
            Steady(session.steps.median_seconds, 0, session.steps.count or 0, 0.0),
            None if reason else session.steps.median_seconds,
            reason,
        )
        for session, block, reason in zip(sessions, blocks, reasons, strict=True)
    )
    values = [run.value for run in runs if run.value is not None and not run.warm_up]
    return Cell(label, label, runs, statistics.median(values) if values else None, None)
