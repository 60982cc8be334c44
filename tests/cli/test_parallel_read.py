"""Long sessions read by two processes: the same as by one, and nothing is left of the other."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gpuwatch.analysis.study.read import Read, read
from gpuwatch.cli import parallel_read
from gpuwatch.cli.parallel_read import read_in_parallel
from gpuwatch.core.errors import NotASession
from gpuwatch.core.processes import start_time
from tests.waiting import until

OLD = Path(__file__).parents[1] / "data" / "sessions" / "schema-2.gpuwatch"


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    monkeypatch.setattr(parallel_read, "_LONG", 0)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    found = [tmp_path / f"{n}.gpuwatch" for n in range(4)]
    for path in found:
        shutil.copy(OLD, path)
    return found


def test_what_the_other_process_read_is_what_this_one_would_have(paths: list[Path]) -> None:
    here: list[Path] = []

    def told(path: Path) -> Read:
        here.append(path)
        return read(path)

    with read_in_parallel(paths, told) as reading:
        found = [reading(path) for path in paths]
    assert found == [read(path) for path in paths]
    assert here == paths[::2]


def test_a_session_that_the_other_could_not_read_raises_here(paths: list[Path]) -> None:
    paths[1].write_bytes(b"none")
    with read_in_parallel(paths, read) as reading, pytest.raises(NotASession):
        reading(paths[1])


def test_without_the_other_process_all_is_read_here(paths: list[Path]) -> None:
    parent = os.getpid()

    def dying(path: Path) -> Read:
        if os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        return read(path)

    with read_in_parallel(paths, dying) as reading:
        assert reading(paths[1]) == read(paths[1])


@pytest.mark.parametrize("asks", [True, False])
def test_it_ends_with_the_block_whether_or_not_it_was_asked_for_what_it_read(
    paths: list[Path], monkeypatch: pytest.MonkeyPatch, asks: bool
) -> None:
    fork, started = os.fork, []

    def seen() -> int:
        started.append(fork())
        return started[-1]

    monkeypatch.setattr(os, "fork", seen)
    with read_in_parallel(paths, read) as reading:
        if asks:
            reading(paths[1])
    (child,) = started
    assert not Path(f"/proc/{child}").exists()


_READS = """
import os, sys, time
from pathlib import Path
from gpuwatch.cli import parallel_read
parallel_read._LONG = 0
os.cpu_count = lambda: 2
def reading(path):
    print(os.getpid(), flush=True)
    time.sleep(300)
with parallel_read.read_in_parallel([Path(path) for path in sys.argv[1:]], reading):
    time.sleep(300)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_it_ends_with_the_process_that_started_it(paths: list[Path], number: int) -> None:
    words = [sys.executable, "-c", _READS, *map(str, paths)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        process.send_signal(number)
    try:
        until(lambda: start_time(child) is None)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
