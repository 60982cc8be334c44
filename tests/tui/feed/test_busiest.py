"""The processes that use most of the CPU, where there is no GPU."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from gpuwatch.core.processes import start_time
from gpuwatch.tui.feed.busiest import Busiest
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
    finally:
        process.kill()
        process.wait()
    until(lambda: found() is None)


def test_what_is_not_told_is_left_out_and_what_rests_is_not(tmp_path: Path) -> None:
    def put(name: str, stat: bytes, comm: str) -> None:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        (folder / "stat").write_bytes(stat)
        (folder / "comm").write_text(f"{comm}\n")
        (folder / "status").write_text("Name:\ta\nUid:\t0\t1\t1\t1\n")

    put("garbage", b"", "")
    put("99", b"garbage", "")
    for pid in range(1, 41):
        put(str(pid), b"%d (a b) c) S " % pid + b"0 " * 40, "a b) c")
    busiest = Busiest(tmp_path)
    until(lambda: bool(busiest.find(0)))
    found = {(each.pid, each.name, each.user) for each in busiest.find(0)}
    assert found == {(pid, "a b) c", "root") for pid in range(1, 41)}
    put("1", b"1 (exec) S " + b"0 " * 40, "exec")
    until(lambda: "exec" in [each.name for each in busiest.find(0)])
