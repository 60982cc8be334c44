"""Command lines and signals: of processes that run here now, and of no others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from rich.table import Table
from textual.widgets import Static

from gpuwatch.core.processes import identify, parents
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.rows import GpuProcessRow, Processes
from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.display_options import READ_ONLY, DisplayOptions
from gpuwatch.tui.feed.collector import Collector
from gpuwatch.tui.feed.processes import LiveProcesses, ProcessNow, processes_of
from gpuwatch.tui.feed.snapshot import View
from gpuwatch.tui.home.screen import HomeScreen
from gpuwatch.tui.processes.page import DetailsScreen, ProcessScreen, _variable, details, family
from gpuwatch.tui.processes.table import shortened
from gpuwatch.tui.widgets.base_screen import Dialog
from tests import waiting
from tests.fake_nvml import FakeDriver

from ..conftest import SECRET, Fake
from ..harness import live, running, screen_text, shows, until
from ..process_sessions import Made, add
from ..sessions import GIB, NS, START_UNIX_NS, finished
from .test_processes import chosen

Make = Callable[..., Path]


def recorder(**changes: object) -> dict[str, object]:
    """This process as a session names its recorder."""
    me = identify(os.getpid())
    assert me is not None
    return {**vars(me), **changes}


def started(pid: int) -> float:
    """Start in seconds of the monotonic clock: session time of a session that began at 0."""
    found = identify(pid)
    assert found is not None
    slept = time.clock_gettime(time.CLOCK_BOOTTIME) - time.monotonic()
    return found.start_time / os.sysconf("SC_CLK_TCK") - slept


def made(process: subprocess.Popen[bytes], **changes: float) -> Made:
    """The process as a recorder notes it, at second 80 of the session."""
    return Made(process.pid, "python -c", started=changes.get("started", started(process.pid)))


def found(path: Path) -> ProcessNow:
    """The process in the newest snapshot."""
    with SessionReader(path) as reader:
        collector = Collector(reader)
        collector.update()
        (process,) = collector.snapshot(View()).processes
    return process


def test_the_whole_command_line_of_a_live_process_is_known(
    session: Make, sleeper: subprocess.Popen[bytes]
) -> None:
    process = found(add(session(), made(sleeper)))
    assert process.command is not None and process.command.endswith(f"--config 7b.yaml {SECRET}")
    identified = identify(sleeper.pid)
    assert identified is not None and process.start == identified.start_time


def test_a_process_that_has_the_pid_of_a_recorded_one_is_not_shown_for_it(
    session: Make, sleeper: subprocess.Popen[bytes]
) -> None:
    earlier = started(sleeper.pid) - 2
    process = found(add(session(), made(sleeper, started=earlier)))
    assert (process.command, process.start, process.name) == (None, None, "python -c")


ELSEWHERE = [
    {"recorder": {"host": "elsewhere", "machine": "1", "boot_id": "another"}},
    {"recorder": {"pid_namespace": 1}},
    {"recorder": {"boot_id": "before the restart"}},
    {"result": {"code": 0, "t": 90 * NS}},
]


@pytest.mark.parametrize("where", ELSEWHERE, ids=["host", "namespace", "boot", "finished"])
def test_of_a_recording_from_elsewhere_or_that_is_over_nothing_is_read(
    session: Make, sleeper: subprocess.Popen[bytes], where: dict[str, dict[str, object]]
) -> None:
    meta: dict[str, object] = {**where}
    if "recorder" in where:
        meta["recorder"] = recorder(**where["recorder"])
    process = found(add(session(meta=meta), made(sleeper)))
    assert (process.command, process.start) == (None, None)


def test_a_command_line_is_read_once_and_again_when_the_process_is_described_anew(
    session: Make, sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = add(session(), made(sleeper))
    process = replace(found(path), start=None, command=None)
    with SessionReader(path) as reader:
        meta = reader.meta()
    asked: list[int] = []

    def read(pid: int, start: int) -> tuple[str, ...]:
        asked.append(pid)
        return ("a", "b")

    monkeypatch.setattr("gpuwatch.tui.feed.processes.command_line", read)
    processes = LiveProcesses()
    for _ in range(3):
        (told,) = processes.find([process], meta)
    assert told.command == "a b" and asked == [sleeper.pid]
    processes.find([replace(process, name="renamed")], meta)
    assert len(asked) == 2


async def test_the_live_screen_and_its_page_show_it_and_the_page_in_full(
    session: Make, sleeper: subprocess.Popen[bytes]
) -> None:
    path = add(session(), made(sleeper))
    async with live(path, (80, 60)) as (app, pilot):
        await shows(pilot, f" {Path(sys.executable).name} -c ")
        await pilot.press("p", shows=SECRET)
        lines = screen_text(app).splitlines()
        (row,) = [line for line in lines if line.startswith(" run 0")]
        assert row.endswith("…") and SECRET not in row
    assert SECRET.encode() not in path.read_bytes()


async def test_in_the_past_and_of_a_run_that_is_over_there_is_the_name_and_no_signal(
    session: Make, sleeper: subprocess.Popen[bytes]
) -> None:
    over = add(session(meta=finished()), made(sleeper))
    async with live(over, (120, 40)) as (app, pilot):
        await pilot.press("p", shows=f" {sleeper.pid} python -c")
        assert "k signal" not in screen_text(app) and SECRET not in screen_text(app)
    path = add(session("02-bare"), made(sleeper))
    async with live(path, (120, 40)) as (app, pilot):
        await pilot.press("p", shows="k signal")
        await pilot.press("escape", "left", "p", hides=SECRET)
        await pilot.press("k")
        await pilot.pause()
        assert "k signal" not in screen_text(app) and not isinstance(app.screen, Dialog)


@pytest.mark.parametrize("where", ELSEWHERE[:2], ids=["host", "namespace"])
async def test_no_signal_is_offered_for_a_process_of_another_host_or_namespace(
    session: Make, sleeper: subprocess.Popen[bytes], where: dict[str, dict[str, object]]
) -> None:
    path = add(session(meta={"recorder": recorder(**where["recorder"])}), made(sleeper))
    async with live(path, (120, 40)) as (app, pilot):
        await pilot.press("p", shows=f" {sleeper.pid} python -c")
        await pilot.press("k")
        await pilot.pause()
        assert "k signal" not in screen_text(app) and not isinstance(app.screen, Dialog)


@pytest.mark.parametrize(
    ("steps", "number"), [(1, signal.SIGTERM), (2, signal.SIGINT), (3, signal.SIGKILL)]
)
async def test_the_page_sends_the_signal_that_is_chosen(
    fake: Fake,
    session: Make,
    sleeper: subprocess.Popen[bytes],
    steps: int,
    number: signal.Signals,
    programs: None,
) -> None:
    async with live(add(session(), made(sleeper)), (80, 24)) as (app, pilot):
        await pilot.press("p", shows=SECRET)
        await pilot.press("k", opens=Dialog)
        text = screen_text(app)
        assert all(each in text for each in ("Cancel", "SIGTERM: ", "SIGINT: ", "SIGKILL: "))
        assert sleeper.poll() is None
        await pilot.press(*["down"] * steps, "enter")
        await shows(pilot, f"sent {number.name} to process {sleeper.pid}")
        assert sleeper.wait(60) == -number or number == signal.SIGINT


async def test_who_only_looks_sends_nothing_from_the_page(
    session: Make, sleeper: subprocess.Popen[bytes]
) -> None:
    look = DisplayOptions(read_only=True)
    async with live(add(session(), made(sleeper)), look=look) as (app, pilot):
        await pilot.press("p", shows=SECRET)
        await pilot.press("k", shows=READ_ONLY)
        assert not isinstance(app.screen, Dialog)


async def test_the_page_of_this_machine_shows_command_lines_of_a_real_recording(
    tmp_path: Path,
    sleeper: subprocess.Popen[bytes],
    monkeypatch: pytest.MonkeyPatch,
    programs: None,
) -> None:
    driver = FakeDriver(tmp_path)
    driver.processes(0, (sleeper.pid, 3 * GIB, "compute"))
    for name, value in driver.variables.items():
        monkeypatch.setenv(name, value)
    async with running(HomeScreen, (120, 40)) as (_, pilot):
        await shows(pilot, "p processes")
        await pilot.press("p", shows=SECRET)


# One process.


HIDDEN_USE = GpuProcessRow(0, "gpu0", 7, None, None, None, True, reason="another PID namespace")


def test_the_details_of_a_live_process_have_what_proc_tells(
    session: Make, sleeper: subprocess.Popen[bytes]
) -> None:
    told = dict(details(found(add(session(), made(sleeper)))))
    assert told["command"].endswith(SECRET) and told["user"] == "alice"
    assert told["parent"].startswith(f"{os.getpid()}  ")
    assert (told["directory"], told["threads"]) == ("/usr", "1")
    assert told["CPU"] == "170 % of one core", "the run's, as on the screen of the run"
    assert told["GPU 0"] == "memory 30.0 GiB, GPU 80 %, memory busy 40 %"
    assert time.strftime("%Y-") in told["started"] and told["started"].endswith(" ago")


def test_the_details_of_another_have_what_was_recorded_and_say_why_no_more(
    session: Make, sleeper: subprocess.Popen[bytes]
) -> None:
    over = found(add(session(meta={"result": {"code": 0, "t": 90 * NS}}), made(sleeper)))
    told = dict(details(over))
    assert told["command"] == "python -c" and told["memory"] == "2.00 GiB"
    began = over.started_unix
    assert began is not None and began * NS == pytest.approx(START_UNIX_NS + (over.started or 0))
    assert told["started"] == time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(began))
    for what in ("parent", "directory", "threads"):
        assert told[what] == "—  it is not seen to run on this machine now"
    (hidden,) = processes_of(Processes((), (HIDDEN_USE,)), "bare", NS, ended=False)
    told = dict(details(hidden))
    assert [told[each] for each in ("command", "user", "started", "CPU", "memory")] == ["—"] * 5


async def test_enter_opens_the_details_and_e_shows_the_variables_on_request(
    session: Make, sleeper: subprocess.Popen[bytes]
) -> None:
    path = add(session(), made(sleeper))
    async with live(path, (100, 60)) as (app, pilot):
        await pilot.press("p", shows=SECRET)
        await pilot.press("enter", shows="directory  /usr")
        assert "API_KEY" not in screen_text(app)
        await pilot.press("e", "end")
        await until(pilot, lambda: "API_KEY=hunter2" in written(app))
        await pilot.press("e")
        await until(pilot, lambda: "API_KEY" not in written(app))
        add(path, made(sleeper), t=85, running=False)
        await shows(pilot, "it has ended, or left the GPUs")
        await pilot.press("escape", opens=ProcessScreen)
    assert b"hunter2" not in path.read_bytes()


async def test_variables_of_another_user_are_refused_with_the_reason(
    session: Make, sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpuwatch.tui.processes.page.environment", lambda pid, start: None)
    async with live(add(session(), made(sleeper))) as (app, pilot):
        await pilot.press("p", shows=SECRET)
        await pilot.press("enter", shows="e variables")
        await pilot.press("e")
        await until(pilot, lambda: "its user and root alone may read it" in written(app))


def written(app: GpuwatchApp) -> str:
    """The whole text of the details, also what is scrolled away."""
    assert isinstance(app.screen, DetailsScreen)
    table = app.screen.query_one(Static).content
    assert isinstance(table, Table)
    return "\n".join(str(cell) for column in table.columns for cell in column.cells)


@pytest.mark.parametrize(
    ("over", "read_only"), [(True, False), (False, True)], ids=["finished", "only looks"]
)
async def test_variables_are_not_offered_of_what_does_not_run_or_to_who_only_looks(
    session: Make, sleeper: subprocess.Popen[bytes], over: bool, read_only: bool
) -> None:
    path = add(session(meta=finished() if over else {}), made(sleeper))
    async with live(path, look=DisplayOptions(read_only=read_only)) as (app, pilot):
        await pilot.press("p", shows=f" {sleeper.pid} ")
        await pilot.press("enter", shows="threads")
        await pilot.press("e")
        await pilot.pause()
        assert "variables" not in screen_text(app) and "API_KEY" not in written(app)


# As trees.


@pytest.fixture
def parent_and_child() -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A shell, and the PID of what it waits for."""
    shell = subprocess.Popen(["sh", "-c", "sleep 601 & wait"])
    (child,) = waiting.until(
        lambda: [pid for pid, parent in parents().items() if parent == shell.pid]
    )
    yield shell, child
    os.kill(child, signal.SIGKILL)
    shell.wait()


def test_a_tree_has_the_parent_and_the_children_of_what_runs_here(
    session: Make, parent_and_child: tuple[subprocess.Popen[bytes], int]
) -> None:
    shell, child = parent_and_child
    process = found(add(session(), made(shell)))
    tree = family([process])
    pids = [each.pid for each, _ in tree]
    assert pids[0] == os.getpid() and tree[0][1] == ""
    at = pids.index(shell.pid)
    assert tree[at] == (process, "└─ ") and pids[at + 1] == child and tree[at + 1][1] == "   └─ "
    assert tree[at + 1][0].command in ("sleep 601", "sh -c 'sleep 601 & wait'")
    assert tree[at + 1][0].cores is None and tree[at + 1][0].reason and tree[at + 1][0].user
    (alone,) = family([replace(process, start=None)])
    assert alone == (replace(process, start=None), ""), "it does not run here"


async def test_t_shows_trees_and_the_list_again(
    session: Make, parent_and_child: tuple[subprocess.Popen[bytes], int]
) -> None:
    shell, child = parent_and_child
    async with live(add(session(), made(shell)), (120, 40)) as (app, pilot):
        await pilot.press("p", shows="T tree")
        await pilot.press("T", shows="   └─ sleep 601")
        await shows(pilot, "a parent or child, which is not sampled")
        await pilot.press("slash", *"nobody's", shows="no process matches nobody's: Esc shows all")
        await pilot.press("escape", shows="   └─ sleep 601")
        await pilot.press("home", "slash", *str(shell.pid), shows=" 1 of 1 process, ")
        await until(pilot, lambda: chosen(app).startswith(f"{shell.pid} "))  # not its parent
        await pilot.press("escape")
        await pilot.press("end", "enter", shows=f"parent     {shell.pid}  sh -c")
        await pilot.press("escape", "T")
        await until(
            pilot, lambda: "└─" not in screen_text(app) and f" {child} " not in screen_text(app)
        )


async def test_no_tree_is_offered_of_a_run_that_is_over(
    session: Make, sleeper: subprocess.Popen[bytes]
) -> None:
    async with live(add(session(meta=finished()), made(sleeper)), (120, 40)) as (app, pilot):
        await pilot.press("p", shows=f" {sleeper.pid} ")
        assert "T tree" not in screen_text(app)


def test_both_ends_of_a_long_description_are_kept() -> None:
    text = "process 4711 of alice: python3 /home/alice/llm/pretrain.py --config a.yaml --job 7"
    assert shortened(text, 200) == text
    cut = shortened(text, 60)
    assert len(cut) == 60 and cut.startswith("process 4711 of alice") and cut.endswith("--job 7")


def test_variables_are_quoted_where_they_cannot_be_shown() -> None:
    assert _variable("PATH=/bin:/usr/bin") == "PATH=/bin:/usr/bin"
    assert _variable("ESC=\x1b[31mred") == r"ESC=$'\x1b[31mred'"
    assert _variable("LINES=a\nb") == r"LINES=$'a\x0ab'"
