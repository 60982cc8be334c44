"""Finding the workload's own process below shells and engines, in real process trees."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gpuwatch.telemetry.process.workload_pid import innermost

SLEEP = f"{sys.executable} -c 'import time; time.sleep(60)'"


@contextmanager
def tree(*command: str) -> Iterator[int]:
    process = subprocess.Popen(command, start_new_session=True)
    try:
        yield process.pid
    finally:
        subprocess.run(["pkill", "-KILL", "-s", str(process.pid)], check=False)
        process.wait()


def command_of(pid: int | None) -> str:
    text = Path(f"/proc/{pid}/cmdline").read_bytes() if pid else b""
    return text.replace(b"\0", b" ").decode()


def leads_to(root: int, words: str, *, container: bool = False) -> bool:
    deadline = time.monotonic() + 60
    while words not in command_of(innermost([root], container=container)):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_a_shell_is_passed_by() -> None:
    with tree("sh", "-c", f"{SLEEP}; true") as root:
        assert leads_to(root, "time.sleep(60)")


def test_where_there_are_several_children_their_parent_is_the_workload() -> None:
    with tree("sh", "-c", f"{SLEEP} & {SLEEP} & wait") as root:
        deadline = time.monotonic() + 60
        while len(Path(f"/proc/{root}/task/{root}/children").read_text().split()) < 2:
            assert time.monotonic() < deadline
        assert innermost([root], container=False) == root


def test_an_engine_is_passed_by_to_what_sees_other_mounts() -> None:
    unshare = shutil.which("unshare")
    made = unshare and subprocess.run([unshare, "-m", "-p", "-f", "true"], check=False)
    if not made or made.returncode:
        pytest.skip("no namespaces can be made here")
    command = f"sleep 59 & unshare -m -p -f {SLEEP}"
    with tree("sh", "-c", command) as root:
        assert leads_to(root, "time.sleep(60)", container=True)


def test_before_the_container_is_there_nothing_is_taken_for_it() -> None:
    with tree("sleep", "60") as root:
        assert innermost([root], container=True) is None
        assert innermost([root], container=False) == root
    assert innermost([], container=False) is None
