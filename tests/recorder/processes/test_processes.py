"""Every process on a GPU and of the run is recorded, and nobody's own is called a stranger."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuwatch.core.users import USERS
from gpuwatch.recorder.processes.watch import (
    EVERY_SECONDS,
    LISTS_SECONDS,
    ProcessWatch,
    RunProcesses,
)
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.rows import GpuProcessRow, Processes, ProcessRow
from gpuwatch.session.schema import MOST_PROCESSES, RESTATED_SECONDS
from gpuwatch.session.writing.statements import Row
from gpuwatch.telemetry.nvml.errors import Unavailable
from gpuwatch.telemetry.process.workload import WorkloadSource
from tests.conftest import Cli
from tests.fake_nvml import NOT_SUPPORTED, FakeDriver
from tests.reading import log, sessions
from tests.runners.docker.conftest import api, containers
from tests.waiting import until

__all__ = ["api"]

GIB = 2**30
NO_GPU = Unavailable("no driver", "none")
FAMILY = """
import os, sys, time
def child(after):
    read, write = os.pipe()
    if os.fork() == 0:
        after(write)
        time.sleep(600)
        os._exit(0)
    return os.read(read, 20).decode()
def orphan(write):
    if os.fork():
        os._exit(0)
    os.write(write, str(os.getpid()).encode())
def stays(write):
    os.write(write, str(os.getpid()).encode())
print(child(stays), child(orphan), flush=True)
end = time.monotonic() + 600
while time.monotonic() < end:
    sum(range(10000))
"""
"""A busy process with an idle child and an orphan; it prints their numbers."""


@pytest.fixture
def driver(driver: FakeDriver) -> FakeDriver:
    """Two GPUs, whatever this machine has."""
    driver.resize(2)
    return driver


@pytest.fixture
def stranger() -> Iterator[int]:
    """The PID of a process that is not the run's."""
    program = subprocess.Popen(["sleep", "600"])
    yield program.pid
    program.kill()
    program.wait()


@pytest.fixture
def family() -> Iterator[tuple[int, int, int]]:
    """Processes in a session of their own, as the shim starts a workload: top, child, orphan."""
    program = subprocess.Popen(
        [sys.executable, "-c", FAMILY], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert program.stdout is not None
    child, orphan = map(int, program.stdout.readline().split())
    yield program.pid, child, orphan
    os.killpg(program.pid, 9)
    program.communicate()


def seen(out: Path) -> Processes:
    found = sessions(out)
    if not found:
        return Processes()
    with SessionReader(found[0]) as reader:
        return reader.processes()


def by_pid(out: Path) -> dict[int, ProcessRow]:
    return {row.pid: row for row in seen(out).all}


def on_gpus(out: Path) -> dict[int, GpuProcessRow]:
    return {row.pid: row for row in seen(out).on_gpus}


def test_the_runs_own_and_a_stranger_are_told_apart_with_what_they_use(
    cli: Cli, driver: FakeDriver, stranger: int, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    process = cli.start("--record", "--quiet", "--out", out, "--", sys.executable, "-c", FAMILY)
    until(lambda: sessions(out) and "".join(log(sessions(out)[0])))
    child, orphan = map(int, "".join(log(sessions(out)[0])).split())
    until(lambda: by_pid(out))
    top = next(row.pid for row in seen(out).all if row.pid not in (child, orphan))
    driver.set(gpu=0, process_utilization=f"{top}:80/35,{child}:10/4000000000")
    lists = [(top, 3 * GIB), (child, GIB), (orphan, GIB), (stranger, 5 * GIB)]
    driver.processes(0, *((pid, size, "compute") for pid, size in lists), (top, GIB, "graphics"))
    until(lambda: stranger in by_pid(out) and (by_pid(out)[top].cores or 0) > 0.02)
    until(lambda: on_gpus(out)[top].share == 0.8 and on_gpus(out)[stranger].share == 0)
    shares = {pid: (row.share, row.memory_share) for pid, row in on_gpus(out).items()}
    assert (shares[top], shares[stranger]) == ((0.8, 0.35), (0.0, 0.0))
    assert shares[child] == (0.1, None), "garbage is unknown"
    assert "no valid sample" in str(on_gpus(out)[child].reason)
    assert on_gpus(out)[top].reason is None
    until(lambda: on_gpus(out)[top].kind != "compute")  # what draws is looked at more rarely
    assert {pid: row.owned for pid, row in by_pid(out).items()} == {
        top: True,
        child: True,
        orphan: True,
        stranger: False,
    }
    gpus = on_gpus(out)
    assert {pid: (row.owned, row.bytes) for pid, row in gpus.items()} == {
        top: (True, 3 * GIB),
        child: (True, GIB),
        orphan: (True, GIB),
        stranger: (False, 5 * GIB),
    }
    assert gpus[top].kind == "compute, graphics" and gpus[stranger].kind == "compute"
    rows = by_pid(out)
    assert rows[stranger].name == "sleep" and (rows[top].started or 0) > 0
    assert all((row.resident or 0) > 100_000 and row.user for row in rows.values())
    driver.processes(0, (top, 3 * GIB, "compute"))
    until(lambda: not by_pid(out)[stranger].running and not on_gpus(out)[stranger].running)
    assert by_pid(out)[child].running, "it left the GPU and goes on"
    process.terminate()
    process.communicate(timeout=60)
    with SessionReader(sessions(out)[0]) as reader:
        (visit,) = reader.presences(0, 10**12)
    assert (visit.pid, visit.name, visit.bytes) == (stranger, "sleep", 5 * GIB)
    assert 0 < visit.ns < 600 * 10**9


def test_what_nvml_does_not_say_is_unknown_with_the_reason(
    cli: Cli, driver: FakeDriver, stranger: int, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    driver.fail("nvmlDeviceGetProcessUtilization", NOT_SUPPORTED)
    driver.processes(1, (stranger, None, "compute"))
    process = cli.start("--record", "--quiet", "--out", out, "--duration", "5m")
    until(lambda: stranger in on_gpus(out) and "not read" not in str(on_gpus(out)[stranger].reason))
    row = on_gpus(out)[stranger]
    assert (row.bytes, row.share, row.memory_share) == (None, None, None)
    assert row.owned is None, "the machine has no own"
    assert row.reason is not None
    assert "how much memory" in row.reason and "not supported" in row.reason
    process.terminate()
    process.communicate(timeout=60)


@pytest.mark.docker
def test_the_processes_of_the_runs_container_are_its_own_and_those_of_another_are_named(
    cli: Cli, driver: FakeDriver, small_image: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    engine = request.getfixturevalue("api")
    out = tmp_path / "out"
    other = engine.create_container(small_image, ["sleep", "600"])
    engine.start(other)
    process = cli.start(
        *("--record", "--quiet", "--out", out, "--gpus", "none", "--env", f"docker={small_image}"),
        *("--", "sh", "-c", "sleep 601 & (sleep 602 &) ; wait; sleep 600"),
    )
    try:
        until(lambda: len(by_pid(out)) >= 3)
        (mine,) = containers(engine, tmp_path)
        inside = [int(row[1]) for row in engine.top(mine)["Processes"]]
        late = engine.exec_create(mine, ["sleep", "603"])["Id"]
        engine.exec_start(late, detach=True)
        until(lambda: engine.exec_inspect(late)["Pid"])
        inside.append(engine.exec_inspect(late)["Pid"])
        foreign = engine.inspect_container(other)["State"]["Pid"]
        driver.processes(0, *((pid, GIB, "compute") for pid in (*inside, foreign)))
        until(lambda: {*inside, foreign} <= on_gpus(out).keys())
        owned = {pid: row.owned for pid, row in on_gpus(out).items()}
        assert owned == {**dict.fromkeys(inside, True), foreign: False}
        assert by_pid(out)[foreign].place == f"docker {other['Id'][:12]}"
    finally:
        engine.remove_container(other, force=True)
        process.terminate()
        process.communicate(timeout=60)


def test_an_orphan_that_the_tree_never_saw_is_still_the_runs(
    family: tuple[int, int, int], stranger: int
) -> None:
    top, child, orphan = family
    tree = WorkloadSource(NO_GPU, [top])
    own = RunProcesses(tree)
    assert orphan not in tree.pids and child not in tree.pids, "nothing was sampled yet"
    assert [own.owns(pid) for pid in (top, child, orphan)] == [True, True, True]
    assert own.owns(stranger) is False and own.owns(os.getpid()) is False
    assert own.owns(2**22 + 1) is None, "of a process that is gone nothing is claimed"
    tree.close()


def test_a_steady_process_is_written_once_and_not_every_time(family: tuple[int, int, int]) -> None:
    top, child, _ = family
    until(lambda: USERS.name(os.getuid()) == pwd.getpwuid(os.getuid()).pw_name)
    tree = WorkloadSource(NO_GPU, [top])
    now = 0.0
    watch = ProcessWatch(None, tree, clock=lambda: now)

    def look(seconds: float) -> list[Row]:
        nonlocal now
        now += seconds
        tree.sample()
        return watch.rows(int(now * 1e9))

    def about_child(rows: list[Row]) -> list[str]:
        return [sql.split()[2] for sql, values in rows if child in values]

    told: list[str] = []

    def is_told() -> bool:
        told.extend(about_child(look(EVERY_SECONDS)))
        return bool(told)

    until(is_told)
    assert told == ["process", "process_use"], "a process is told once it is a second old"
    assert look(LISTS_SECONDS / 2) == []
    assert about_child(look(RESTATED_SECONDS)) == ["process", "process_use"]
    more = [about_child(look(EVERY_SECONDS)) for _ in range(10)]
    assert [table for each in more for table in each] in ([], ["process_use"]), (
        "its cores: known from the second look on"
    )
    assert about_child(look(RESTATED_SECONDS)) == ["process", "process_use"]


def test_a_users_name_that_comes_late_is_written_when_it_is_there(
    family: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = threading.Event()

    def look_up(uid: int) -> str:
        directory.wait()
        return "told late"

    monkeypatch.setattr(USERS, "_look_up", look_up)
    monkeypatch.setattr(USERS, "_known", {})
    monkeypatch.setattr(USERS, "_slow", False)
    tree = WorkloadSource(NO_GPU, [family[0]])
    now = 0.0
    watch = ProcessWatch(None, tree, clock=lambda: now)
    users: list[object] = []

    def looked() -> list[object]:
        nonlocal now
        now += EVERY_SECONDS
        tree.sample()
        rows = watch.rows(int(now * 1e9))
        users.extend(
            values[4]
            for sql, values in rows
            if sql.startswith("INSERT INTO process ") and values[1] == family[0]
        )
        return users

    until(looked)
    directory.set()
    until(lambda: looked()[-1] == "told late")
    *before, last = users  # a row is also written when something else of it changes
    assert last == "told late" and {*before} == {f"uid {os.getuid()}"}
    tree.close()
    tree.close()


def test_no_more_than_the_most_processes_are_watched() -> None:
    script = f"for i in $(seq {MOST_PROCESSES + 6}); do sleep 600 & done; wait"
    program = subprocess.Popen(["sh", "-c", script], start_new_session=True)
    tree = WorkloadSource(NO_GPU, [program.pid])
    try:
        until(lambda: tree.sample() and len(tree.pids) > MOST_PROCESSES + 6)
        now = 0.0
        watch = ProcessWatch(None, tree, clock=lambda: now)
        names: set[object] = set()

        def looked() -> bool:
            nonlocal now
            now += EVERY_SECONDS
            rows = watch.rows(int(now * 1e9))
            names.update(
                values[1] for sql, values in rows if sql.startswith("INSERT INTO process ")
            )
            return len(names) >= MOST_PROCESSES

        until(looked)
        looked()
        assert len(names) == MOST_PROCESSES, "and the same ones the next time"
    finally:
        os.killpg(program.pid, 9)
        program.wait()
        tree.close()
