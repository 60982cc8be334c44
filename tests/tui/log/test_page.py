"""The log screen: streams, scrolling, search, and files that are odd or damaged."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual import events
from textual.pilot import Pilot

from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.writing import store
from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.live.screen import LiveScreen
from gpuwatch.tui.log import pager as log_pager
from gpuwatch.tui.log.page import LogScreen

from ..harness import live, running, screen_text, shows, until
from ..hostile import spoil
from ..sessions import NS, Script, finished, write

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
) -> AsyncIterator[tuple[GpuwatchApp, Pilot[int]]]:
    async with running(lambda: LogScreen(path, upto_ns=upto_ns), size) as (app, pilot):
        await shows(pilot, "log of")
        yield app, pilot


def _shown(app: GpuwatchApp) -> list[int]:
    """Numbers of the lines on the screen."""
    words = [row.split() for row in screen_text(app).splitlines()[1:]]
    return [int(row[row.index("line") + 1]) for row in words if "line" in row and row[-2] == "of"]


async def test_it_opens_at_the_end_of_a_run_that_is_over_with_times_and_streams(
    tmp_path: Path,
) -> None:
    async with log(_log(tmp_path / "a.gpuwatch")) as (app, _):
        text = screen_text(app)
        assert _shown(app) == list(range(LINES - 22, LINES))
        assert "1:29 err line 299 of step" in text and "1:29 out line 298 of step" in text
        assert "lines 279–300 of 300" in text and "both streams" in text


@pytest.mark.parametrize(
    ("key", "first"),
    [
        ("home", 0),
        ("end", LINES - 22),
        ("up", LINES - 23),
        ("k", LINES - 23),
        ("down", LINES - 22),
        ("pageup", LINES - 43),
    ],
)
async def test_keys_scroll_and_stop_at_the_ends(tmp_path: Path, key: str, first: int) -> None:
    async with log(_log(tmp_path / "a.gpuwatch")) as (app, pilot):
        await pilot.press(key)
        await pilot.pause()
        assert _shown(app)[0] == first


async def test_page_down_and_the_wheel_go_on_from_the_start(tmp_path: Path) -> None:
    async with log(_log(tmp_path / "a.gpuwatch")) as (app, pilot):
        await pilot.press("home", "pagedown")
        await pilot.pause()
        assert _shown(app)[0] == 21
        await pilot.press("j")
        await pilot.pause()
        assert _shown(app)[0] == 22
        await pilot._post_mouse_events([events.MouseScrollDown], offset=(20, 10))
        await pilot.pause()
        assert _shown(app)[0] == 25


async def test_a_stream_can_be_read_alone(tmp_path: Path) -> None:
    async with log(_log(tmp_path / "a.gpuwatch")) as (app, pilot):
        await pilot.press("3")
        await shows(pilot, "standard error")
        assert all(n % 10 == 9 for n in _shown(app)) and len(_shown(app)) == 22
        await pilot.press("2")
        await shows(pilot, "standard output")
        assert not any(n % 10 == 9 for n in _shown(app))
        await pilot.press("1")
        await shows(pilot, "both streams")
        assert len(_shown(app)) == 22


async def test_a_search_finds_the_line_and_goes_to_it(tmp_path: Path) -> None:
    async with log(_log(tmp_path / "a.gpuwatch")) as (app, pilot):
        await pilot.press("home", "slash", *"epoch", "enter")
        await shows(pilot, "“epoch”: 1 of 6 lines")
        await pilot.press("n")
        await shows(pilot, "2 of 6 lines")
        assert "▸" in next(row for row in screen_text(app).splitlines() if "line 50 " in row)
        await pilot.press("N", "N")
        await shows(pilot, "6 of 6 lines")
        assert 250 in _shown(app)
        await pilot.press("escape")
        await until(pilot, lambda: "lines" not in screen_text(app).splitlines()[-2])
        assert "▸" not in screen_text(app)


async def test_a_search_with_a_capital_minds_capitals(tmp_path: Path) -> None:
    async with log(_log(tmp_path / "a.gpuwatch")) as (_, pilot):
        await pilot.press("slash", *"STEP", "enter")
        await shows(pilot, "“STEP” is not in the log")
        await pilot.press("slash", *"step 1", "enter")
        await shows(pilot, "“step 1” is not in the log")


async def test_what_was_found_is_inverted(tmp_path: Path) -> None:
    async with log(_log(tmp_path / "a.gpuwatch")) as (app, pilot):
        await pilot.press("slash", *"line 299", "enter")
        await shows(pilot, "1 of 1 lines")
        strips = app.screen._compositor.render_strips()
        row = next(strip for strip in strips if "line 299" in strip.text and "step" in strip.text)
        marked = [segment for segment in row if segment.text == "line 299"]
        others = [segment for segment in row if segment.text.strip() == "of step"]
        assert marked and others and marked[0].style != others[0].style


async def test_a_search_begins_empty_and_up_brings_the_last_text_back(tmp_path: Path) -> None:
    async with log(_log(tmp_path / "a.gpuwatch")) as (app, pilot):
        await pilot.press("slash", *"line 29", "enter")
        await shows(pilot, "of 11 lines")
        await pilot.press("slash", "up", "8", "enter")
        await shows(pilot, "line 298”: 1 of 1 lines")
        await pilot.press("slash", "enter")
        assert "line 298”: 1 of 1 lines" in screen_text(app)


async def test_letters_of_keys_are_text_while_a_search_is_written(tmp_path: Path) -> None:
    async with log(_log(tmp_path / "a.gpuwatch")) as (app, pilot):
        await pilot.press("slash", *"qlnfw123t")
        await shows(pilot, "search: qlnfw123t")
        await until(pilot, lambda: "/ search" not in screen_text(app))
        await pilot.press("escape")
        await until(pilot, lambda: "search:" not in screen_text(app))
        assert isinstance(app.screen, LogScreen) and len(_shown(app)) == 22


async def test_keys_that_come_in_one_piece_stay_in_order(tmp_path: Path) -> None:
    async with log(_log(tmp_path / "a.gpuwatch")) as (app, pilot):
        for key in ("slash", *"line", "enter"):
            app.post_message(events.Key(key, key if len(key) == 1 else None))
        await shows(pilot, "“line”: 279 of 300 lines")


async def test_long_lines_shift_and_wrap(tmp_path: Path) -> None:
    text = "".join(f"<{n:03}>" for n in range(60))
    path = write(tmp_path / "a.gpuwatch", Script(log=[("stdout", text)], meta=finished()))
    async with log(path) as (app, pilot):
        row = next(row for row in screen_text(app).splitlines() if "<000>" in row)
        assert "<059>" not in row and row.endswith("…") and len(row) == 80
        await pilot.press("right", "right", "right")
        await until(pilot, lambda: "<000>" not in screen_text(app))
        await pilot.press("left", "left", "left", "w")
        await shows(pilot, "<059>")
        assert "<000>" in screen_text(app)
        await pilot.press("right")
        await shows(pilot, "lines are wrapped")


async def test_wrapped_lines_scroll_by_rows(tmp_path: Path) -> None:
    lines = [("stdout", f"begin{n} " + "x" * 150 + f" end{n}") for n in range(40)]
    path = write(tmp_path / "a.gpuwatch", Script(log=lines, meta=finished()))
    async with log(path) as (app, pilot):
        await pilot.press("w", "home", "down")
        await until(pilot, lambda: "begin0 " not in screen_text(app))
        assert "end0" in screen_text(app)
        await pilot.press("end", "up")
        await shows(pilot, "end38")
        assert "end39" not in screen_text(app)


async def test_a_run_that_goes_on_is_followed_until_one_scrolls(tmp_path: Path) -> None:
    path = _log(tmp_path / "a.gpuwatch", meta={})
    async with log(path) as (app, pilot):
        await shows(pilot, "following")
        _append(path, "a new line")
        await shows(pilot, "a new line")
        await pilot.press("up")
        await until(pilot, lambda: "following" not in screen_text(app))
        first = _shown(app)[0]
        _append(path, "one more")
        await shows(pilot, "of 302")
        assert _shown(app)[0] == first and "one more" not in screen_text(app)
        await pilot.press("f")
        await shows(pilot, "one more")
        await pilot.press("f")
        await until(pilot, lambda: "following" not in screen_text(app))


async def test_new_lines_are_searched_too(tmp_path: Path) -> None:
    path = _log(tmp_path / "a.gpuwatch", meta={})
    async with log(path) as (_, pilot):
        await pilot.press("slash", *"epoch", "enter")
        await shows(pilot, "of 6 lines")
        _append(path, "an Epoch more")
        await shows(pilot, "of 7 lines")


async def test_f_says_why_nothing_is_followed(tmp_path: Path) -> None:
    async with log(_log(tmp_path / "a.gpuwatch")) as (_, pilot):
        await pilot.press("f")
        await shows(pilot, "the run is over: there is nothing to follow")


async def test_an_earlier_moment_ends_the_log_there(tmp_path: Path) -> None:
    async with log(_log(tmp_path / "a.gpuwatch"), upto_ns=45 * NS) as (app, pilot):
        assert _shown(app)[-1] == 150 and "up to 0:45" in screen_text(app)
        await pilot.press("slash", *"epoch", "enter")
        await shows(pilot, "of 4 lines")


async def test_l_opens_it_from_the_live_screen_and_escape_goes_back(tmp_path: Path) -> None:
    async with live(_log(tmp_path / "a.gpuwatch")) as (app, pilot):
        for back in ("escape", "q", "l"):
            await pilot.press("l")
            await shows(pilot, "log of mnist-cnn in bare")
            await pilot.press(back)
            await until(pilot, lambda: isinstance(app.screen, LiveScreen))


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
        assert "[8,000,000 characters, cut to 65,536]" in text and " ?\n" in text
        for key in ("w", "home", "end", "pageup", "w", "right", "left"):
            await pilot.press(key)
            await pilot.pause()
            assert all(len(row) <= 60 for row in screen_text(app).splitlines())
        await pilot.press("slash", *"evil", "enter")
        await shows(pilot, "1 of 1 lines")


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


async def test_a_line_that_is_too_long_to_be_read_is_told(tmp_path: Path) -> None:
    lines = [("stdout", "before"), ("stdout", "x" * 17_000_000)]
    path = write(tmp_path / "a.gpuwatch", Script(log=lines, meta=finished()))
    async with log(path) as (_, pilot):
        for key in ("home", "end", "up", "w", "n"):
            await pilot.press(key)
        await shows(pilot, "too big")


def test_a_page_of_a_long_log_reads_a_page(tmp_path: Path) -> None:
    path = write(tmp_path / "a.gpuwatch", Script(seconds=1, steps=False, meta=finished()))
    out = store.SessionStore.reopen(path)
    out.write(
        ("INSERT INTO log VALUES (?, ?, ?, ?)", (n, n, "stdout", f"line {n}"))
        for n in range(100_000)
    )
    out.close()
    with SessionReader(path) as reader:
        steps: list[int] = []
        reader.opened.connection.set_progress_handler(lambda: steps.append(1), 1000)
        assert [line.n for line in reader.log_lines(50_000, 3)] == [50_000, 50_001, 50_002]
        assert [line.n for line in reader.log_lines(50_000, 2, back=True)] == [49_998, 49_999]
        assert [line.n for line in reader.log_lines(10**18, 2, back=True, upto=70)] == [69, 70]
        assert len(steps) < 5


def _append(path: Path, text: str) -> None:
    with sqlite3.connect(path, timeout=5) as db:
        db.execute("INSERT INTO log (t, stream, text) VALUES (?, 'stdout', ?)", (95 * NS, text))
    db.close()


async def test_lines_of_a_stream_that_hardly_occurs_are_found_a_piece_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_pager, "_SPAN", 20)
    monkeypatch.setattr(log_pager, "_SPANS", 2)
    lines = [("stderr" if n in (3, 150) else "stdout", f"line {n} of all") for n in range(LINES)]
    path = _log(tmp_path / "a.gpuwatch", log=lines)
    pager = log_pager.LogPager(path, None)
    pager.stream = "stderr"
    assert pager.lines(10**6, 10, back=True) == [] and pager.incomplete
    pager.close()
    async with log(path) as (app, pilot):
        await pilot.press("3")
        await until(pilot, lambda: _shown(app) == [3, 150])
        await pilot.press("home")
        await until(pilot, lambda: _shown(app) == [3, 150])
        await pilot.press("end", "pageup", "1")
        await until(pilot, lambda: len(_shown(app)) > 15)


async def test_nothing_is_drawn_while_nothing_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with log(_log(tmp_path / "a.gpuwatch", meta={})) as (app, _):
        assert "following" in screen_text(app)
        drawn: list[int] = []
        monkeypatch.setattr(LogScreen, "paint", lambda _: drawn.append(1))
        screen = app.screen
        assert isinstance(screen, LogScreen)
        screen._poll()
        assert not drawn
        _append(tmp_path / "a.gpuwatch", "one more")
        screen._poll()
        assert drawn


async def test_a_file_that_its_writer_holds_keeps_what_is_drawn_and_holds_nothing_up(
    tmp_path: Path,
) -> None:
    path = _log(tmp_path / "a.gpuwatch", meta={})
    async with log(path) as (app, pilot):
        before = _shown(app)
        screen = app.screen
        assert isinstance(screen, LogScreen) and screen._pager is not None
        ((waits_ms,),) = screen._pager._reader.opened.connection.execute("PRAGMA busy_timeout")
        assert waits_ms <= 100, "keys wait for it"
        writer = sqlite3.connect(path, isolation_level=None)
        writer.execute("BEGIN EXCLUSIVE")
        await pilot.press("up", "up", "up")
        assert _shown(app) == before and "damaged" not in screen_text(app)
        writer.execute("ROLLBACK")
        writer.close()
        await pilot.press("up", "up")
        await until(pilot, lambda: _shown(app)[-1] < before[-1])


async def test_a_search_that_cannot_read_says_so(tmp_path: Path) -> None:
    path = _log(tmp_path / "a.gpuwatch")
    async with log(path) as (_, pilot):
        spoil(path, "log", "t", "abc")
        await pilot.press("slash", *"step", "enter")
        await shows(pilot, "was not looked for to the end")
