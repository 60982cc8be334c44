"""Sound sessions, of each schema, to be spoilt; small, so that thousands of them are read soon."""

from __future__ import annotations

import shutil
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from tests.tui import process_sessions as processes
from tests.tui.live.test_kernels import PROFILE
from tests.tui.sessions import Script, finished, plan, write

_KEPT = Path(__file__).resolve().parents[1] / "data" / "sessions"


@dataclass(frozen=True)
class Bases:
    """Files that are never changed."""

    sessions: tuple[Path, ...]
    """Each alone in a folder; some with a journal."""
    good: Path


def make(folder: Path) -> Bases:
    """Make them in ``folder``."""
    made = [
        _rich(folder / "rich" / "01-bare.gpuwatch"),
        _going_on(folder / "on" / "01-bare.gpuwatch"),
    ]
    made.append(_torn(folder / "torn" / "01-bare.gpuwatch"))
    for kept in sorted(_KEPT.glob("*.gpuwatch")):
        copy = folder / kept.stem / "01-bare.gpuwatch"
        copy.parent.mkdir()
        made.append(Path(shutil.copy(kept, copy)))
    good = _rich(folder / "good" / "01-bare.gpuwatch")
    return Bases(tuple(made), good)


def _rich(path: Path) -> Path:
    """A finished run with all that a session can hold."""
    script = Script(
        seconds=12.0,
        pipes=True,
        known_card=True,
        throttled=True,
        log=[("stdout", "a line"), ("stderr", "another")] * 20,
        events=[(5.0, "xid", "Xid 13"), (7.0, "throttle", "power")],
        meta={**finished(seconds=12.0), "profile": PROFILE},
        phases={"data": 0.2, "forward": 0.5},
        alive=False,
    )
    plan(path.parent, path.stem)
    made = processes.add(write(path, script), processes.RUN, processes.STRANGER, t=8.0)
    _counters(made)
    return made


def _counters(path: Path) -> None:
    with sqlite3.connect(path) as file:
        file.execute(
            "INSERT OR REPLACE INTO meta VALUES ('counters', ?)",
            (
                '{"tool": "ncu", "version": "2024.1", "steps": 5, "flop_per_step": 1.4e12, '
                '"dram_read_bytes_per_step": 1e9, "dram_write_bytes_per_step": 1e9, "kernels": '
                '[{"name": "sgemm", "launches": 5, "flop": 7e12, "dram_read_bytes": 5e9, '
                '"dram_write_bytes": 5e9, "duration_ns": 1000000}], "launches": 5, "t": 0}',
            ),
        )
        file.execute("INSERT INTO fact VALUES ('host', 'kernel', '\"6.1\"')")
    file.close()


def _going_on(path: Path) -> Path:
    """A machine recording whose recorder is gone."""
    return write(path, Script(seconds=12.0, gpus=2, kind="machine", alive=False))


def _torn(path: Path) -> Path:
    """A run whose recorder was killed in mid-transaction: a journal that must be rolled back."""
    whole = write(path.with_name("whole"), Script(seconds=12.0, alive=False, log=[("stdout", "x")]))
    writer = sqlite3.connect(whole, isolation_level=None)
    writer.execute("PRAGMA cache_size=1")
    writer.execute("BEGIN IMMEDIATE")
    for n in range(1000, 1400):
        writer.execute("INSERT INTO log VALUES (?, ?, 'stdout', ?)", (n, n, "y" * 200))
        writer.execute("UPDATE tick SET t = t + 1 WHERE n = ?", (n - 1000,))
    shutil.copy(whole, path)
    shutil.copy(f"{whole}-journal", f"{path}-journal")
    writer.execute("ROLLBACK")
    writer.close()
    whole.unlink()
    return path
