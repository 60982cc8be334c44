"""One run of one program in its steady state: processor time, memory, calls, bytes."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from benchmarks.recorder.programs import RECORDER, Program
from benchmarks.recorder.surroundings import Place
from benchmarks.tui.terminal import Terminal
from benchmarks.tui.tree import cpu_seconds, members


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
    hour_bytes: float | None
    """What an hour of samples takes in the session; ``None``: it is no recorder of ours."""


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
    hour = None
    if program.name == RECORDER:
        with closing(sqlite3.connect(next(place.folder.glob("out/*/*.gpuwatch")))) as session:
            ((size,),) = session.execute("SELECT sum(length(samples)) FROM sample")
            ((minutes,),) = session.execute("SELECT max(n) + 1 FROM minute")
        hour = size * 60 / minutes
    return Cost(cpu, memory, calls / took, wakes / took, hour)


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
