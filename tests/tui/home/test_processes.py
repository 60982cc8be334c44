"""The processes on the home screen: selected, sorted, narrowed, and signalled by the command."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from gpuwatch.core.live_process import command_text
from gpuwatch.core.processes import start_time
from gpuwatch.session.rows import GpuProcessRow
from gpuwatch.tui.display_options import READ_ONLY, DisplayOptions
from gpuwatch.tui.feed.feed import News
from gpuwatch.tui.feed.processes import ProcessNow
from gpuwatch.tui.feed.snapshot import Snapshot
from gpuwatch.tui.home.screen import HomeScreen
from gpuwatch.tui.processes.page import DetailsScreen
from gpuwatch.tui.processes.table import NOT_HERE, ProcessTable
from gpuwatch.tui.widgets.base_screen import Dialog

from ..conftest import Fake, entry
from ..harness import Keys, on_top, running, screen_text, shows, until

pytestmark = pytest.mark.usefixtures("programs")


def on_gpu(pid: int, size: int, cores: float = 0.5, name: str = "train.py") -> ProcessNow:
    use = (GpuProcessRow(0, "gpu0", pid, None, None, size, True, share=0.5),)
    return ProcessNow(pid, name, "alice", False, None, use, cores, 2**30, 0, True, 10**9)


def here(process: subprocess.Popen[bytes]) -> ProcessNow:
    """A process that runs on this machine, with what ``/proc`` tells of it."""
    start, words = start_time(process.pid), process.args
    assert start is not None and isinstance(words, list)
    return replace(on_gpu(process.pid, 9), start=start, command=command_text(words))


@asynccontextmanager
async def home(
    fake: Fake,
    *processes: ProcessNow,
    look: DisplayOptions = DisplayOptions(),  # noqa: B008
) -> AsyncIterator[tuple[HomeScreen, ProcessTable, Keys]]:
    """The home screen with these processes on its GPU, and its table of them focused."""

    class Home(HomeScreen):
        def take(self, news: News) -> None:
            if isinstance(news, Snapshot):
                news = replace(news, processes=processes)
            super().take(news)

    async with running(Home, (100, 30), look) as (app, pilot):
        screen = on_top(app, Home)
        table = screen.query_one(ProcessTable)
        await until(pilot, lambda: table.display and table.size.height > 2)
        table.focus()
        await pilot.pause()
        yield screen, table, pilot


async def test_arrows_select_and_o_sorts_and_the_selection_stays(fake: Fake) -> None:
    small, large = on_gpu(11, 2**30, cores=3.0), on_gpu(22, 2**33)
    async with home(fake, large, small) as (_, table, pilot):
        assert table.selected == large
        await pilot.press("down")
        assert table.selected == small
        await pilot.press("o", "o", shows="processes on the GPUs  by CPU")
        assert table.selected == small
        await pilot.press("up")
        assert table.selected == small, "it is the first one now"


@pytest.mark.parametrize("size", [(60, 20), (80, 21)], ids=str)
async def test_where_no_process_fits_one_row_counts_them_and_names_the_key(
    fake: Fake, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    monkeypatch.setenv("FAKE_GPUS", "8")
    fake.list(*(entry(fake.folder / f"{n}.gpuwatch") for n in range(20)))
    async with home(fake, *(on_gpu(pid, 9) for pid in range(11, 20))) as (_, table, pilot):
        await shows(pilot, " finished ")
        await pilot.resize_terminal(*size)
        await shows(pilot, "── 9 processes on the GPUs: ")
        assert not table.has_focus, "nobody acts on a process that is not seen"
        await pilot.resize_terminal(100, 40)
        await shows(pilot, "processes on the GPUs  by GPU memory")


async def test_a_filter_narrows_the_processes(fake: Fake) -> None:
    async with home(fake, on_gpu(11, 9), on_gpu(22, 8, name="ollama")) as (_, table, pilot):
        await pilot.press("slash", *"olla", "enter", shows="ollama")
        assert "train.py" not in screen_text(table.app)  # type: ignore[arg-type]
        await pilot.press("escape", shows="train.py")


async def test_k_asks_with_user_and_command_line_and_only_yes_sends(
    fake: Fake, sleeper: subprocess.Popen[bytes]
) -> None:
    async with home(fake, here(sleeper)) as (_, _, pilot):
        await pilot.press("k", opens=Dialog)
        text = screen_text(pilot.app)  # type: ignore[arg-type]
        assert f"process {sleeper.pid} of " in text and "time.sleep(600)" in text
        await pilot.press("enter")
        await until(pilot, lambda: not isinstance(pilot.app.screen, Dialog))
        assert sleeper.poll() is None, "Enter alone cancels"
        await pilot.press("k", opens=Dialog)
        await pilot.press("right", "enter", shows="sent SIGTERM")
        await until(pilot, lambda: sleeper.poll() == -signal.SIGTERM)


async def test_marked_processes_are_signalled_together(
    fake: Fake, sleeper: subprocess.Popen[bytes]
) -> None:
    other = subprocess.Popen(sleeper.args)
    third = on_gpu(22, 8, name="ollama")
    try:
        async with home(fake, here(sleeper), here(other), third) as (_, table, pilot):
            await pilot.press("space", "space")
            assert table.selected == third, "each mark goes on to the next"
            await shows(pilot, "2 marked")
            await pilot.press("up", "up", "space", shows="1 marked")
            await pilot.press("up", "space", "up", "k", opens=Dialog)
            text = screen_text(pilot.app)  # type: ignore[arg-type]
            assert f"process {sleeper.pid} of " in text and f"process {other.pid} of " in text
            await pilot.press("right", "enter", shows="sent SIGTERM to 2 processes")
            await until(pilot, lambda: sleeper.poll() == other.poll() == -signal.SIGTERM)
    finally:
        other.kill()
        other.wait()


async def test_who_only_looks_sends_nothing(fake: Fake, sleeper: subprocess.Popen[bytes]) -> None:
    look = DisplayOptions(read_only=True)
    async with home(fake, here(sleeper), look=look) as (_, _, pilot):
        await pilot.press("k", shows=READ_ONLY)
        assert not isinstance(pilot.app.screen, Dialog)


async def test_a_process_that_ended_meanwhile_is_not_asked_about(
    fake: Fake, sleeper: subprocess.Popen[bytes]
) -> None:
    process = here(sleeper)
    sleeper.kill()
    sleeper.wait()
    async with home(fake, process) as (_, _, pilot):
        await pilot.press("k", shows="has ended")


async def test_no_signal_is_offered_for_what_is_not_seen_to_run_here(
    fake: Fake, sleeper: subprocess.Popen[bytes]
) -> None:
    async with home(fake, on_gpu(sleeper.pid, 9), here(sleeper)) as (_, table, pilot):
        await pilot.press("k")
        assert table.selected is not None and table.selected.start is None
        assert "k signal" not in screen_text(pilot.app)  # type: ignore[arg-type]
        assert not isinstance(pilot.app.screen, Dialog)


async def test_the_footer_offers_a_signal_with_the_row_that_can_take_one(
    fake: Fake, sleeper: subprocess.Popen[bytes]
) -> None:
    async with home(fake, on_gpu(1, 9), here(sleeper)) as (_, _, pilot):
        assert "k signal" not in screen_text(pilot.app)  # type: ignore[arg-type]
        await pilot.press("down", shows="k signal")


async def test_the_command_line_is_shown_and_found(
    fake: Fake, sleeper: subprocess.Popen[bytes]
) -> None:
    async with home(fake, here(sleeper), on_gpu(22, 8, name="ollama")) as (_, _, pilot):
        await shows(pilot, f" {Path(sys.executable).name} -c ")
        assert sys.executable not in screen_text(pilot.app), "its folder tells little"  # type: ignore[arg-type]
        await pilot.press("slash", *"sleep(600)", "enter")
        await until(pilot, lambda: "ollama" not in screen_text(pilot.app))  # type: ignore[arg-type]
        assert f" {sleeper.pid} " in screen_text(pilot.app)  # type: ignore[arg-type]


async def test_enter_shows_all_of_the_selected_process(
    fake: Fake, sleeper: subprocess.Popen[bytes]
) -> None:
    async with home(fake, here(sleeper)) as (screen, _, pilot):
        await pilot.press("enter", shows="directory ")
        assert isinstance(pilot.app.screen, DetailsScreen)
        await shows(pilot, "time.sleep(600)")
        await pilot.press("escape")
        await until(pilot, lambda: pilot.app.screen is screen)


async def test_a_mark_on_what_is_not_seen_to_run_here_says_so_and_marks_no_session(
    fake: Fake,
) -> None:
    fake.list(entry(fake.folder / "01.gpuwatch"))
    async with home(fake, on_gpu(22, 9)) as (screen, _, pilot):
        await shows(pilot, " finished ")
        await pilot.press("space", shows=f"{NOT_HERE}: process 22")
        assert screen.state.marked == ()


async def test_without_a_gpu_those_that_use_the_cpu_are_told(
    fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_GPUS", "0")
    fake.list(entry(fake.folder / "a.gpuwatch"))
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        async with running(HomeScreen) as (_, pilot):
            await shows(pilot, "processes on the CPU  by CPU ↓")
            await shows(pilot, f"{busy.pid} ")
    finally:
        busy.kill()
        busy.wait()


async def test_without_a_gpu_half_of_the_rows_at_most_are_for_processes_and_only_for_busy_ones(
    fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_GPUS", "0")
    fake.list(*(entry(fake.folder / f"{n}.gpuwatch") for n in range(20)))
    for busy, rows in (30, 5), (2, 2), (0, 2):
        many = [replace(on_gpu(pid, 0), gpus=()) for pid in range(11, 41)]
        many = [*many[:busy], *(replace(each, cores=0.002) for each in many[busy:])]
        async with home(fake, *many) as (_, table, pilot):
            await pilot.resize_terminal(80, 24)
            await until(pilot, lambda rows=rows: table.size == (80, 2 + rows))  # type: ignore[misc]
            await shows(pilot, f" 1 to {rows} of 30 ")


async def test_without_a_gpu_a_narrowed_or_short_list_keeps_no_empty_rows(
    fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_GPUS", "0")
    fake.list(entry(fake.folder / "a.gpuwatch"))
    many = [replace(on_gpu(pid, 0, cores=0.0, name=f"job{pid}"), gpus=()) for pid in range(11, 15)]
    async with home(fake, *many) as (_, table, pilot):
        await pilot.resize_terminal(100, 64)
        await until(pilot, lambda: table.size.height == 2 + 4)
        await pilot.press("slash", *"job1", "backspace", *"12", "enter")
        await until(pilot, lambda: table.size.height == 2 + 1)
