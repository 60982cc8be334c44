from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gpuwatch.core.metrics import Method
from gpuwatch.telemetry.base import Value
from gpuwatch.telemetry.nvml.errors import Unavailable
from gpuwatch.telemetry.nvml.fields import GpuProcess
from gpuwatch.telemetry.nvml.processes import ProcessShares, TimeShare
from gpuwatch.telemetry.process.proc_files import ProcFiles, parse_stat
from gpuwatch.telemetry.process.tree import ProcessTree
from gpuwatch.telemetry.process.workload import WorkloadSource
from tests.waiting import until

BURN = """
import os, signal, sys, time
def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end: pass
def child(seconds, hold=0):
    pid = os.fork()
    if pid == 0:
        burn(seconds)
        if hold: time.sleep(hold)
        os._exit(0)
    return pid
def say(): print("ready", flush=True)
def wait(): sys.stdin.readline()
"""


@contextmanager
def _program(body: str) -> Iterator[subprocess.Popen[str]]:
    program = subprocess.Popen(
        [sys.executable, "-c", BURN + body],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield program
    finally:
        program.kill()
        program.communicate()


def _ready(program: subprocess.Popen[str]) -> None:
    assert program.stdout and program.stdout.readline() == "ready\n"


def _go(program: subprocess.Popen[str]) -> None:
    assert program.stdin
    program.stdin.write("\n")
    program.stdin.flush()


def test_cpu_time_holds_a_child_that_was_never_seen_and_was_waited_for() -> None:
    with _program("wait(); os.waitpid(child(0.3), 0); say(); wait()") as program:
        tree = ProcessTree([program.pid])
        before = tree.sample().cpu_s
        _go(program)
        _ready(program)
        after = tree.sample().cpu_s
        tree.close()
    assert before is not None and after is not None
    assert 0.25 <= after - before < 0.6


def test_cpu_time_holds_a_child_that_nobody_waited_for() -> None:
    body = "signal.signal(signal.SIGCHLD, signal.SIG_IGN); child(0.3, 120); say(); wait()"
    with _program(body) as program:
        _ready(program)
        tree = ProcessTree([program.pid])
        until(lambda: (tree.sample().cpu_s or 0) >= 0.28)
        seen = tree.sample()
        assert seen.cpu_s is not None and seen.processes == 2
        (child,) = (row.pid for row in tree.rows() if row.pid != program.pid)
        os.kill(child, 9)
        until(lambda: tree.sample().processes == 1)
        left = tree.sample()
        tree.close()
    assert left.cpu_s is not None and left.cpu_s >= seen.cpu_s


def test_the_total_never_goes_down_while_children_come_and_go() -> None:
    body = "say()\nfor n in range(12):\n  os.waitpid(child(0.05), 0)\nsay(); wait()"
    with _program(body) as program:
        _ready(program)
        tree = ProcessTree([program.pid])
        totals: list[float] = []
        until(lambda: totals.append(tree.sample().cpu_s or 0) or totals[-1] >= 0.5)
        _ready(program)
        final = tree.sample().cpu_s
        tree.close()
    assert totals == sorted(totals)
    assert final is not None and 0.5 <= final <= 1.2


def test_another_process_of_the_same_pid_does_not_answer(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    line = Path("/proc/self/stat").read_text()
    (tmp_path / "7/stat").write_text(line)
    files = ProcFiles(tmp_path, 7)
    assert files.stat().started == parse_stat(line.encode()).started
    fields = line.split()
    fields[21] = str(int(fields[21]) + 1)  # the moment of its start
    (tmp_path / "7/stat").write_text(" ".join(fields))
    with pytest.raises(ProcessLookupError):
        files.stat()


def test_the_wait_for_a_core_holds_what_was_before_the_first_look(tmp_path: Path) -> None:
    def waits(thread: int, nanoseconds: int) -> None:
        (tmp_path / f"10/task/{thread}").mkdir(exist_ok=True)
        (tmp_path / f"10/task/{thread}/schedstat").write_text(f"9 {nanoseconds} 1\n")

    def read() -> float:
        return until(lambda: tree.sample().core_wait_s)

    (tmp_path / "loadavg").write_text("0 0 0 1/9 14\n")
    (tmp_path / "self").mkdir()
    (tmp_path / "self/schedstat").write_text("9 0 1\n")
    _fake_process(tmp_path, 10, 1, {10: "", 20: ""})
    waits(10, 5_000_000_000)
    waits(20, 7_000_000_000)
    tree = ProcessTree([10], tmp_path)
    assert tree.sample().core_wait_s == 12, "also before this recorder took over"
    waits(10, 6_500_000_000)
    waits(20, 1_000_000_000)  # another thread of this number
    waits(30, 9_000_000_000)  # first seen
    assert read() == 16.5
    waits(30, 9_250_000_000)
    assert read() == 16.75
    stat = tmp_path / "10/stat"
    stat.write_text(stat.read_text().replace(" 2 0 ", " 501 0 "))
    many = tree.sample()
    assert (many.core_wait_s, many.core_wait_reason) == (
        None,
        "over 500 threads, too many to read each",
    )
    stat.write_text(stat.read_text().replace(" 501 0 ", " 2 0 "))
    (tmp_path / "self/schedstat").write_text("0 0 0\n")
    tree.set_roots([10])
    assert tree.sample().core_wait_reason == "this kernel does not count waits for a core"
    tree.close()


def test_a_program_that_shares_a_core_waits_for_it() -> None:
    body = (
        "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); child(9); child(9); say(); wait()"
    )
    with _program(body) as program:
        _ready(program)
        tree = ProcessTree([program.pid])
        until(lambda: (tree.sample().core_wait_s or 0) >= 0.5)
        tree.close()


def test_resident_memory_is_that_of_the_tree() -> None:
    with _program("block = bytearray(64 << 20); say(); wait()") as program:
        _ready(program)
        tree = ProcessTree([program.pid])
        resident = tree.sample().resident
        row = tree.rows()[0]
        tree.close()
    assert resident is not None
    assert 64 << 20 <= resident < 200 << 20
    assert row.pid == program.pid


SHARING = """
import mmap
held = mmap.mmap(-1, 256 << 20)  # shared with the children
held.write(b"x" * (256 << 20))
for _ in range(3):
    if os.fork() == 0:
        sum(held[at] for at in range(0, len(held), 4096))
        os.write(1, b"ready\\n")
        wait()
        os._exit(0)
wait()
"""
HELD = 256 << 20


def test_memory_that_processes_share_counts_once() -> None:
    with _program(SHARING) as program:
        for _ in range(3):
            _ready(program)
        source = WorkloadSource(Unavailable("no NVML", ""), [program.pid])
        memory = source.sample()[1]
        each = [row.resident for row in source.rows()]
        assert len(each) == 4 and memory is not None and sum(each) > 4 * HELD
        assert HELD < memory < 2 * HELD
        source.close()


def test_where_the_kernel_does_not_tell_what_is_shared_memory_is_a_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def denied(_: ProcFiles) -> int:
        raise PermissionError("another user's process")

    monkeypatch.setattr(ProcFiles, "proportional", denied)
    with _program(SHARING) as program:
        for _ in range(3):
            _ready(program)
        source = WorkloadSource(Unavailable("no NVML", ""), [program.pid])
        assert (source.sample()[1] or 0) > 4 * HELD
        changed = [change.channel for change in source.drain()[0]]
        (memory,) = [each for each in changed if each.metric == "process.memory.usage"]
        assert memory.method is Method.BOUND and "shared pages once a process" in memory.source
        source.close()


def test_bytes_written_to_storage_are_counted(tmp_path: Path) -> None:
    body = (
        f"wait()\nf = open({str(tmp_path / 'x')!r}, 'wb')\n"
        "f.write(bytes(8 << 20)); f.flush(); os.fsync(f.fileno()); say(); wait()"
    )
    with _program(body) as program:
        tree = ProcessTree([program.pid])
        before = tree.sample()
        _go(program)
        _ready(program)
        after = tree.sample()
        tree.close()
    if before.io_written is None:
        assert before.io_reason
        return
    assert after.io_written is not None
    written = after.io_written - before.io_written
    assert written == 0 or 8 << 20 <= written < 9 << 20, "0 where the folder is in memory"


def test_a_workload_that_is_gone_gives_none_and_no_error() -> None:
    with _program("say(); wait()") as program:
        _ready(program)
        tree = ProcessTree([program.pid])
        assert tree.sample().processes == 1
    gone = tree.sample()
    assert (gone.processes, gone.cpu_s, gone.resident, gone.io_read) == (0, None, None, None)
    assert tree.rows() == []
    tree.set_roots([program.pid])
    assert tree.sample().processes == 0
    tree.close()
    tree.close()


def test_a_name_with_brackets_and_spaces_is_parsed() -> None:
    numbers = " ".join(str(n) for n in range(4, 53))
    stat = parse_stat(f"7 (a) R (b) S {numbers}".encode())
    assert (stat.name, stat.state, stat.parent, stat.own, stat.waited) == (
        "a) R (b",
        "S",
        4,
        29,
        33,
    )
    assert (stat.threads, stat.started, stat.resident) == (20, 22, 24)


def _fake_process(proc: Path, pid: int, parent: int, children: dict[int, str]) -> None:
    folder = proc / str(pid)
    folder.mkdir(parents=True)
    rest = [
        str(parent),
        *["0"] * 9,
        "5",
        "5",
        "0",
        "0",
        "0",
        "0",
        str(len(children)),
        "0",
        "1",
        "0",
        "3",
    ]
    (folder / "stat").write_text(f"{pid} (p{pid}) S {' '.join(rest)}")
    (folder / "io").write_text("read_bytes: 10\nwrite_bytes: 20\n")
    for thread, text in children.items():
        (folder / f"task/{thread}").mkdir(parents=True)
        (folder / f"task/{thread}/children").write_text(text)


def test_children_of_every_thread_are_found_where_the_kernel_lists_them(tmp_path: Path) -> None:
    me = os.getpid()
    (tmp_path / f"{me}/task/{me}").mkdir(parents=True)
    (tmp_path / f"{me}/task/{me}/children").write_text("")
    (tmp_path / "loadavg").write_text("0 0 0 1/9 14\n")
    _fake_process(tmp_path, 10, 1, {10: "11 ", 20: "12 "})
    _fake_process(tmp_path, 11, 10, {11: "13 "})
    _fake_process(tmp_path, 12, 10, {12: ""})
    _fake_process(tmp_path, 13, 99, {13: ""})
    _fake_process(tmp_path, 14, 1, {14: ""})
    tree = ProcessTree([10], tmp_path)
    sample = tree.sample()
    assert tree.pids == {10, 11, 12}, "13's parent is another process: a reused PID"
    assert sample.cpu_s == 3 * 10 / os.sysconf("SC_CLK_TCK")
    assert (sample.io_read, sample.io_written) == (30, 60)
    tree.close()


def test_the_source_without_nvml_says_why_device_memory_is_unknown() -> None:
    source = WorkloadSource(Unavailable("no driver", "load it"))
    last = source.channels[5]
    assert (last.method, last.reason) == (Method.UNAVAILABLE, "no driver")
    assert source.sample() == [None] * 7
    assert source.drain() == ([], ())
    source.close()


def test_device_memory_is_that_of_the_tree_s_processes_on_all_gpus() -> None:
    with _program("say(); wait()") as program:
        _ready(program)
        listed: dict[str, list[GpuProcess] | None] = {
            "gpu0": [
                GpuProcess(program.pid, 100, "compute"),
                GpuProcess(program.pid, 100, "graphics"),
                GpuProcess(1, 7, "compute"),
            ],
            "gpu1": [GpuProcess(program.pid, 11, "compute")],
        }
        source = WorkloadSource(lambda: listed)
        assert source.sample() == [None] * 7
        source.set_roots([program.pid])
        known = source.channels[4].method is Method.MEASURED
        assert source.sample()[4] == (111 if known else None)
        listed["gpu1"] = None
        assert source.sample()[4] is None
        if known:
            changes, _ = source.drain()
            assert any("gpu1" in (change.channel.reason or "") for change in changes)
    assert source.sample()[4] is None
    assert source.drain()[0] == [], "what was not told to the end is not told after it"
    source.close()


def test_gpu_time_is_the_tree_s_sum_on_each_gpu_and_the_mean_over_those_it_uses() -> None:
    with _program("say(); wait()") as program:
        _ready(program)
        on = [GpuProcess(program.pid, 1, "compute")]
        listed = {"gpu0": on, "gpu1": on, "gpu2": []}
        shares = {
            "gpu0": ProcessShares({program.pid: TimeShare(0.6, 0.2), 1: TimeShare(0.3, None)}),
            "gpu1": ProcessShares({}),
            "gpu2": ProcessShares({}, "not supported"),
        }
        source = WorkloadSource(lambda: listed, gpu_shares=lambda: shares)
        source.set_roots([program.pid])
        known = source.channels[5].reason is None
        assert source.sample()[5] == (0.3 if known else None)
        shares["gpu1"] = ProcessShares({}, "not supported")
        assert source.sample()[5] is None
        listed.update(gpu0=[], gpu1=[])
        shares.update(gpu0=ProcessShares({}))
        assert source.sample()[5] == (0.0 if known else None)
        if known:
            told = [change.channel.reason for change in source.drain()[0]]
            assert "gpu1: not supported" in told
            assert told[-1] is None
    source.sample()
    assert source.drain()[0] == [], "what held to the end holds after it"
    source.close()


def test_not_told_is_not_none_and_a_gpu_that_the_workload_says_it_uses_is_no_unused_one() -> None:
    with _program("say(); wait()") as program:
        _ready(program)
        on = [GpuProcess(program.pid, 9, "compute")]
        listed: dict[str, list[GpuProcess] | None] = {"gpu0": None}
        source = WorkloadSource(lambda: listed)
        source.set_roots([program.pid])
        if source.channels[5].reason is not None:
            pytest.skip("PIDs of the host are not seen here")

        def told() -> tuple[list[Value], set[str | None]]:
            values = list(source.sample()[4:6])
            return values, {change.channel.reason for change in source.drain()[0]}

        assert told() == ([None, None], {"NVML does not list the processes of gpu0"})
        listed["gpu0"], source.told_gpus = [], frozenset({"gpu0"})
        values, reasons = told()
        assert values == [None, None]
        assert reasons == {"NVML lists no process of the workload on gpu0, which it says it uses"}
        listed["gpu0"] = on
        assert told()[0][0] == 9
        listed["gpu0"] = []
        assert told()[0][0] == 0, "it was there, and is gone"
    source.close()
