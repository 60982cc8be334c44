"""Keys: every one is told and does something; clicks, the wheel and words do what keys do."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import pytest
from textual.binding import Binding, BindingsMap, BindingType
from textual.command import CommandPalette
from textual.pilot import Pilot

import gpuwatch.tui
from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.widgets.canvas import Canvas, Clicked, Scrolled
from gpuwatch.tui.widgets.canvas_screen import CanvasScreen
from gpuwatch.tui.widgets.keys import EVERYWHERE, all_keys, keys_row, names_of
from gpuwatch.tui.widgets.line import Line
from gpuwatch.tui.widgets.palette_commands import Commands

from ..harness import colours, live, running, screen_text, shows, until

Make = Callable[..., Path]


def screens() -> list[type[CanvasScreen]]:
    """Every screen of the program that can be shown."""
    for module in pkgutil.walk_packages(gpuwatch.tui.__path__, "gpuwatch.tui."):
        import_module(module.name)
    found, rest = [], [CanvasScreen]
    while rest:
        each = rest.pop()
        rest += each.__subclasses__()
        if each.__module__.startswith("gpuwatch.tui") and each.KEYS:
            found.append(each)
    return found


def bindings(cls: type[Any]) -> list[Binding]:
    """Those of a class and its parents, in the order they are looked up."""
    found: list[Binding] = []
    for parent in cls.__mro__:
        if parent.__module__.startswith("gpuwatch.tui") and "BINDINGS" in vars(parent):
            for keys in BindingsMap(vars(parent)["BINDINGS"]).key_to_bindings.values():
                found += keys
    return found


SCREENS = screens()
COMMON = {each.key for each in bindings(GpuwatchApp)}


@pytest.mark.parametrize("screen", SCREENS, ids=lambda each: each.__name__)
def test_every_key_that_is_told_is_bound(screen: type[CanvasScreen]) -> None:
    bound = {each.key for each in bindings(screen)} | COMMON
    told = {name for label, _ in all_keys(screen.KEYS) for name in names_of(label)}
    unbound = sorted(told - bound)
    # A form edits text itself: what it binds not is for the field that the cursor is on.
    assert not unbound or "on_key" in vars(screen), f"told and not bound: {unbound}"


@pytest.mark.parametrize("screen", SCREENS, ids=lambda each: each.__name__)
def test_every_action_that_is_bound_is_told_with_one_of_its_keys(
    screen: type[CanvasScreen],
) -> None:
    told = {name for label, _ in all_keys(screen.KEYS) for name in names_of(label)}
    by_action: dict[str, set[str]] = {}
    for each in bindings(screen):
        by_action.setdefault(each.action, set()).add(each.key)
    untold = {action: keys for action, keys in by_action.items() if not keys & told}
    assert not untold


def test_every_key_of_all_screens_is_told() -> None:
    told = {name for label, _ in EVERYWHERE for name in names_of(label)}
    assert told == COMMON


@pytest.mark.parametrize(
    ("label", "names"),
    [
        ("q", ["q"]),
        ("z, - and +", ["z", "minus", "plus"]),
        ("↑↓", ["up", "down"]),
        ("Shift+← Shift+→", ["shift+left", "shift+right"]),
        ("? or F1", ["question_mark", "f1"]),
        ("[ ] < > /", [f"{side}_square_bracket" for side in ("left", "right")]
         + ["less_than_sign", "greater_than_sign", "slash"]),
        ("digits", list("0123456789")),
    ],
)  # fmt: skip
def test_keys_are_read_as_they_are_written(label: str, names: list[str]) -> None:
    assert list(names_of(label)) == names


def test_a_click_on_a_key_of_the_foot_presses_that_key() -> None:
    row = keys_row([("q", "leave"), ("↑↓", "choose"), ("Esc", "back"), ("?", "help")], 60)
    text = "".join(text for text, _ in row.spans())
    pressed = {key: text[start:end] for start, end, key in row.presses()}
    assert pressed == {
        "q": " leave",
        "up": "↑",
        "down": "↓",
        "escape": " back",
        "question_mark": " help",
    }


def test_clicks_move_with_the_row_that_is_joined() -> None:
    row = Line(20).add("    ").join(Line(10).add("ab").add("cd", press="x"))
    assert row.presses() == ((6, 8, "x"),)


class Told(CanvasScreen):
    """Notes what it is told."""

    KEYS: ClassVar[tuple[tuple[str, str], ...]] = (("x", "note an x"), ("w", "write it down"))
    BINDINGS: ClassVar[list[BindingType]] = [Binding("x", "note('x')"), Binding("w", "note('w')")]

    def __init__(self) -> None:
        super().__init__()
        self.told: list[object] = []

    def on_mount(self) -> None:
        self.call_after_refresh(self.paint)

    def paint(self) -> None:
        rows = [Line(80).add(f"row {number}") for number in range(23)]
        self.show([*rows, keys_row([("x", "note")], 80)])

    def action_note(self, what: str) -> None:
        self.told.append(what)

    def action_scroll_by(self, by: int) -> None:
        self.told.append(by)

    def on_clicked(self, message: Clicked) -> None:
        self.told.append((message.x, message.y, message.count))


async def test_a_click_on_a_row_and_the_wheel_reach_the_screen_a_click_on_a_key_presses_it() -> (
    None
):
    async with running(Told) as (app, pilot):
        await shows(pilot, "x note")
        await pilot.click(Canvas, offset=(3, 5))
        await pilot.click(Canvas, offset=(3, 7), times=2)
        canvas = app.screen.query_one(Canvas)
        canvas.post_message(Scrolled(3, 0, 0))
        await pilot.click(Canvas, offset=(1, 23))
        screen = app.screen
        assert isinstance(screen, Told)
        await until(pilot, lambda: "x" in screen.told)
        assert screen.told == [(3, 5, 1), (3, 7, 1), (3, 7, 2), 3, "x"]


@pytest.mark.parametrize("key", ["question_mark", "f1"])
async def test_the_page_of_keys_names_those_of_the_screen_and_of_every_screen(key: str) -> None:
    async with running(Told) as (app, pilot):
        await pilot.press(key)
        await shows(pilot, "note an x")
        assert "Ctrl+P" in screen_text(app) and "F10" in screen_text(app)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, Told))


async def test_an_action_is_found_by_its_words_and_done(session: Make) -> None:
    async with live(session()) as (app, pilot):
        await pilot.press("ctrl+p")
        await until(pilot, lambda: isinstance(app.screen, CommandPalette))
        await pilot.press(*"method")
        await shows(pilot, "every number with its method")
        await pilot.press("enter")
        await until(pilot, lambda: not isinstance(app.screen, CommandPalette))
        await shows(pilot, "gauges of the run")


async def test_without_colours_the_palette_marks_its_row_by_a_line(
    session: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with live(session()) as (app, pilot):
        await pilot.press("ctrl+p")
        await shows(pilot, "stop the run")
        assert not colours(app)
        lined = [
            segment.text
            for strip in app.screen._compositor.render_strips()
            for segment in strip
            if segment.style and segment.style.underline
        ]
    assert len(lined) >= 1 and "stop the run" in "".join(lined)


async def test_words_that_no_action_has_find_nothing() -> None:
    async with running(Told) as (app, _):
        provider = Commands(app.screen)
        found = [hit async for hit in provider.search("write down")]
        assert [hit.text for hit in found] == ["write it down"]
        assert not [hit async for hit in provider.search("write elephants")]


@pytest.mark.parametrize("key", ["f10", "ctrl+c"])
async def test_f10_and_ctrl_c_leave(key: str) -> None:
    app = GpuwatchApp(Told)
    async with app.run_test() as pilot:
        await pilot.press(key)
        await ended(pilot)
    assert app.return_value == 0


async def test_ctrl_c_on_a_page_says_what_goes_on_below_it(session: Make) -> None:
    async with live(session()) as (app, pilot):
        await pilot.press("i")
        await shows(pilot, "every number")
        await pilot.press("ctrl+c")
        await ended(pilot)
        assert app.farewell[0] == "the run goes on"


async def ended(pilot: Pilot[int]) -> None:
    for _ in range(200):
        if not pilot.app.is_running or pilot.app._exit:
            return
        await pilot.pause(0.02)
