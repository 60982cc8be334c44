"""Medians and ranges as Markdown."""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Callable, Mapping, Sequence

from benchmarks import page
from benchmarks.recorder.cost import Cost
from benchmarks.recorder.jitter import Beat
from benchmarks.recorder.programs import RECORDER
from benchmarks.tui.table import cell

_COLUMNS: tuple[tuple[str, Callable[[Cost], float | None], str], ...] = (
    ("CPU, % of a core", lambda c: c.cpu * 100, ".2f"),
    ("peak memory, MiB", lambda c: c.memory / 2**20, ".1f"),
    ("NVML calls, 1/s", lambda c: c.calls, ".0f"),
    ("wakes, 1/s", lambda c: c.wakes, ".0f"),
    ("MB an hour", lambda c: c.hour_bytes and c.hour_bytes / 1e6, ",.1f"),
)


def about(rounds: int, seconds: float) -> str:
    """When and where this was read."""
    load = "/".join(f"{each:.1f}" for each in os.getloadavg())
    return (
        f"Read on {datetime.date.today().isoformat()}: {platform.system()} "
        f"{platform.release().split('-')[0]}, {os.cpu_count()} cores ({page.processor()}), Python "
        f"{platform.python_version()}, load {load} at the end (the benchmark's own included); "
        f"medians of {rounds} alternating rounds of {seconds:g} s, the range behind them."
    )


def costs(title: str, results: Mapping[str, Sequence[Cost]]) -> str:
    """A row for each program; below it what the recorder is of nvitop, in the same round."""
    rows = [
        [name, *(cell([read(run) for run in runs], form) for _, read, form in _COLUMNS)]
        for name, runs in results.items()
        if runs
    ]
    text = _table(title, ["program", *(name for name, _, _ in _COLUMNS)], rows)
    ours, peers = results.get(RECORDER, ()), results.get("nvitop", ())
    ratios = [a.cpu / b.cpu for a, b in zip(ours, peers, strict=False) if b.cpu > 0]
    if ratios:
        text += f"\nCPU, recorder to nvitop: {cell(list(ratios), '.2f')}.\n"
    return text


def beats(results: Mapping[str, Sequence[Beat]]) -> str:
    """How well the recorder holds 100 Hz."""
    rows = [
        [
            name,
            f"{sum(run.missed for run in runs):,} of {sum(run.due for run in runs):,}",
            *(cell([run.quantile(q) for run in runs], ".2f") for q in (0.5, 0.99, 1.0)),
        ]
        for name, runs in results.items()
    ]
    head = ["recording", "ticks missed", "intervals apart, p50", "p99", "longest"]
    return _table("100 Hz", head, rows)


def starts(results: Mapping[str, Sequence[float]]) -> str:
    """Milliseconds until something has happened."""
    rows = [[name, cell([run * 1e3 for run in runs], ".0f")] for name, runs in results.items()]
    text = _table("Start", ["what", "ms"], rows)
    ours, base = results["gpuwatch --version"], results["python -c 'import argparse'"]
    ratios = [a / b for a, b in zip(ours, base, strict=True)]
    return f"{text}\n`--version` to `import argparse`: {cell(ratios, '.2f')}.\n"


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return f"**{title}**\n\n{page.table(head, rows)}\n"
