"""Hostile text in a session is shown as text and sends nothing else to the terminal."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from gpuwatch.tui.compare.screen import CompareScreen
from gpuwatch.tui.home.screen import HomeScreen
from gpuwatch.tui.live.screen import LiveScreen
from tests.terminal import SEQUENCES as KNOWN
from tests.terminal import Pty

from ..conftest import Fake, entry
from ..harness import live, on_top, running, screen_text, shows, until
from ..hostile import EVERYTHING, LONGEST, SEQUENCES, check_screen, fields, not_shown, poison, spoil
from ..sessions import finished

pytestmark = pytest.mark.usefixtures("every_size")

Make = Callable[..., Path]

NUL = "\x00"
"""The one character that a path cannot contain."""

PAGES = {
    "": "? help",
    "i": "every number",
    "o": "timed steps",
    "K": "kernels",
    "l": "log",
    "p": "process",
    "g": "? help",
    "m": "? help",
    "question_mark": "all keys of this screen",
}


@pytest.mark.parametrize("what", ["CSI", "one that does not end", "long", "flags"])
async def test_the_live_screen_shows_hostile_text_as_text(session: Make, what: str) -> None:
    path = poison(session(**fields(SEQUENCES[what])), SEQUENCES[what])
    async with live(path) as (app, _):
        check_screen(app)


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("size", [(60, 16), (160, 50)], ids=str)
async def test_every_page_over_the_live_screen_shows_hostile_text_as_text(
    session: Make, page: str, size: tuple[int, int]
) -> None:
    path = poison(session(**fields(EVERYTHING)), EVERYTHING)
    async with live(path, size) as (app, pilot):
        if page:
            await pilot.press(page)
        await shows(pilot, PAGES[page])
        check_screen(app)


async def test_the_home_screen_shows_hostile_text_as_text(fake: Fake) -> None:
    names = ("status", "workload", "environment", "started", "study", "name", "note")
    listed = [
        entry(Path(f"/tmp/{number}{text[:200].replace(NUL, '')}"), **dict.fromkeys(names, text))
        for number, text in enumerate(SEQUENCES.values())
    ]
    fake.list(*listed)
    async with running(HomeScreen) as (app, pilot):
        await shows(pilot, "H100")
        await until(pilot, lambda: app.screen.state.entries is not None)  # type: ignore[attr-defined]
        for _ in listed:
            check_screen(app)
            await pilot.press("down")


async def test_the_compare_screen_shows_hostile_text_as_text(session: Make) -> None:
    paths = [
        poison(session(f"0{n}", **{**fields(EVERYTHING), "start": 100.0 * n}), EVERYTHING)
        for n in (1, 2)
    ]
    async with running(lambda: CompareScreen(paths), (100, 40)) as (app, pilot):
        await until(pilot, lambda: app.screen.result is not None)  # type: ignore[attr-defined]
        for _ in range(6):
            check_screen(app)
            await pilot.press("pagedown")


async def test_a_hostile_file_name_is_shown_as_text(tmp_path: Path) -> None:
    folder = tmp_path / "st\x1b]0;owned\x07udy\u202e\n"
    folder.mkdir()
    path = folder / "01-\x1b[31mred\u200b.gpuwatch"
    path.write_bytes(b"no database")
    async with running(lambda: LiveScreen(path)) as (app, pilot):
        await until(pilot, lambda: app.screen.trouble is not None)  # type: ignore[attr-defined]
        check_screen(app)


async def test_of_a_line_of_ten_megabytes_the_beginning_is_read(session: Make) -> None:
    path = session(**{**fields("usual", LONGEST), "meta": {}, "alive": True})
    async with live(path, (100, 50)) as (app, _):
        assert isinstance(app.screen, LiveScreen) and app.screen.snapshot is not None
        assert max(len(line.text) for line in app.screen.snapshot.log) < 100_000
        assert "yyyyyyyyyyyyyyyyyyyy" in screen_text(app)
        check_screen(app)


@pytest.mark.parametrize("option", [[], ["--ascii"]], ids=["utf-8", "ascii"])
def test_a_terminal_gets_only_the_sequences_that_screens_use(
    session: Make, option: list[str]
) -> None:
    path = poison(session(**fields(EVERYTHING)), EVERYTHING)
    command = [sys.executable, "-m", "gpuwatch", "replay", *option, str(path)]
    with closing(Pty(command, (100, 30))) as screen:
        screen.taken_over("step ")
        for page in ("i", "o", "K", "question_mark"):
            key, start = page.replace("question_mark", "?"), len(screen.sent)
            screen.type(key)
            screen.wait(PAGES[page], start=start)
            screen.type(key)  # closes it
        screen.type("q")
        assert screen.end() == 0
    text = KNOWN.sub("", screen.text())
    assert not not_shown(text), re.findall(r".{0,40}\x1b.{0,40}", text)
    assert screen.text().isascii() or not option


SPOILT = [
    ("log", "t"),
    ("step", "step"),
    ("tick", "t"),
    ("event", "t"),
    ("minute", "n"),
    ("minute", "times"),
    ("sample", "samples"),
    ("step", "t"),
]
MESSAGE = "no recorder writes"


async def test_a_file_that_is_spoilt_while_it_is_watched_is_told(session: Make) -> None:
    path = session()
    async with live(path) as (app, pilot):
        assert MESSAGE not in screen_text(app)
        spoil(path, "step", "step", "abc")
        spoil(path, "step", "n", 10**6, last=True)
        await shows(pilot, MESSAGE)


@pytest.mark.parametrize(("table", "column"), SPOILT)
async def test_a_spoilt_file_ends_a_comparison_with_a_sentence(
    session: Make, table: str, column: str
) -> None:
    paths = [session(f"0{n}", meta=finished(), alive=False, start=100.0 * n) for n in (1, 2)]
    spoil(paths[1], table, column, "abc", last=column == "n")
    async with running(lambda: CompareScreen(paths), (100, 40)) as (app, pilot):
        screen = on_top(app, CompareScreen)
        await until(pilot, lambda: screen.result is not None)
        for key in ("h", "x", "m"):
            await pilot.press(key)
            await pilot.pause()
            check_screen(app)


@pytest.mark.parametrize(("table", "column"), SPOILT)
@pytest.mark.parametrize("value", ["abc", float("inf"), 2**63 - 1], ids=["word", "inf", "huge"])
async def test_values_of_the_wrong_type_break_no_page_over_the_live_screen(
    session: Make, table: str, column: str, value: object
) -> None:
    script = fields("usual")
    path = session(**{**script, "seconds": 30.0, "meta": {**script["meta"], **finished(1, 30)}})
    spoil(path, table, column, value, last=column == "n")
    async with live(path) as (app, pilot):
        for key in ("l", "i", "o", "K", "p", "g", "home"):
            await pilot.press(key)
            await pilot.pause()
            check_screen(app)
            assert " reading" not in screen_text(app)
            if not isinstance(app.screen, LiveScreen):
                await pilot.press("escape")
        assert isinstance(app.screen, LiveScreen)
