"""One run of one program in its steady state: processor time, memory, calls, bytes."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

from benchmarks.recorder.programs import RECORDER, Program
from benchmarks.recorder.surroundings import Place
from benchmarks.tui.terminal import Terminal
from benchmarks.tui.tree import cpu_seconds, members
from gpuwatch.session.schema import TIER_SECONDS, TIER_STATS

_MANY = 5_000
_TIER_ROWS_AN_HOUR = 3600 // TIER_SECONDS * len(TIER_STATS)


@dataclass(frozen=True)
class Cost:
    """Of the whole tree of processes."""

    cpu: float
    """Seconds of processor time per second."""
    memory: int
    """Largest resident memory, in bytes, shared pages included."""
    calls: float
    """Calls of the driver library that ask a device, per second."""
    wakes: float
    """How often a thread that had been waiting ran on, per second."""
    tick_bytes: float | None
    """What a tick takes in the session; ``None``: it is no recorder of ours."""
    hour_bytes: float | None
    """What an hour of ticks takes there, the coarse tier included."""


def cost(program: Program, place: Place, interval: float, settle: float, seconds: float) -> Cost:
    """Run ``program`` for ``settle`` seconds, then for ``seconds`` that are measured."""
    terminal = Terminal(program.command(interval, place.folder), place.env)
    try:
        time.sleep(settle)
        if not place.calls():
            raise RuntimeError(f"{program.name} read no GPU: {terminal.text()[-300:]}")
        begun, cpu, calls = time.monotonic(), cpu_seconds([terminal.pid]), place.calls()
        wakes = _wakes(terminal.pid)
        time.sleep(seconds)
        took = time.monotonic() - begun
        cpu, memory = (cpu_seconds([terminal.pid]) - cpu) / took, _peak_bytes(terminal.pid)
        calls, wakes = place.calls() - calls, _wakes(terminal.pid) - wakes
    finally:
        terminal.close(program.key)
    tick = hour = None
    if program.name == RECORDER:
        session = next(place.folder.glob("out/*/*.gpuwatch"))
        tick = _row_bytes(session, "tick")
        hour = tick * 3600 / interval + _row_bytes(session, "tier") * _TIER_ROWS_AN_HOUR
    return Cost(cpu, memory, calls / took, wakes / took, tick, hour)


def _row_bytes(session: Path, table: str) -> float:
    """What a row like those of the session takes among many, in bytes of the file."""
    with closing(sqlite3.connect(session)) as source:
        ((made,),) = source.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,))
        rows = source.execute(f"SELECT * FROM {table}").fetchall()
    with closing(sqlite3.connect(":memory:")) as many:
        many.execute(made)
        marks = ", ".join("?" * len(rows[0]))
        numbered = ((n, *row[1:]) for n, row in zip(range(_MANY), cycle(rows), strict=False))
        many.executemany(f"INSERT INTO {table} VALUES ({marks})", numbered)
        ((pages,),), ((size,),) = (
            many.execute("PRAGMA page_count"),
            many.execute("PRAGMA page_size"),
        )
    return float(pages * size) / _MANY


def _peak_bytes(root: int) -> int:
    return sum(_status(f"/proc/{pid}", "VmHWM:") * 1024 for pid in members(root))


def _wakes(root: int) -> int:
    tasks = [task for pid in members(root) for task in Path(f"/proc/{pid}/task").iterdir()]
    return sum(_status(str(task), "voluntary_ctxt_switches:") for task in tasks)


def _status(folder: str, key: str) -> int:
    try:
        lines: Sequence[str] = Path(folder, "status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(key)), 0)
