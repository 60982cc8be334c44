"""Finding the workload's own process below shells and engines, in real process trees."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gpuwatch.telemetry.process.tree import innermost
from tests.waiting import until

SLEEP = f"{sys.executable} -c 'import time; time.sleep(600)'"


@contextmanager
def tree(*command: str) -> Iterator[int]:
    process = subprocess.Popen(command, start_new_session=True)
    try:
        yield process.pid
    finally:
        subprocess.run(["pkill", "-KILL", "-s", str(process.pid)], check=False)
        process.wait()


def command_of(line: tuple[int, ...]) -> str:
    text = Path(f"/proc/{line[0]}/cmdline").read_bytes() if line else b""
    return text.replace(b"\0", b" ").decode()


def leads_to(root: int, words: str, *, container: bool = False) -> None:
    until(lambda: words in command_of(innermost([root], container=container)))


def test_a_shell_is_passed_by() -> None:
    with tree("sh", "-c", f"{SLEEP}; true") as root:
        leads_to(root, "time.sleep(600)")


def test_where_there_are_several_children_their_parent_is_the_workload() -> None:
    with tree("sh", "-c", f"{SLEEP} & {SLEEP} & wait") as root:
        children = Path(f"/proc/{root}/task/{root}/children")
        until(lambda: len(children.read_text().split()) == 2)
        assert innermost([root], container=False) == (root,)


def test_an_engine_is_passed_by_to_what_sees_other_mounts() -> None:
    unshare = shutil.which("unshare")
    made = unshare and subprocess.run([unshare, "-m", "-p", "-f", "true"], check=False)
    if not made or made.returncode:
        pytest.skip("no namespaces can be made here")
    command = f"sleep 599 & unshare -m -p -f {SLEEP}"
    with tree("sh", "-c", command) as root:
        leads_to(root, "time.sleep(600)", container=True)


def test_before_the_container_is_there_nothing_is_taken_for_it() -> None:
    with tree("sleep", "600") as root:
        assert innermost([root], container=True) == ()
        assert innermost([root], container=False) == (root,)
    assert innermost([], container=False) == ()
