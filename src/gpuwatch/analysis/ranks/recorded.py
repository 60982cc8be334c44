"""The ranks of a session, with what was sampled of their GPUs and processes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpuwatch.analysis.ranks.ranks import Ranks, Telemetry, ranks_of
from gpuwatch.analysis.ranks.stragglers import METRICS
from gpuwatch.analysis.samples.source import Column, Source, select_channels
from gpuwatch.analysis.samples.window import Window
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.rows import MPS_SERVER, RankRow, RankStepRow

_MOMENTS = 20
"""Moments at which the cores of each process are read."""


def recorded_ranks(
    reader: SessionReader,
    source: Source,
    rows: Sequence[RankRow],
    steps: Sequence[RankStepRow],
) -> Ranks | None:
    """Compare the ranks of a session; ``None`` for a run of fewer than two."""

    timed = [row.t for row in steps if not row.warmup]

    def sampled(since: int | None) -> Telemetry:
        start = min(timed) if since is None else since
        return _telemetry(reader, source, Window("timed steps", start, max(timed)))

    return ranks_of(rows, steps, sampled)


def _telemetry(reader: SessionReader, source: Source, window: Window) -> Telemetry:
    uuids = {row.id: row.uuid for row in reader.devices() if row.kind == "gpu" and row.uuid}
    channels = select_channels(reader, METRICS, uuids)
    columns = source.columns(channels, window)
    metrics: dict[str, dict[str, float]] = {}
    for channel in channels:
        mean = _mean(columns[channel.id])
        if mean is not None:
            metrics.setdefault(str(uuids[channel.device]), {})[channel.metric] = mean
    neighbours: dict[str, tuple[str, ...]] = {}
    for process in reader.gpu_processes():
        uuid = uuids.get(process.device)
        there = process.running or process.t > window.start
        if uuid and process.owned is False and there and MPS_SERVER not in (process.name or ""):
            name = f"{process.name or 'a process'} (PID {process.pid})"
            neighbours[uuid] = (*neighbours.get(uuid, ()), name)
    return Telemetry(metrics, neighbours, _cores(reader, window))


def _cores(reader: SessionReader, window: Window) -> dict[int, float]:
    """Mean cores by process, from moments spread evenly over the window."""
    found: dict[int, list[float]] = {}
    for moment in np.linspace(window.start, window.end, _MOMENTS + 1)[1:]:
        for process in reader.processes(int(moment)).all:
            if process.cores is not None and process.running:
                found.setdefault(process.pid, []).append(process.cores)
    return {pid: sum(cores) / len(cores) for pid, cores in found.items()}


def _mean(column: Column) -> float | None:
    if column.integral is not None and column.integral.mean is not None:
        return column.integral.mean
    known = column.values[~np.isnan(column.values)]
    return float(known.mean()) if known.size else None
