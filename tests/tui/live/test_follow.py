"""Following a study from run to run, also after attaching and with other screens on top."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from textual.screen import Screen

from gpuwatch.session.study.study_folder import held
from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.compare.screen import CompareScreen
from gpuwatch.tui.live.screen import LiveScreen
from tests.tmux import Pane

from ..conftest import ROOT, Fake
from ..harness import live, running, screen_text, shows, until
from ..sessions import end, finished, plan

Make = Callable[..., Path]
RUNS = ("01-bare", "02-docker", "03-apptainer", "04-bare")


def shown(app: GpuwatchApp) -> Path | None:
    return app.screen.path if isinstance(app.screen, LiveScreen) else None


def newest(screen: Screen[Any]) -> Path | None:
    """The newest run that the screen knows of its study."""
    assert isinstance(screen, LiveScreen)
    known = screen._newest.upcoming if screen._newest else None
    return known.newest if known else None


def study(session: Make, *names: str) -> list[Path]:
    """Runs of one study, the last one live; their recorder is this process."""
    paths = [session(name, meta=finished()) for name in names[:-1]] + [session(names[-1])]
    plan(paths[0].parent, *RUNS)
    return paths


async def test_the_next_run_comes_by_itself(session: Make) -> None:
    (path,) = study(session, RUNS[0])
    async with live(path) as (app, pilot):
        end(path)
        await shows(pilot, "next: docker, run 2 of 4 …")
        second = session(RUNS[1], environment="docker")
        await until(pilot, lambda: shown(app) == second)


async def test_after_a_comparison_the_study_is_followed_again_at_the_run_that_goes_on(
    session: Make,
) -> None:
    (path,) = study(session, RUNS[0])
    async with live(path) as (app, pilot):
        screen = app.screen
        end(path)
        await shows(pilot, "next: docker")
        await pilot.press("c", opens=CompareScreen)
        for name in RUNS[1:3]:
            session(name, meta=finished())
        last = session(RUNS[3])
        await until(pilot, lambda: newest(screen) == last)
        assert isinstance(app.screen, CompareScreen), "the next run does not take the screen"
        await pilot.press("escape")
        await until(pilot, lambda: shown(app) == last)


async def test_where_the_runs_after_it_are_over_too_the_one_to_come_is_waited_for(
    session: Make,
) -> None:
    (path,) = study(session, RUNS[0])
    async with live(path) as (app, pilot):
        end(path)
        await shows(pilot, "next: docker")
        await pilot.press("c", opens=CompareScreen)
        second = session(RUNS[1], environment="docker", meta=finished())
        await pilot.press("escape")
        await until(pilot, lambda: shown(app) == second)
        await shows(pilot, "next: apptainer, run 3 of 4 …")


async def test_c_at_the_moment_the_next_run_begins_compares_all_the_same(session: Make) -> None:
    first, second = study(session, *RUNS[:2])
    async with running(lambda: LiveScreen(second, follow=True)) as (app, pilot):
        await pilot.press("c", opens=CompareScreen)
        assert isinstance(app.screen, CompareScreen) and app.screen.paths == [first, second]
        await pilot.press("escape")
        await until(pilot, lambda: shown(app) == second)


async def test_c_on_the_first_run_that_goes_on_has_nothing_to_compare(session: Make) -> None:
    (path,) = study(session, RUNS[0])
    async with live(path) as (app, pilot):
        await pilot.press("c")
        assert shown(app) == path


async def test_a_run_of_before_that_was_opened_stays(session: Make) -> None:
    first, _ = study(session, *RUNS[:2])
    async with live(first) as (app, _):
        assert shown(app) == first and "next:" not in screen_text(app)


async def test_s_in_a_study_ends_its_folder_and_q_waits_for_that(session: Make, fake: Fake) -> None:
    (path,) = study(session, RUNS[0])
    async with live(path) as (app, pilot):
        await pilot.press("s", "right", "enter", "q")
        await until(pilot, lambda: bool(app.farewell))
    assert fake.asked == [["stop", str(path.parent)]]
    assert not any("goes on" in line for line in app.farewell)


async def test_q_twice_leaves_at_once_and_the_stop_is_carried_out(
    session: Make, fake: Fake
) -> None:
    (path,) = study(session, RUNS[0])
    async with live(path) as (app, pilot):
        await pilot.press("s", "right", "enter", "q", "q")
        await pilot.pause()
    assert app.farewell == ["the run is being stopped", f"see it again: gpuwatch replay {path}"]
    async with live(path) as (_, pilot):
        await until(pilot, lambda: fake.asked == [["stop", str(path.parent)]])


async def test_a_run_that_was_stopped_here_is_not_followed(session: Make, fake: Fake) -> None:
    (path,) = study(session, RUNS[0])
    async with live(path) as (app, pilot):
        await pilot.press("s", "right", "enter")
        end(path)
        await shows(pilot, "✓ finished")
        assert "next:" not in screen_text(app)


@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
def test_attach_between_two_runs_waits_with_the_study(
    session: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    folder = data / "gpuwatch" / "studies" / "study"
    path = session(RUNS[0], meta=finished(), alive=False)
    folder.parent.mkdir(parents=True)
    path.parent.rename(folder)
    plan(folder, *RUNS)
    folders = f"XDG_DATA_HOME={shlex.quote(str(data))} XDG_STATE_HOME={shlex.quote(str(tmp_path))}"
    source = f"PYTHONPATH={shlex.quote(str(ROOT / 'src'))} {folders}"
    script = tmp_path / "attach.sh"
    script.write_text(f"{source} {sys.executable} -m gpuwatch attach; echo code $?\n")
    with closing(Pane(tmp_path, (80, 24))) as terminal:
        with held(folder):
            terminal.type(f"clear; sh {script}", "Enter")
            rows = terminal.wait("next: docker, run 2 of 4").splitlines()
            assert "mnist-cnn in bare" in rows[0]
            second = session(RUNS[1], environment="docker")
            os.rename(second, folder / second.name)
            terminal.wait("run 2 of 4  ▶ running")
            terminal.type("q")
            assert "the study of 4 runs goes on" in terminal.wait("code 0")
        terminal.type(f"clear; sh {script}", "Enter")
        terminal.wait("nothing is running")


async def test_the_next_run_shows_what_was_looked_at(session: Make) -> None:
    (path,) = study(session, RUNS[0])
    async with live(path, (120, 40)) as (app, pilot):
        await pilot.press("M", "+", shows="Process memory")
        await shows(pilot, "history: 10 s")
        second = session(RUNS[1], environment="docker")
        end(path)
        await until(pilot, lambda: shown(app) == second)
        await shows(pilot, "Process memory")
        assert "history: 10 s" in screen_text(app)
