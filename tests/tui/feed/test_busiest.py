"""The processes that use most of the CPU, where there is no GPU."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from gpuwatch.core.processes import start_time
from gpuwatch.tui.feed.busiest import MOST, Busiest
from gpuwatch.tui.feed.processes import ProcessNow
from tests.waiting import until

BUSY = "while True: pass  # in a test of the busiest"


def test_a_busy_process_is_among_them_with_what_it_uses_and_those_that_ended_are_not() -> None:
    process = subprocess.Popen([sys.executable, "-c", BUSY])
    busiest = Busiest()

    def found() -> ProcessNow | None:
        return next((each for each in busiest.find(10**12) if each.pid == process.pid), None)

    try:
        assert busiest.find(0) == (), "between two looks it is known what each used"
        until(lambda: (now := found()) is not None and bool(now.cores))
        now = found()
        assert now is not None and now.command is not None and "test of the busiest" in now.command
        assert (now.gpus, now.owned, now.running) == ((), None, True)
        assert now.start == start_time(process.pid) and now.resident and now.user
        assert now.started is not None and now.started < 10**12
        assert len(busiest.find(0)) <= MOST
    finally:
        process.kill()
        process.wait()
    assert found() is None


def test_what_is_not_told_is_left_out(tmp_path: Path) -> None:
    for name, stat in (("1", b"1 (a b) c) S " + b"0 " * 40), ("2", b"garbage"), ("self", b"")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "stat").write_bytes(stat)
    (tmp_path / "1" / "comm").write_text("a b) c\n")
    (tmp_path / "1" / "status").write_text("Name:\ta\nUid:\t0\t1\t1\t1\n")
    busiest = Busiest(tmp_path)
    until(lambda: bool(busiest.find(0)))
    ((pid, name, user),) = [(each.pid, each.name, each.user) for each in busiest.find(0)]
    assert (pid, name, user) == (1, "a b) c", "root")
