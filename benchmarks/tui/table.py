"""Medians and ranges as Markdown."""

from __future__ import annotations

import datetime
import os
import platform
import statistics
import subprocess
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from benchmarks import page
from benchmarks.tui.measure import Measured

_COLUMNS: tuple[tuple[str, Callable[[Measured], float | None], str], ...] = (
    ("CPU, % of a core", lambda m: m.cpu * 100, ".2f"),
    ("to the terminal, B/s", lambda m: m.bytes, ".0f"),
    ("first text, ms", lambda m: m.first_text and m.first_text * 1000, ".0f"),
    ("full screen, ms", lambda m: m.full and m.full * 1000, ".0f"),
    ("CPU of the start, s", lambda m: m.start_cpu, ".2f"),
    ("memory (PSS), MiB", lambda m: m.memory / 2**20, ".1f"),
    ("calls of NVML, 1/s", lambda m: m.calls, ".1f"),
)
_BASE = "nvitop"


def tables(gpus: int, latency_us: str, results: Mapping[str, Sequence[Measured | None]]) -> str:
    """One table: a row for each program, and what gpuwatch is of nvitop."""
    rounds = max(map(len, results.values()))
    takes = f"a call takes {latency_us} us"
    if latency_us == "card":
        takes = "calls take the processor time of an H200's"
    title = f"{gpus} GPU{'s' if gpus > 1 else ''}, {takes}"
    lines = [f"### {title}, median of {rounds} runs (least to most)", ""]
    rows = []
    for name, runs in results.items():
        known = [run for run in runs if run is not None]
        cells = [cell([read(run) for run in known], form) for _, read, form in _COLUMNS]
        name += f" ({len(known)} runs)" if len(known) < rounds else ""
        rows.append([name, *cells])
    lines.append(page.table(["program", *(name for name, _, _ in _COLUMNS)], rows))
    if _BASE in results:
        lines.append("")
        lines += _ratios(results)
    return "\n".join(lines) + "\n"


def cell(values: Sequence[float | None], form: str) -> str:
    """The median of the known values, with their range behind it."""
    known = sorted(value for value in values if value is not None)
    if not known:
        return "-"
    middle = f"{statistics.median(known):{form}}"
    return middle if len(known) == 1 else f"{middle} ({known[0]:{form}} to {known[-1]:{form}})"


def _ratios(results: Mapping[str, Sequence[Measured | None]]) -> list[str]:
    """CPU over nvitop's, each round by itself: both ran within the same minutes."""
    lines = []
    for name, runs in results.items():
        if not name.startswith("gpuwatch"):
            continue
        ratios = [
            run.cpu / base.cpu
            for run, base in zip(runs, results[_BASE], strict=True)
            if run is not None and base is not None
        ]
        lines.append(f"CPU of {name} over that of nvitop, by rounds: {cell(ratios, '.2f')}")
    return lines


def about(peers: Path) -> str:
    """The machine, the date and the versions."""
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return (
        f"{datetime.date.today()}, {os.cpu_count()} cores of {page.processor()}, "
        f"Linux {platform.release()}, Python {platform.python_version()}, "
        f"Textual {version('textual')}, gpuwatch {version('gpuwatch-tui')}, {_peers(peers)}; "
        f"load {load}\n"
    )


def _peers(peers: Path) -> str:
    found = []
    for program in (peers / "nvitop", Path("nvtop"), peers / "gpustat"):
        command = [program, "--version"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=20)
            found.append(done.stdout.strip().replace(" version ", " "))
        except OSError:
            found.append(f"no {program.name}")
    return ", ".join(found)
