"""Rows of earlier runs on the same machine: the pairs of one row count together.

An interval narrows with the root of the number of its pairs, and a machine is not quiet for hours.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable
from dataclasses import asdict, astuple, dataclass, replace
from datetime import datetime, timezone
from pathlib import Path

import numpy as np

from benchmarks.overhead.measure import Case, Measured
from benchmarks.overhead.table import LOADS
from benchmarks.overhead.windows import Pairs, Window
from benchmarks.page import processor


@dataclass(frozen=True)
class Setting:
    """What pairs must have in common, beside their row, to count together."""

    device: str
    latency_us: int | None
    window_s: float
    machine: str
    python: str


def setting(device: str, latency_us: int | None, window_s: float) -> Setting:
    """Of this machine."""
    return Setting(device, latency_us, window_s, processor(), platform.python_version())


def add(path: Path, at: Setting, measured: Measured) -> None:
    """Keep a row, as a line of JSON."""
    line = {
        "day": datetime.now(timezone.utc).date().isoformat(),
        "setting": asdict(at),
        **asdict(measured),
    }
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, default=np.ndarray.tolist) + "\n")


def read(path: Path, at: Setting) -> tuple[list[Measured], list[str]]:
    """One of each row that was measured in this setting, and the days on which."""
    found: dict[Case, list[Measured]] = {}
    days = set()
    for text in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        line = json.loads(text)
        if line["setting"] == asdict(at):
            case = Case(**line["case"])
            windows = tuple(Window(**each) for each in line["windows"])
            pairs = Pairs(**{name: np.asarray(each) for name, each in line["pairs"].items()})
            moments = np.asarray(line["moments"], dtype=float)
            kept = Measured(case, pairs, moments, windows, line["step_s"], line["cpu_share"])
            found.setdefault(case, []).append(kept)
            days.add(line["day"])
    rows = sorted((pooled(each) for each in found.values()), key=lambda row: _order(row.case))
    return rows, sorted(days)


def _order(case: Case) -> tuple[int, bool, float, int, float]:
    """As in the table: of each workload its controls, then the recorder."""
    told = case.instead if case.instead is not None else 0.0
    return tuple(LOADS).index(case.load), case.instead is None, told, case.gpus, case.hz


def pooled(rows: Iterable[Measured]) -> Measured:
    """Rows of one case as one: all their pairs, and the medians of what is told beside them."""
    listed = list(rows)
    found = [row.pairs for row in listed]
    return replace(
        listed[0],
        pairs=Pairs(*(np.concatenate(each) for each in zip(*map(astuple, found), strict=True))),
        moments=np.concatenate([row.moments for row in listed]),
        windows=tuple(window for row in listed for window in row.windows),
        step_s=float(np.median([row.step_s for row in listed])),
        cpu_share=float(np.median([row.cpu_share for row in listed])),
    )
