"""The log screen: streams, scrolling, search, the pager, and files that are odd or damaged."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual import events

from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.live.screen import LiveScreen
from gpuwatch.tui.log.reading import show_in_pager
from gpuwatch.tui.log.screen import LogScreen

from ..harness import Keys, live, running, screen_text, shows, until
from ..hostile import spoil
from ..sessions import NS, Script, finished, put, write

LINES = 300


def _log(path: Path, **more: object) -> Path:
    """A session with 300 lines, every tenth on standard error."""
    lines = [
        ("stderr" if n % 10 == 9 else "stdout", f"line {n} of {'Epoch' if n % 50 == 0 else 'step'}")
        for n in range(LINES)
    ]
    return write(path, Script(**{"log": lines, "meta": finished(), **more}))  # type: ignore[arg-type]


@asynccontextmanager
async def log(
    path: Path, size: tuple[int, int] = (80, 24), upto_ns: int | None = None
) -> AsyncIterator[tuple[GpuwatchApp, Keys]]:
    async with running(lambda: LogScreen(path, upto_ns=upto_ns), size) as (app, pilot):
        await shows(pilot, "log of")
        yield app, pilot


def _shown(app: GpuwatchApp) -> list[int]:
    """Numbers of the lines on the screen."""
    return [int(n) for n in re.findall(r"line (\d+) of", screen_text(app))]


def _append(path: Path, text: str, stream: str = "stdout") -> None:
    with sqlite3.connect(path, timeout=5) as db:
        row = 95 * NS, stream, text
        db.execute("INSERT INTO log (t, stream, text) VALUES (?, ?, ?)", row)
    db.close()


async def test_a_run_that_is_over_is_read_from_its_end_by_keys_wheel_and_stream(
    tmp_path: Path,
) -> None:
    async with log(_log(tmp_path / "a.gpuwatch")) as (app, pilot):
        text = screen_text(app)
        assert _shown(app) == list(range(LINES - 22, LINES))
        assert "1:29 err line 299 of step" in text and "1:29 out line 298 of step" in text
        assert "lines 279–300 of 300" in text and "both streams" in text
        for key, first in (
            *(("up", LINES - 23), ("down", LINES - 22), ("k", LINES - 23), ("end", LINES - 22)),
            *(("pageup", LINES - 44), ("home", 0), ("pagedown", 22), ("j", 23)),
        ):
            await pilot.press(key)
            await until(pilot, lambda first=first: _shown(app)[0] == first)  # type: ignore[misc]
        await pilot._post_mouse_events([events.MouseScrollDown], offset=(20, 10))
        await until(pilot, lambda: _shown(app)[0] > 23)
        await pilot.press("f", shows="the run is over: there is nothing to follow")
        await pilot.press("end", "3", shows="standard error")
        assert all(n % 10 == 9 for n in _shown(app)) and len(_shown(app)) == 22
        await pilot.press("2", shows="standard output")
        assert not any(n % 10 == 9 for n in _shown(app))
        await pilot.press("1", shows="both streams")
        assert len(_shown(app)) == 22


async def test_a_search_goes_to_its_matches_and_marks_them(tmp_path: Path) -> None:
    async with log(_log(tmp_path / "a.gpuwatch")) as (app, pilot):
        assert "next match" not in screen_text(app)
        await pilot.press("home", "slash", *"epoch", "enter")
        await shows(pilot, "“epoch”: 1 of 6 matching lines")
        await shows(pilot, "n next match")
        await pilot.press("n", shows="2 of 6 matching lines")
        assert "▸" in next(row for row in screen_text(app).splitlines() if "line 50 " in row)
        strips = app.screen._compositor.render_strips()
        row = next(strip for strip in strips if "line 50 " in strip.text)
        marked, other = (
            next(segment for segment in row if text in segment.text) for text in ("Epoch", "line")
        )
        assert marked.text == "Epoch" and marked.style != other.style
        await pilot.press("N", "N", shows="6 of 6 matching lines")
        assert 250 in _shown(app)
        await pilot.press("slash", "up", "backspace", "enter")
        await shows(pilot, "“epoc”: 6 of 6 matching lines")
        await pilot.press("slash", "enter", shows="“epoc”: 6 of 6 matching lines")
        await pilot.press("slash", *"STEP", "enter", shows="“STEP” is not in the log")
        await pilot.press("escape", hides="“STEP”")
        assert "▸" not in screen_text(app) and isinstance(app.screen, LogScreen)
        # Letters of keys are text while a search is written.
        await pilot.press("slash", *"qlnfw123t", shows="search: qlnfw123t", hides="/ search")
        await pilot.press("escape", hides="search:")
        assert len(_shown(app)) == 22
        for key in ("slash", *"line", "enter"):
            app.post_message(events.Key(key, key if len(key) == 1 else None))
        await shows(pilot, "of 300 matching lines")


async def test_a_progress_bar_is_one_line_the_newest(tmp_path: Path) -> None:
    """As on a terminal, also where a program's numbers stand between its lines."""
    path = tmp_path / "a.gpuwatch"
    lines = [
        each
        for n in range(1, 5)
        for each in (("stderr", f"{n:3}%|█   | {n}/100"), ("stdout", f"loss {n}"))
    ]
    write(path, Script(log=[("stderr", "Loading:   7%|█   | 7/100"), *lines]))
    async with live(path, (120, 40)) as (app, pilot):
        await shows(pilot, "loss 4")
        for press, newest in (("", 4), ("l", 4), ("", 5)):
            await pilot.press(*press)
            if newest > 4:
                _append(path, f"{newest:3}%|█   | {newest}/100", "stderr")
            await shows(pilot, f"{newest}/100")
            text = screen_text(app)
            assert text.count("%|") == 2 and "7/100" in text and "loss 1" in text
        assert isinstance(app.screen, LogScreen)
        # Lines that are not there to see count nowhere.
        for key, told in (
            ("1", "lines 1–6 of 6"),
            ("3", "lines 1–2 of 2"),
            ("2", "lines 1–4 of 4"),
        ):
            await pilot.press(key, shows=told)


async def test_long_lines_shift_and_wrap(tmp_path: Path) -> None:
    text = "".join(f"<{n:03}>" for n in range(60))
    wide = [("stdout", f"begin{n} " + "漢" * 75 + f" end{n}") for n in range(40)]
    path = write(tmp_path / "a.gpuwatch", Script(log=[("stdout", text), *wide], meta=finished()))
    async with log(path) as (app, pilot):
        await pilot.press("home")
        row = next(row for row in screen_text(app).splitlines() if "<000>" in row)
        assert "<059>" not in row and row.endswith("…")
        await pilot.press("right", "right", "right", hides="<000>")
        await pilot.press("left", "left", "left", "w", shows="<059>")
        assert "<000>" in screen_text(app)
        await pilot.press("home", *["down"] * 6, hides="begin0 ")
        assert "end0" in screen_text(app)
        await pilot.press("end", *["up"] * 2, shows="end38")
        assert "end39" not in screen_text(app)


async def test_lines_shift_as_far_as_those_in_sight_are_long(tmp_path: Path) -> None:
    lines = [("stdout", "x" * 900), *(("stdout", f"line {n} of {LINES}") for n in range(60))]
    path = write(tmp_path / "a.gpuwatch", Script(log=lines, meta=finished()))
    async with log(path) as (app, pilot):
        await shows(pilot, "line 59 of")
        await pilot.press(*["right"] * 5, "left", shows="line 59 of")
        await pilot.press("home", *["right"] * 9, "end", "right", "left")
        await pilot.press(*["left"] * 7)
        assert "line 59 of" not in screen_text(app), "a key shifts by its own columns alone"
        await pilot.press("left", shows="line 59 of")


async def test_a_run_that_goes_on_is_followed_and_searched_until_one_scrolls(
    tmp_path: Path,
) -> None:
    path = _log(tmp_path / "a.gpuwatch", meta={})
    async with log(path) as (app, pilot):
        await shows(pilot, "following")
        _append(path, "a new line")
        await shows(pilot, "a new line")
        await pilot.press("up", hides="following")
        first = _shown(app)[0]
        _append(path, "one more")
        await shows(pilot, "of 302")
        assert _shown(app)[0] == first and "one more" not in screen_text(app)
        await pilot.press("f", shows="one more")
        await pilot.press("f", hides="following")
        await pilot.press("slash", *"epoch", "enter", shows="of 6 matching lines")
        writer = sqlite3.connect(path, isolation_level=None)
        writer.execute("BEGIN EXCLUSIVE")  # its writer holds the file: what is drawn stays
        await pilot.press("home")
        await until(pilot, lambda: _shown(app)[0] == 0)
        writer.execute("ROLLBACK")
        writer.close()
        _append(path, "an Epoch more")
        await shows(pilot, "of 7 matching lines")


async def test_an_earlier_moment_ends_the_log_there(tmp_path: Path) -> None:
    async with log(_log(tmp_path / "a.gpuwatch"), upto_ns=45 * NS) as (app, pilot):
        assert _shown(app)[-1] == 150 and "up to 0:45" in screen_text(app)
        await pilot.press("slash", *"epoch", "enter", shows="of 4 matching lines")


async def test_l_opens_it_from_the_live_screen_and_escape_goes_back(tmp_path: Path) -> None:
    async with live(_log(tmp_path / "a.gpuwatch")) as (_, pilot):
        for back in ("escape", "q", "l"):
            await pilot.press("l", shows="log of mnist-cnn in bare")
            await pilot.press(back, opens=LiveScreen)


async def test_hostile_lines_are_harmless_and_cut(tmp_path: Path) -> None:
    lines = [
        ("stdout", "\x1b[2J\x1b]0;owned\x07[bold red]markup[/] \u202eevil"),
        ("stdout", "ö" * 8_000_000),
        ("elsewhere", "\x00\x07\x9b31m" + "漢字" * 100),
    ]
    path = write(tmp_path / "a.gpuwatch", Script(log=lines, meta=finished()))
    async with log(path, (60, 16)) as (app, pilot):
        text = screen_text(app)
        assert "\x1b" not in text and "\u202e" not in text and "[bold red]markup[/] evil" in text
        assert "[8,000,000 characters, cut to 65,536]" in text and "1:00 ?" in text
        for key in ("w", "home", "end", "pageup", "w", "right", "left"):
            await pilot.press(key)
            await pilot.pause()
            assert all(len(row) <= 60 for row in screen_text(app).splitlines())
        await pilot.press("slash", *"evil", "enter", shows="1 of 1 matching line")
    assert show_in_pager(path, None, None) == ""


async def test_of_a_long_log_the_newest_lines_are_there_and_the_pager_has_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "a.gpuwatch", Script(seconds=1, steps=False, meta=finished()))
    insert = "INSERT INTO log VALUES (?, ?, ?, ?)"
    put(path, *((insert, (n, n, "stdout", f"line {n}\x1b[2J")) for n in range(50_000)))
    async with log(path) as (_, pilot):
        await shows(pilot, "lines 9,979–10,000 of the newest 10,000")
        await pilot.press("slash", *"line 4", "enter")
        await shows(pilot, "of 10,000 matching lines in the newest 10,000: v has all")
        await pilot.press("home", shows="lines 1–")
        await pilot.press("v", shows="a pager needs a terminal")
    monkeypatch.setenv("PAGER", f"sh -c 'cat >{tmp_path}/all'")
    assert show_in_pager(path, None, None) == ""
    text = (tmp_path / "all").read_text()
    assert text.count("\n") == 50_000 and "\x1b" not in text and "0:00 out line 0\n" in text
    monkeypatch.setenv("PAGER", "head -n 1")
    assert show_in_pager(path, "stdout", 3) == ""
    monkeypatch.setenv("PAGER", os.devnull)
    assert show_in_pager(path, None, None) == f"{os.devnull}: Permission denied"


@pytest.mark.usefixtures("every_size")
@pytest.mark.parametrize("size", [(60, 16), (80, 24), (120, 40), (160, 50), (200, 60)])
async def test_it_fills_every_size(tmp_path: Path, size: tuple[int, int]) -> None:
    async with log(_log(tmp_path / "a.gpuwatch"), size) as (app, _):
        rows = screen_text(app).splitlines()
        assert len(_shown(app)) == size[1] - 2 and "search" in rows[-1] and "?" in rows[-1]


async def test_an_empty_log_says_so(tmp_path: Path) -> None:
    path = write(tmp_path / "a.gpuwatch", Script(meta=finished()))
    async with log(path) as (_, pilot):
        await shows(pilot, "nothing was printed")
        await pilot.press("home", "end", "up", "down", "n", "w", "3")
        await shows(pilot, "nothing was printed on standard error")


async def test_a_session_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    async with running(lambda: LogScreen(tmp_path / "none.gpuwatch")) as (_, pilot):
        await shows(pilot, "no such file")
        await pilot.press("slash", *"x", "enter", "n", "end", "home", "up", "w", "2")
        await shows(pilot, "no such file")
    lines = [("stdout", "before"), ("stdout", "x" * 17_000_000)]
    path = write(tmp_path / "long.gpuwatch", Script(log=lines, meta=finished()))
    async with running(lambda: LogScreen(path)) as (_, pilot):
        await shows(pilot, "too big")
    path = _log(tmp_path / "a.gpuwatch")
    spoil(path, "log", "t", "abc")
    async with running(lambda: LogScreen(path)) as (_, pilot):
        await shows(pilot, "✗")
