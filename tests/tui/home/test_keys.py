"""Every key of the home screen that looks for, orders, names, marks or removes: on real sessions,
by the real commands."""

from __future__ import annotations

import asyncio
import json
import os
import string
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from textual import events

from gpuwatch.analysis.summary.listing import ListedSession, values_of
from gpuwatch.session.study import labels
from gpuwatch.session.study.labels import Label
from gpuwatch.tui import commands
from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.compare.screen import CompareScreen
from gpuwatch.tui.display_options import READ_ONLY, DisplayOptions
from gpuwatch.tui.home.screen import HomeScreen
from gpuwatch.tui.home.table import SessionTable
from gpuwatch.tui.home.watch import fresh
from gpuwatch.tui.live.screen import LiveScreen
from gpuwatch.tui.log.screen import LogScreen
from gpuwatch.tui.widgets.base_screen import Dialog

from ..conftest import Fake, entry
from ..harness import Keys, on_top, piloted, running, screen_text, shows, until
from ..sessions import Script, finished, plan, write

pytestmark = pytest.mark.usefixtures("programs")


@pytest.fixture
def studies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A study of two runs, and two sessions that are alone, one newer and one older."""
    for name in ("data", "state", "cache"):
        monkeypatch.setenv(f"XDG_{name.upper()}_HOME", str(tmp_path / name))
    home = tmp_path / "data" / "gpuwatch" / "studies"
    plan(home / "pair", "01-bare", "02-docker")
    plan(home / "alone", "01-bare")
    plan(home / "older", "01-bare")
    session(home / "pair" / "01-bare", start=100, name="gcn")
    session(home / "pair" / "02-docker", start=200, name="gcn", environment="docker")
    session(home / "alone" / "01-bare", start=300, pace=2.0)
    session(home / "older" / "01-bare", start=0, name="resnet18")
    return home


def session(path: Path, **fields: object) -> None:
    script = Script(seconds=8, meta=finished(seconds=8), alive=False)
    write(path.with_suffix(".gpuwatch"), replace(script, **fields))  # type: ignore[arg-type]


@asynccontextmanager
async def home(
    look: DisplayOptions = DisplayOptions(),  # noqa: B008
    size: tuple[int, int] = (80, 24),
) -> AsyncIterator[tuple[HomeScreen, Keys]]:
    """The home screen once it has its list."""
    app = GpuwatchApp(HomeScreen, look)
    async with piloted(app, size) as pilot:
        screen = on_top(app, HomeScreen)
        await until(pilot, lambda: bool(screen.state.entries))
        yield screen, pilot


def titles(screen: HomeScreen) -> list[str]:
    return [item.title for item in screen.state.items]


async def test_a_study_is_opened_and_closed(studies: Path) -> None:
    async with home() as (screen, pilot):
        assert titles(screen) == ["mnist-cnn", "gcn", "resnet18"]
        await shows(pilot, "sessions  4  in 1 study and 2 alone  by started ↓")
        await pilot.press("down", "right", shows="╰ r2 ")
        await pilot.press("down", "left", hides="╰ r2")
        assert screen.state.current is not None and screen.state.current.title == "gcn"
        await pilot.press("enter", shows="│ r1 ")
        await pilot.press("down", "enter", opens=LiveScreen)
        await pilot.press("escape")
        await until(pilot, lambda: screen.app.screen is screen)
        await shows(pilot, "  ✓ finished │ r1 ")


async def test_the_cursor_stays_in_sight_where_the_list_gets_lower(studies: Path) -> None:
    for n in range(12):
        plan(studies / f"newer{n}", "01-bare")
        session(studies / f"newer{n}" / "01-bare", start=1000 + n)
    async with home() as (screen, pilot):
        await until(pilot, lambda: len(titles(screen)) == 15)
        await pilot.press(*["down"] * 13)
        await until(pilot, lambda: screen.state.cursor == 13)
        for rows in (24, 16):
            await pilot.resize_terminal(80, rows)
            await until(pilot, lambda: " gcn " in screen_text(screen.gpuwatch))


async def test_runs_of_a_study_on_the_last_row_come_into_sight(studies: Path) -> None:
    for n in range(12):  # newer ones push the pair down
        plan(studies / f"newer{n}", "01-bare")
        session(studies / f"newer{n}" / "01-bare", start=1000 + n)
    async with home() as (screen, pilot):
        await until(pilot, lambda: len(titles(screen)) == 15)
        await pilot.press(*["down"] * 13)
        await until(pilot, lambda: screen.state.cursor == 13)
        await until(pilot, lambda: " gcn " in screen_text(screen.gpuwatch))
        await pilot.press("right", shows="╰ r2 ")


async def test_the_filter_works_while_it_is_written(studies: Path) -> None:
    async with home() as (screen, pilot):
        await pilot.press("slash", *"res", shows="find: res")
        assert titles(screen) == ["resnet18"]
        await shows(pilot, "sessions  1 of 4")
        await pilot.press("enter", shows="/res  by started")
        await pilot.press("slash", *"?q")  # letters, not keys
        await shows(pilot, "nothing matches res?q")
        await pilot.press("enter", "enter")
        assert screen.app.screen is screen, "no new run where the list is only filtered"
        await pilot.press("escape")
        assert len(titles(screen)) == 3
        await pilot.press("slash", *"env:docker", "enter")
        assert titles(screen) == ["gcn", "gcn"], "a study and its run that is sought"
        await pilot.press("escape")
        assert len(titles(screen)) == 3


async def test_the_order_goes_round_and_turns(studies: Path) -> None:
    async with home() as (screen, pilot):
        await pilot.press("O", shows="by started ↑")
        assert titles(screen) == ["resnet18", "gcn", "mnist-cnn"]
        await pilot.press("o", shows="by elapsed ↓")
        assert titles(screen)[0] == "gcn"
        await pilot.press("o", shows="by step time ↑")
        assert titles(screen) == ["resnet18", "mnist-cnn", "gcn"]
        await pilot.press("o", "o", shows="by MFU ↓")
        await pilot.press("o", shows="by peak mem ↓")
        await pilot.press("o", shows="by name ↑")
        await pilot.press("o", "o", shows="by started ↓")


async def test_name_tags_and_note_are_written_and_shown(studies: Path) -> None:
    async with home() as (_, pilot):
        await pilot.press("R", *"my run", "enter", shows="is called my run")
        await shows(pilot, "  ✓ finished my run")
        await pilot.press("T", *"fast x", "enter", shows="tags fast x")
        await pilot.press("T", "backspace", *"y", "enter", shows="tags fast y")
        await pilot.press("N", *"Before the update", "enter", shows="note Before the update")
        await pilot.press("N", *" never", "escape")
    known = labels.read(studies / "alone")["01-bare.gpuwatch"]
    assert known == Label("my run", ("fast", "y"), "Before the update")


async def test_a_name_that_is_refused_is_told_and_stays_to_be_mended(studies: Path) -> None:
    async with home() as (_, pilot):
        await pilot.press("R", *"last", "enter", shows="'last' cannot be a name")
        await shows(pilot, "name: last")
        await pilot.press(*"ing", "enter", shows="alone is called lasting")
    assert labels.read(studies / "alone")["01-bare.gpuwatch"].name == "lasting"


async def test_pasted_text_is_clean_and_a_note_keeps_its_lines(studies: Path) -> None:
    async with home() as (screen, pilot):
        await pilot.press("N")
        screen.app.post_message(events.Paste("two\rlines\x1b[2J\u202e"))
        await shows(pilot, "note: two↵lines")
        await pilot.press("escape", "R")
        screen.app.post_message(events.Paste("two\rlines\x1b[2J\u202e"))
        await shows(pilot, "name: two lines")
        screen.app.post_message(events.Paste("x" * 80))
        await shows(pilot, "✗ at most 80 characters: the rest is left out")


async def test_deleting_names_what_goes_and_asks(studies: Path) -> None:
    async with home() as (screen, pilot):
        await pilot.press("down", "d", shows="Delete gcn study of 2 runs, started 10-09 08:55?")
        await shows(pilot, "study pair: 2 sessions")
        await pilot.press("escape", "d", shows="Delete gcn study of 2 runs")
        await pilot.press("enter")  # Cancel is where it begins
        await until(pilot, lambda: screen.on_top)
        assert (studies / "pair").exists()
        await pilot.press("d", shows="Delete gcn study of 2 runs")
        await pilot.press("right", "enter", shows="deleted study pair: 2 sessions")
        await until(pilot, lambda: titles(screen) == ["mnist-cnn", "resnet18"])
    assert sorted(os.listdir(studies)) == ["alone", "older"]


async def test_what_is_marked_is_deleted_together(studies: Path) -> None:
    async with home() as (screen, pilot):
        await pilot.press("space", "down", "space", "home", "d")
        await shows(pilot, "Delete 2 marked: mnist-cnn in bare, started 10-09 08:58; resnet18")
        await pilot.press("right", "enter")
        await until(pilot, lambda: titles(screen) == ["gcn"])
        assert screen.state.marked == ()


async def test_a_question_says_that_it_is_about_a_marked_run_elsewhere(studies: Path) -> None:
    labels.change(studies / "alone", "01-bare.gpuwatch", lambda _: Label("best"))
    async with home() as (_, pilot):
        await pilot.press("space", "end", "d")
        await shows(pilot, "Delete the marked best (mnist-cnn) in bare, started 10-09 08:58?")


async def test_no_key_of_ordinary_typing_says_yes(studies: Path) -> None:
    async with home() as (screen, pilot):
        await pilot.press("d", shows="Delete mnist-cnn")
        dialog = screen.app.screen
        await pilot.press(
            *string.ascii_letters, *string.digits, "space", "slash", "minus", "full_stop"
        )
        assert screen.app.screen is dialog
        await pilot.press("enter")
        await until(pilot, lambda: screen.on_top)
        await pilot.app.workers.wait_for_complete()
    assert sorted(os.listdir(studies)) == ["alone", "older", "pair"]


async def test_a_click_answers_too(studies: Path) -> None:
    path = studies / "alone" / "01-bare.gpuwatch"
    async with home() as (screen, pilot):
        for button, left in (("#answer-0", True), ("#answer-1", False)):
            await pilot.press("d", opens=Dialog)
            await pilot.click(button)
            await until(pilot, lambda: screen.on_top)
            await until(pilot, lambda: not screen._acts and path.exists() == left)  # noqa: B023


async def test_a_question_on_its_way_is_not_asked_of_one_who_writes(
    studies: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, run = asyncio.Event(), commands.run

    async def held(*arguments: str) -> commands.Outcome:
        await written.wait()
        return await run(*arguments)

    async with home() as (screen, pilot):
        monkeypatch.setattr(commands, "run", held)
        await pilot.press("d", "slash", *"gcn")
        written.set()
        await until(pilot, lambda: "ask" not in {each.group for each in pilot.app.workers})
        assert screen.on_top
        await shows(pilot, " find: gcn")
        await pilot.press("enter", "y")
    assert sorted(os.listdir(studies)) == ["alone", "older", "pair"]


async def test_leaving_waits_for_what_is_under_way_and_a_second_time_does_not(
    fake: Fake, studies: Path
) -> None:
    path = studies / "alone" / "01-bare.gpuwatch"
    fake.list(entry(path))
    for presses in (1, 2):
        fake.holds("delete")
        async with home() as (screen, pilot):
            await pilot.press("d", opens=Dialog)
            await pilot.press("right", "enter")
            await until(pilot, lambda: ["delete", "--yes", str(path)] in fake.asked)
            await pilot.press("R", *"x", "enter")  # ends no other act
            await until(pilot, lambda: ["rename", str(path), "--", "x"] in fake.asked)
            await pilot.press("q", shows="deleting, then leaving …; once more leaves now")
            assert screen.app.return_value is None
            if presses == 2:
                await pilot.press("q")
            else:
                fake.goes_on()
            await until(pilot, lambda: screen.app.return_value == 0)
        fake.goes_on()
        await asyncio.to_thread(fake.done, "delete --yes", presses)


async def test_l_shows_the_log_of_the_run(studies: Path) -> None:
    async with home() as (screen, pilot):
        await pilot.press("down", "l", shows="» → shows the runs of the study")
        await pilot.press("up", "l", opens=LogScreen)
        await pilot.press("escape")
        await until(pilot, lambda: screen.app.screen is screen)


async def test_a_mark_that_c_set_by_itself_is_gone_once_it_served(studies: Path) -> None:
    async with home() as (screen, pilot):
        path = studies / "alone" / "01-bare.gpuwatch"
        screen.gpuwatch.go_home(path, [path], "this run is marked")
        await shows(pilot, "this run is marked")
        assert screen.app.screen is screen and screen.state.marked == (path,)
        await pilot.press("end", "c", opens=CompareScreen)
        assert screen.state.marked == ()
        await pilot.press("escape")
        await until(pilot, lambda: screen.app.screen is screen)
        await pilot.press("end", "space", "home", "c", opens=CompareScreen)
        assert len(screen.state.marked) == 1


async def test_marks_across_studies_are_compared(studies: Path) -> None:
    async with home() as (screen, pilot):
        await pilot.press("space", "space", "c", opens=CompareScreen)
        compare = on_top(screen.app, CompareScreen)
        files = ["alone/01-bare", "pair/01-bare", "pair/02-docker"]
        assert compare.paths == [studies / f"{file}.gpuwatch" for file in files]


async def test_c_on_a_study_compares_its_runs(studies: Path) -> None:
    async with home() as (screen, pilot):
        await pilot.press("down", "c", opens=CompareScreen)
        compare = screen.app.screen
        assert isinstance(compare, CompareScreen) and len(compare.paths) == 2


async def test_e_writes_the_report_of_the_study(studies: Path) -> None:
    async with home(size=(200, 24)) as (_, pilot):
        await pilot.press("down", "e")
        await until(pilot, lambda: (studies / "pair" / "summary.html").exists())
        await shows(pilot, "» report: ")


async def test_a_click_stands_on_a_row_and_another_opens_it(studies: Path) -> None:
    async with home() as (screen, pilot):
        # The list moves down once the devices are there, and again with their processes.
        await until(pilot, lambda: screen.state.devices is not None)
        await until(pilot, lambda: "not known yet" not in screen_text(screen.gpuwatch))
        await pilot.click(SessionTable, offset=(20, 3))  # below the titles
        await until(pilot, lambda: screen.state.cursor == 2)
        await pilot.click(offset=(20, 0))
        assert screen.state.cursor == 2
        await pilot.click(SessionTable, offset=(20, 3))
        await until(pilot, lambda: isinstance(screen.app.screen, LiveScreen))


@pytest.mark.parametrize("key", ["n", "d", "R", "T", "N", "e"])
async def test_a_screen_that_is_read_only_says_so_and_does_nothing(studies: Path, key: str) -> None:
    async with home(DisplayOptions(read_only=True), (120, 24)) as (screen, pilot):
        await shows(pilot, "? help")
        await pilot.press(key, shows=READ_ONLY)
        assert screen.app.screen is screen and screen.state.edit is None
    assert labels.read(studies / "alone") == {}


# What is read again, and when.


async def test_the_list_is_read_again_only_where_a_folder_changed(
    fake: Fake, studies: Path
) -> None:
    path = studies / "alone" / "01-bare.gpuwatch"
    fake.list(entry(path))
    async with home() as (screen, pilot):

        async def look() -> int:
            screen.look_for_news()
            await pilot.app.workers.wait_for_complete()
            return sum(call[0] == "sessions" for call in fake.asked)

        before = await look()
        assert await look() == before
        labels.change(studies / "alone", "x", lambda _: Label("name"))
        assert await look() == before + 1
        assert await look() == before + 1
        session(studies / "brand-new" / "01-bare")
        assert await look() == before + 2


async def test_a_run_that_goes_on_is_followed_without_a_command(fake: Fake, studies: Path) -> None:
    path = studies / "alone" / "01-bare.gpuwatch"
    fake.list(entry(path, status="running", name="mine"))
    async with home() as (screen, pilot):
        await shows(pilot, "▶ running")
        before = len(fake.asked)
        screen.look_for_news()
        await shows(pilot, "✓ finished mine")
        assert len(fake.asked) == before


def test_of_a_long_run_the_speed_is_not_read_again(studies: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "long.gpuwatch", Script(seconds=220, start=5, total_steps=100_000))
    row = ListedSession(**values_of(entry(path, status="running")))
    assert fresh([row])[path].step_median_seconds == row.step_median_seconds
    short = replace(row, path=studies / "alone" / "01-bare.gpuwatch")
    new = fresh([short])[short.path]
    assert new.status == "finished" and new.step_median_seconds != row.step_median_seconds
    assert fresh([replace(short, status="finished"), replace(row, path=tmp_path / "gone")]) == {}


# First contact.


def test_following_runs_loads_nothing_heavy() -> None:
    program = (
        "import sys, gpuwatch.tui.home.watch, gpuwatch.analysis.summary.listing; "
        "assert not {'numpy', 'scipy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


async def test_a_label_goes_to_the_run_that_it_was_begun_for(studies: Path) -> None:
    async with home() as (screen, pilot):
        await pilot.press("R", *"mine")
        await pilot.click(SessionTable, offset=(20, 2))
        await pilot.pause()
        assert screen.state.cursor == 0
        screen.put_in_order(replace(screen.state.how, reverse=True), studies / "pair")
        await pilot.press("enter", shows="alone is called mine")
    assert labels.read(studies / "alone")["01-bare.gpuwatch"].name == "mine"
    assert labels.read(studies / "pair") == {}


REPORT = {
    "gpus": [],
    "gpu_unavailable": {"text": "no NVIDIA GPU is seen", "hint": "install the NVIDIA driver"},
    "python": {"path": "/usr/bin/python3", "torch": None},
    "environments": [
        {"env": "bare", "without_gpu": {"ready": True, "problems": []}},
        {
            "env": "docker",
            "without_gpu": {
                "ready": False,
                "problems": [
                    {"text": "no daemon answers\x1b[2J", "hint": "sudo systemctl start docker"}
                ],
            },
        },
        {
            "env": "apptainer",
            "without_gpu": {"problems": [{"text": "no image", "hint": f"build {'it ' * 200}"}]},
        },
    ],
}


@pytest.mark.parametrize("size", [(80, 24), (160, 50)])
async def test_first_contact_says_what_is_missing_and_what_mends_it(
    fake: Fake, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    monkeypatch.setenv("FAKE_GPUS", "0")
    (fake.folder / "doctor.json").write_text(json.dumps(REPORT))
    async with running(HomeScreen, size) as (app, pilot):
        await shows(pilot, "✗ GPU           none: runs use the CPU")
        text = screen_text(app)
        assert "n  starts the first one" in text
        assert "✗ torch         not in /usr/bin/python3: n starts a command of your own" in text
        assert "✓ bare          ready" in text and "✗ docker        no daemon answers" in text
        assert "→ sudo systemctl start docker" in text
        assert "→ `gpuwatch doctor` says how" in text and "build it" not in text, "not cut"
        assert [call[0] for call in fake.asked].count("doctor") == 1
        await pilot.press("r")
        await until(pilot, lambda: [call[0] for call in fake.asked].count("doctor") == 2)
