"""Pages and actions of the live screen: log, processes, report, and read-only mode."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.display_options import READ_ONLY, DisplayOptions
from gpuwatch.tui.live.screen import LiveScreen
from gpuwatch.tui.log.screen import LogScreen
from gpuwatch.tui.processes.page import ProcessScreen

from ..conftest import Fake
from ..harness import live, on_top, piloted, screen_text, shows, until
from ..process_sessions import LOADERS, RUN, STRANGER, add
from ..sessions import finished, plan
from ..snapshots_of import page_text

Make = Callable[..., Path]
LOG = [("stdout", f"line {n}") for n in range(90)]


async def test_l_opens_the_log_and_escape_leads_back(session: Make) -> None:
    async with live(session(log=LOG)) as (_, pilot):
        await pilot.press("l", opens=LogScreen)
        await shows(pilot, "line 89")
        await pilot.press("escape", shows="GPU utilization")


async def test_of_an_earlier_moment_the_log_ends_there(session: Make) -> None:
    async with live(session(log=LOG), (120, 40)) as (app, pilot):
        await pilot.press("home", shows="at 0:00 of")
        await pilot.press("l", opens=LogScreen)
        assert isinstance(app.screen, LogScreen) and app.screen.upto_ns == 0


async def test_p_opens_the_processes_of_the_newest_snapshot(session: Make) -> None:
    async with live(session()) as (_, pilot):
        await pilot.press("p", opens=ProcessScreen)
        await pilot.press("escape", shows="GPU utilization")


async def test_e_writes_the_report_of_the_study_and_says_where_it_is(
    session: Make, fake: Fake
) -> None:
    path = session(meta=finished(), alive=False)
    plan(path.parent, path.stem)
    async with live(path, (80, 30)) as (app, pilot):
        await pilot.press("e", shows="» report:")
        rows = screen_text(app).splitlines()
        at = next(at for at, row in enumerate(rows) if "» report:" in row)
        text = "".join(row.strip() for row in rows[at:-1])
        assert str(path.parent / "summary.html") in text, "the whole path, in as many rows"
        await pilot.press("escape", hides="report:")
    assert fake.asked == [["report", str(path.parent)]]


@pytest.mark.parametrize("key", ["s", "e"])
async def test_where_the_screen_may_not_act_a_key_says_so_and_does_nothing(
    session: Make, fake: Fake, key: str
) -> None:
    path = session()
    app = GpuwatchApp(lambda: LiveScreen(path, refresh=0.1), DisplayOptions(read_only=True))
    async with piloted(app, (100, 24)) as pilot:
        await shows(pilot, "GPU utilization")
        await pilot.press(key, shows=READ_ONLY)
    assert fake.asked == []


async def test_space_plays_a_run_that_is_over_and_escape_shows_all_of_it_again(
    session: Make,
) -> None:
    async with live(session(meta=finished(), alive=False)) as (_, pilot):
        await pilot.press("space", shows="◀ at ")
        await pilot.press("escape", shows="✓ finished  1:30")


async def test_snapshots_that_arrive_under_another_page_are_not_drawn(session: Make) -> None:
    async with live(session()) as (app, pilot):
        below = on_top(app, LiveScreen)
        await pilot.press("i", shows="every number")
        seen = below.snapshot
        await until(pilot, lambda: below.snapshot is not seen)
        await shows(pilot, "every number")
        await pilot.press("escape", shows="GPU utilization")


async def test_a_large_screen_has_the_processes_on_the_gpu_it_shows(session: Make) -> None:
    path = add(session(gpus=2), RUN, *LOADERS, STRANGER)
    async with live(path, (160, 50)) as (_, pilot):
        await shows(pilot, "── processes")
        await shows(pilot, "bob, docker 3f2a9c1b4d5e")
        await pilot.press("1", hides="bob, docker 3f2a9c1b4d5e   ")
    assert "── processes" not in page_text(path), "the gauges come first"
