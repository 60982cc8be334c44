"""A study at a place before its first run, and between two of its jobs."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gpuwatch.session import placement
from gpuwatch.session.placement import JobState, Placement
from gpuwatch.tui.display_options import DisplayOptions
from gpuwatch.tui.feed.snapshot import View
from gpuwatch.tui.home.screen import HomeScreen
from gpuwatch.tui.live.screen import LiveScreen
from gpuwatch.tui.live.waiting import WaitingScreen
from gpuwatch.tui.plain.plain import end_lines

from ..conftest import Fake
from ..harness import live, on_top, running, screen_text, shows, until
from ..sessions import end, finished, plan
from ..snapshots_of import snapshot_of

Make = Callable[..., Path]
RUNS = ("01-bare", "02-docker")


def queued(**changes: object) -> Placement:
    now = time.time()
    known = Placement(
        place="slurm,gres=gpu:8",
        attempt="0123456789abcdef",
        state=JobState.QUEUED,
        reason="Resources",
        native="4711",
        starts=time.mktime((2026, 11, 25, 23, 45, 0, 0, 0, -1)),
        written=now,
        changes=(("starting", now - 80.0), ("queued", now - 75.0)),
    )
    return replace(known, **changes)  # type: ignore[arg-type]


@pytest.fixture
def study(tmp_path: Path) -> Path:
    folder = tmp_path / "study"
    folder.mkdir()
    plan(folder, *RUNS)
    placement.write(folder, queued())
    return folder


async def test_it_says_why_it_waits_and_gives_way_to_the_first_run(
    study: Path, session: Make
) -> None:
    before = session("01-bare", meta=finished())
    async with running(lambda: WaitingScreen(study, [study / before.name])) as (app, pilot):
        await shows(pilot, "queued on slurm,gres=gpu:8 (job 4711), expected to start at 23:45:")
        for word in ("Resources", "2 runs: bare, docker"):
            assert word in screen_text(app)
        since = re.search(r"\((\d+):(\d\d)\)", screen_text(app))
        assert since is not None and 60 * int(since[1]) + int(since[2]) >= 75
        placement.write(study, queued(state=JobState.STARTING, reason=None, where="n1"))
        await shows(pilot, "starting on n1")
        (study / before.name).write_bytes(before.read_bytes())  # of an earlier attempt
        assert isinstance(app.screen, WaitingScreen)
        app.screen._look()
        await pilot.pause()
        assert isinstance(app.screen, WaitingScreen)
        (study / "02-docker.gpuwatch").write_bytes(before.read_bytes())
        await until(pilot, lambda: isinstance(app.screen, LiveScreen))
        assert isinstance(app.screen, LiveScreen) and app.screen.path.name == "02-docker.gpuwatch"


async def test_a_first_run_that_is_over_when_it_is_read_gives_way_to_the_next(
    study: Path, session: Make, tmp_path: Path
) -> None:
    first = session("01-bare", meta=finished())
    whole = first.rename(tmp_path / "whole")
    placement.write(study, queued(state=JobState.RUNNING, reason=None, where="n1"))
    async with running(lambda: WaitingScreen(study)) as (app, pilot):
        whole.rename(first)
        await until(pilot, lambda: isinstance(app.screen, LiveScreen))
        live_screen = on_top(app, LiveScreen)
        await until(pilot, lambda: live_screen.snapshot is not None)
        second = session("02-docker")
        await until(pilot, lambda: getattr(app.screen, "path", study) == second)


async def test_q_leaves_it_to_go_on_and_says_how_to_come_back(study: Path) -> None:
    async with running(lambda: WaitingScreen(study)) as (app, pilot):
        await shows(pilot, "queued")
        await pilot.press("q")
    assert app.farewell[1] == "come back: gpuwatch attach study"


async def test_s_stops_it_after_a_question(study: Path, fake: Fake) -> None:
    async with running(lambda: WaitingScreen(study)) as (app, pilot):
        await pilot.press("s", "enter")
        assert fake.asked == []
        await pilot.press("s", "right", "enter")
        await until(pilot, lambda: fake.asked == [["stop", str(study)]])
        over = queued(state=JobState.CANCELLED, reason=None, starts=None, fetched=True)
        placement.write(study, over)
        await shows(pilot, "cancelled on slurm,gres=gpu:8")
        await pilot.press("s", shows="it is over already")
        await pilot.press("q")
    assert app.farewell == []


async def test_where_nothing_may_be_stopped_s_does_nothing(study: Path, fake: Fake) -> None:
    look = DisplayOptions(read_only=True)
    async with running(lambda: WaitingScreen(study), look=look) as (_, pilot):
        await pilot.press("s", "right", "enter", shows="read-only")
    assert fake.asked == []


async def test_hostile_words_of_a_scheduler_stay_words(study: Path) -> None:
    placement.write(
        study, queued(reason="\x1b]0;x\x07[red]\x9b31m", hint="\x1b[2J", native="\n\n7")
    )
    async with running(lambda: WaitingScreen(study), size=(40, 10)) as (app, pilot):
        await shows(pilot, "[red]")
        assert "\x1b" not in screen_text(app) and "\x9b" not in screen_text(app)


@pytest.mark.parametrize("over", [False, True])
async def test_escape_goes_to_the_sessions_and_q_there_tells_of_what_still_waits(
    study: Path, fake: Fake, over: bool
) -> None:
    async with running(lambda: WaitingScreen(study)) as (app, pilot):
        app.started.append(study)
        await pilot.press("escape", opens=HomeScreen)
        if over:
            placement.write(study, queued(state=JobState.CANCELLED, fetched=True))
        await pilot.press("q")
        await pilot.pause()
    assert app.farewell[:1] == ([] if over else ["the study goes on"])


async def test_the_live_screen_says_what_is_unknown_and_what_the_next_run_waits_for(
    session: Make,
) -> None:
    path = session(RUNS[0])
    plan(path.parent, *RUNS)
    placement.write(path.parent, queued(written=0))
    async with live(path, size=(120, 30)) as (_, pilot):
        await shows(pilot, " ? nobody here follows it on slurm,gres=gpu:8")
    (last,) = end_lines(snapshot_of(path, View()))
    assert last.startswith("the run is out of sight after 1:30: nobody here follows it on slurm")
    placement.write(path.parent, queued(state=JobState.UNKNOWN, reason="no controller", hint="h"))
    assert snapshot_of(path, View()).gauges[0].reading.value is None, "the last one is not of now"
    async with live(path, size=(120, 30)) as (_, pilot):
        await shows(pilot, " ? slurm,gres=gpu:8 does not answer: no controller; h")
        placement.write(path.parent, queued(starts=None))
        end(path)
        await shows(pilot, "run 2 of 2, queued on slurm,gres=gpu:8 (job 4711): Resources")
