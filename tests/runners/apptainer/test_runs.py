"""Runs in Apptainer: how they end, what they write, how they are stopped. A real engine."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from gpuwatch.core import paths
from gpuwatch.core.models import RunState
from gpuwatch.runners import local
from gpuwatch.runners.apptainer.runner import ApptainerRunner, blame, limited
from gpuwatch.runners.local import Ending
from tests.waiting import until

from ..recorded import Ended, finish, processes, reads, specification, start

pytestmark = pytest.mark.apptainer

COUNTS_TERMS = """
import signal, sys, time
count = 0
def term(*_):
    global count
    count += 1
signal.signal(signal.SIGTERM, term)
print("up", flush=True)
while not count:
    time.sleep(0.01)
time.sleep(0.3)
print("terms", count, len(open("/usr/bin/sh", "rb").read()) > 0)
sys.exit(9)
"""


def ran(tmp_path: Path, image: Path, *command: str) -> Ended:
    spec = specification("apptainer", image, *command, where=tmp_path)
    return finish(start(ApptainerRunner(), spec, paths.runs_home() / "run"))


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("exit 0", 0),
        ("exit 7", 7),
        ("exit 255", 255),
        ("exit 137", 137),
        ("kill -9 $$", 137),
        ("kill -TERM $$", 143),
        ("echo 'FATAL:   not the launcher' >&2; echo out; exit 255", 255),
    ],
)
def test_codes_and_signals_pass_through(
    tmp_path: Path, small_root: Path, script: str, code: int
) -> None:
    result = ran(tmp_path, small_root, "sh", "-c", script).result
    assert (result.code, result.signal, result.launcher_failed) == (code, None, False)
    assert result.left_behind == 0


def test_a_sif_runs_as_a_folder_does(tmp_path: Path, small_sif: Path) -> None:
    ended = ran(tmp_path, small_sif, "python3", "-c", "print(6 * 7)")
    assert ended.out == b"42\n"
    assert ended.err == b""
    assert ended.result.code == 0


def test_a_command_that_is_not_there_is_the_launchers_failure(
    tmp_path: Path, small_root: Path
) -> None:
    result = ran(tmp_path, small_root, "no-such-program").result
    assert result.launcher_failed
    assert result.text is not None
    assert "no-such-program" in result.text
    assert not result.text.startswith("FATAL")


def test_memory_is_limited_where_the_engine_can(tmp_path: Path, small_root: Path) -> None:
    command = ("python3", "-c", "print(len(bytearray(300 << 20)))")
    spec = specification("apptainer", small_root, *command, where=tmp_path, memory_bytes=100 << 20)
    if found := ApptainerRunner().preflight(spec):
        assert [each.code for each in found] == ["memory-unsupported"]
        pytest.skip(found[0].text)
    ended = finish(start(ApptainerRunner(), spec, paths.runs_home() / "run"))
    assert (ended.result.code, ended.out) == (137, b"")
    assert ended.result.text == "its memory was limited to 100 MiB, which may be why it was killed"


def test_only_a_killed_run_with_a_limit_names_it(tmp_path: Path, small_root: Path) -> None:
    assert ran(tmp_path, small_root, "sh", "-c", "kill -9 $$").result.text is None
    (tmp_path / "memory-limit").write_text(str(3 << 30))
    told = "its memory was limited to 3.00 GiB, which may be why it was killed"
    assert limited(tmp_path, Ending(1, 137, 0, "")) == told
    assert limited(tmp_path, Ending(1, None, 0, "", signal.SIGKILL)) == told
    assert limited(tmp_path, Ending(1, 143, 0, "")) is None


def test_a_hundred_megabytes_without_a_newline_do_not_stop_a_run(
    tmp_path: Path, small_root: Path
) -> None:
    command = "head -c 100000000 /dev/zero | tr '\\0' x >&2; echo done"
    ended = ran(tmp_path, small_root, "sh", "-c", command)
    assert ended.result.code == 0
    assert ended.out == b"done\n"


def test_bytes_arrive_as_they_were_written(tmp_path: Path, small_root: Path) -> None:
    program = "import sys; sys.stdout.buffer.write(bytes(range(256)) + b'10%\\r20%\\r')"
    assert ran(tmp_path, small_root, "python3", "-c", program).out == (
        bytes(range(256)) + b"10%\r20%\r"
    )


def test_what_detached_itself_ends_with_the_run(tmp_path: Path, small_root: Path) -> None:
    ran(tmp_path, small_root, "sh", "-c", "setsid sleep 4711.25 & setsid sleep 4711.25 & exit 0")
    until(lambda: not processes("sleep", "4711.25"))


def test_a_stop_asks_the_workload_once_and_leaves_its_files_alone(
    tmp_path: Path, small_sif: Path
) -> None:
    spec = specification("apptainer", small_sif, "python3", "-c", COUNTS_TERMS, where=tmp_path)
    run = start(ApptainerRunner(), spec, paths.runs_home() / "run")
    reads(run, b"up\n")
    run.stop()
    ended = finish(run)
    assert ended.lines == ["terms 1 True"]
    assert ended.result.code == 9


def test_a_second_stop_kills_what_ignores_the_first(
    tmp_path: Path, small_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "GRACE_SECONDS", 3600.0)
    script = "trap '' TERM; setsid sleep 4711.5 & trap 'echo asked' TERM; echo up; "
    script += "while :; do sleep 0.1; done"
    spec = specification("apptainer", small_root, "sh", "-c", script, where=tmp_path)
    run = start(ApptainerRunner(), spec, paths.runs_home() / "run")
    reads(run, b"up\n")
    run.stop()
    reads(run, b"asked\n")
    assert run.result() is None
    run.stop()
    assert finish(run).result.code in (None, 137)
    until(lambda: not processes("sleep", "4711.5"))


def test_a_stop_before_the_workload_is_there_ends_the_launcher(
    tmp_path: Path, small_sif: Path
) -> None:
    spec = specification("apptainer", small_sif, "sleep", "4711.75", where=tmp_path)
    run = start(ApptainerRunner(), spec, paths.runs_home() / "run")
    run.stop()
    assert not finish(run).result.launcher_failed
    until(lambda: not processes("sleep", "4711.75"))


def test_a_run_is_found_again_by_its_handle(tmp_path: Path, small_root: Path) -> None:
    runner = ApptainerRunner()
    spec = specification("apptainer", small_root, "sh", "-c", "echo up; sleep 600", where=tmp_path)
    run = start(runner, spec, paths.runs_home() / "run")
    reads(run, b"up\n")
    again = runner.attach(run.handle(), run.cursor())
    assert again.state() is RunState.RUNNING
    assert again.pids() == run.pids() != ()
    again.stop()
    assert finish(again).result.code == 143
    again.forget()
    assert not (paths.runs_home() / "run").exists()


def test_a_launchers_failure_is_known_after_the_recorder_was_replaced(
    tmp_path: Path, small_root: Path
) -> None:
    runner = ApptainerRunner()
    spec = specification("apptainer", small_root, "no-such-program", where=tmp_path)
    run = start(runner, spec, paths.runs_home() / "run")
    finish(run)
    result = runner.attach(run.handle(), run.cursor()).result()
    assert result is not None
    assert result.launcher_failed


def test_a_killed_launcher_takes_the_workload_with_it(tmp_path: Path, small_root: Path) -> None:
    spec = specification("apptainer", small_root, "sleep", "4712.25", where=tmp_path)
    run = start(ApptainerRunner(), spec, paths.runs_home() / "run")
    until(lambda: processes("sleep", "4712.25"))
    os.kill(run.pids()[0], signal.SIGKILL)
    result = finish(run).result
    assert result.signal == signal.SIGKILL
    until(lambda: not processes("sleep", "4712.25"))


@pytest.mark.parametrize(
    "said",
    [
        "FATAL:   container creation failed: why\n",
        "WARNING: odd\nFATAL:   container creation failed: why\n",
        "\x1b[31mFATAL:  \x1b[0m container creation failed: why\n",
    ],
)
def test_what_the_launcher_said_is_told_without_its_decoration(said: str) -> None:
    assert blame(Ending(1, 255, 0, said)) == "container creation failed: why"
    assert blame(Ending(1, 255, 1, said)) is None
    assert blame(Ending(1, 1, 0, said)) is None
