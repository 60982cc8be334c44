"""The shim holds a workload: its output, its end, its whole process tree. Real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.core.models import Output, Result, RunState
from gpuwatch.runners import local, shim
from gpuwatch.runners.local import LocalRun, SpoolReader
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("programs")

PYTHON = sys.executable


def start(folder: Path, *command: str, **options: bool) -> LocalRun:
    return LocalRun.start(
        "bare", command, folder=folder, working_directory="/", variables=os.environ, **options
    )


def finish(run: LocalRun) -> tuple[Result, list[Output]]:
    until(lambda: run.result() is not None)
    outputs = []
    while some := run.read():
        outputs += some
    result = run.result()
    assert result is not None
    return result, outputs


def text(outputs: list[Output], stream: str) -> bytes:
    return b"".join(output.data for output in outputs if output.stream == stream)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(
    ("script", "code", "number"),
    [("exit 0", 0, None), ("exit 7", 7, None), ("exit 137", 137, None), ("kill -9 $$", None, 9)],
)
def test_the_end_of_a_workload_is_told_exactly(
    tmp_path: Path, script: str, code: int | None, number: int | None
) -> None:
    result, _ = finish(start(tmp_path, "sh", "-c", script))
    assert (result.code, result.signal) == (code, number)


def test_a_shim_that_is_over_before_anyone_looks_has_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Late(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)

    monkeypatch.setattr(subprocess, "Popen", Late)
    result, _ = finish(start(tmp_path, "true"))
    assert result.code == 0


def test_both_streams_are_kept_apart_to_the_last_byte(tmp_path: Path) -> None:
    result, outputs = finish(start(tmp_path, "sh", "-c", "printf out; printf err >&2"))
    assert result.code == 0
    assert (text(outputs, "stdout"), text(outputs, "stderr")) == (b"out", b"err")


def test_cpu_time_is_that_of_the_workload(tmp_path: Path) -> None:
    busy = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass"
    result, _ = finish(start(tmp_path, PYTHON, "-c", busy))
    assert result.user_seconds is not None and result.sys_seconds is not None
    assert result.user_seconds + result.sys_seconds >= 0.3


def test_a_command_that_cannot_start_is_the_launchers_failure(tmp_path: Path) -> None:
    result, _ = finish(start(tmp_path, "/does/not/exist"))
    assert result.launcher_failed
    assert "No such file" in str(result.text)


def daemonising(folder: Path, then: str = "") -> tuple[str, str, str]:
    up = folder / "up"
    script = f"setsid sh -c 'echo $$; touch {up}; exec sleep 300' & "
    return "sh", "-c", f"{script} while [ ! -e {up} ]; do sleep 0.05; done; {then}"


def test_what_daemonises_ends_with_its_run(tmp_path: Path) -> None:
    result, outputs = finish(start(tmp_path, *daemonising(tmp_path)))
    assert result.left_behind == 1 and not result.kept
    pid = int(text(outputs, "stdout"))
    until(lambda: not alive(pid))


def test_what_daemonises_goes_on_where_it_is_kept(tmp_path: Path) -> None:
    result, outputs = finish(start(tmp_path, *daemonising(tmp_path), keeps_children=True))
    pid = int(text(outputs, "stdout"))
    assert (result.code, result.left_behind, result.kept) == (0, 1, True)
    assert alive(pid)
    os.kill(pid, signal.SIGKILL)


def test_a_stop_ends_also_what_would_be_kept(tmp_path: Path) -> None:
    run = start(tmp_path, *daemonising(tmp_path, "sleep 300"), keeps_children=True)
    until((tmp_path / "up").exists)
    run.stop()
    result, outputs = finish(run)
    pid = int(text(outputs, "stdout"))
    assert not result.kept and not alive(pid)


LOOKS = """
import sys
from gpuwatch.runners.shim import Shim
looks = 0

def hook(event, arguments):
    global looks
    looks += event == "os.listdir" and arguments[0] == "/proc"

sys.addaudithook(hook)
Shim(sys.argv[1], 10.0, "tree", sys.argv[2:]).run()
print(looks)
"""


@pytest.mark.parametrize(("script", "looks"), [("true", False), ("sleep 100 & true", True)])
def test_all_processes_are_looked_through_only_where_something_was_left(
    tmp_path: Path, script: str, looks: bool
) -> None:
    command = [PYTHON, "-c", LOOKS, str(tmp_path), "sh", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert (tmp_path / "ended.json").exists() and bool(int(done.stdout)) is looks


def test_a_stop_takes_the_whole_tree_and_a_second_one_kills(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "GRACE_SECONDS", 3600.0)
    stubborn = "trap 'echo asked' TERM; echo $$; while :; do sleep 1; done"
    run = start(tmp_path, "sh", "-c", 'sh -c "$0" & eval "$0"', stubborn)
    outputs: list[Output] = []
    until(lambda: outputs.extend(run.read()) or text(outputs, "stdout").count(b"\n") == 2)
    pids = [int(line) for line in text(outputs, "stdout").split()]
    run.stop()
    until(lambda: outputs.extend(run.read()) or text(outputs, "stdout").count(b"asked") == 2)
    assert run.result() is None
    run.stop()
    result, _ = finish(run)
    assert result.signal == signal.SIGKILL
    for pid in pids:
        until(lambda pid=pid: not alive(pid))


def test_a_hang_up_reaches_neither_shim_nor_workload(tmp_path: Path) -> None:
    go = tmp_path / "go"
    run = start(tmp_path, "sh", "-c", f"until [ -e {go} ]; do sleep 0.05; done; echo done")
    holder = run.handle()["holder"]["pid"]
    os.kill(holder, signal.SIGHUP)
    go.touch()
    result, outputs = finish(run)
    assert result.code == 0
    assert text(outputs, "stdout") == b"done\n"


def test_the_workload_inherits_no_ignored_signals(tmp_path: Path) -> None:
    _, outputs = finish(start(tmp_path, "grep", "SigIgn", "/proc/self/status"))
    ignored = int(text(outputs, "stdout").split()[1], 16)
    assert ignored & (1 << (signal.SIGHUP - 1)) == 0


def test_a_killed_shim_is_lost_not_ended(tmp_path: Path) -> None:
    run = start(tmp_path, "sleep", "300")
    pids = run.pids()
    os.kill(run.handle()["holder"]["pid"], signal.SIGKILL)
    until(lambda: run.state() is RunState.LOST)
    result = run.result()
    assert result is not None and result.lost
    assert (result.code, result.signal) == (None, None)
    os.kill(pids[0], signal.SIGKILL)


def test_reading_goes_on_from_a_cursor(tmp_path: Path) -> None:
    go = tmp_path / "go"
    run = start(tmp_path, "sh", "-c", f"echo one; until [ -e {go} ]; do sleep 0.05; done; echo two")
    outputs: list[Output] = []
    until(lambda: outputs.extend(run.read()) or outputs)
    again = LocalRun.attach(run.handle(), run.cursor())
    go.touch()
    result, rest = finish(again)
    assert result.code == 0
    assert text(outputs + rest, "stdout") == b"one\ntwo\n"


def test_an_unread_spool_is_capped_and_says_what_it_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shim, "MOST_SEGMENTS", 3)
    monkeypatch.setattr(shim, "SEGMENT_BYTES", 1000)
    spool = shim.Spool(str(tmp_path))
    written = [bytes([65 + at % 26]) * 400 for at in range(40)]
    for data in written:
        spool.write(shim.STDOUT, data)
    spool.flush()
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 5 * 1500
    outputs = SpoolReader(tmp_path).read()
    (gap,) = [at for at, output in enumerate(outputs) if output.lost]
    first, last = ([each.data for each in part] for part in (outputs[:gap], outputs[gap + 1 :]))
    assert first == written[:3], "how it began is kept"
    assert last == written[-len(last) :]
    assert outputs[gap].lost == 400 * (len(written) - len(first) - len(last))


def test_a_reader_that_is_too_slow_is_told_where_how_much_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shim, "MOST_SEGMENTS", 3)
    monkeypatch.setattr(shim, "SEGMENT_BYTES", 1000)
    spool, reader = shim.Spool(str(tmp_path)), SpoolReader(tmp_path)
    written = [bytes([65 + at]) * (100 + at) for at in range(60)]
    cursor, read, at = reader.cursor(), b"", 0
    for some in (4, 20, 3, 1, 32):
        for data in written[at : at + some]:
            spool.write(shim.STDOUT, data)
        at += some
        # Another one goes on where the last was, be its segment there or not.
        reader = SpoolReader(tmp_path, cursor)
        for output in reader.read():
            read += output.data or b"?" * output.lost
        cursor = reader.cursor()
    whole = b"".join(written)
    assert len(read) == len(whole) and b"?" in read
    assert all(found in (ord("?"), wanted) for found, wanted in zip(read, whole, strict=True))


def test_released_segments_are_deleted_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shim, "SEGMENT_BYTES", 100)
    spool, reader, got = shim.Spool(str(tmp_path)), SpoolReader(tmp_path), b""
    for at in range(50):
        spool.write(shim.STDOUT, f"{at}\n".encode() * 5)
        got += b"".join(output.data for output in reader.read())
        reader.release(reader.cursor())
    assert got == b"".join(f"{at}\n".encode() * 5 for at in range(50))
    assert len(list(tmp_path.iterdir())) <= 2


def test_a_full_disk_blocks_no_workload(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", small]).returncode:
        pytest.skip("mounting a tmpfs is not permitted here")
    try:
        run = start(small, "sh", "-c", "head -c 3000000 /dev/zero; echo end")
        until(lambda: not run.pids())

        def room_for_the_end() -> bool:
            # What was held back fills the disk again: a recorder that reads on makes room.
            # The shim holds the newest open: without its name it would fill the disk all the same.
            for segment in (small / "spool").iterdir():
                os.truncate(segment, 0)
            return run.result() is not None

        until(room_for_the_end)
        result, _ = finish(run)
        assert result.code == 0
    finally:
        subprocess.run(["umount", "-l", small], check=True)
