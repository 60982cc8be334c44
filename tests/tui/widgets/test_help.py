"""One declaration of keys: the footer, the help and the command palette are made from it."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.binding import Binding
from textual.command import CommandPalette
from textual.screen import Screen

import gpuwatch.tui
from gpuwatch.tui.compare.screen import CompareScreen
from gpuwatch.tui.home.screen import HomeScreen
from gpuwatch.tui.new_run.screen import NewRunScreen
from gpuwatch.tui.widgets.base_screen import CanvasScreen, Commands, HelpScreen, text_of

from ..conftest import Fake, entry
from ..harness import live, running, screen_text, shows, until

Make = Callable[..., Path]


def screens() -> list[type[Screen[None]]]:
    """Every screen of the program."""
    for module in pkgutil.walk_packages(gpuwatch.tui.__path__, "gpuwatch.tui."):
        importlib.import_module(module.name)
    found: list[type[Screen[None]]] = []
    below = CanvasScreen.__subclasses__()
    while below:
        screen = below.pop()
        found.append(screen)
        below += screen.__subclasses__()
    return [each for each in found if each.__module__.startswith("gpuwatch.tui")]


@pytest.mark.parametrize("screen", screens(), ids=lambda screen: screen.__name__)
def test_every_key_of_a_screen_says_what_it_does(screen: type[Screen[None]]) -> None:
    for binding in Binding.make_bindings(screen.BINDINGS):
        digit = binding.key.isdigit() and not binding.description
        assert text_of(binding) or digit, binding


async def test_the_footer_the_help_and_the_palette_know_the_same_keys(session: Make) -> None:
    async with live(session(), (120, 40)) as (app, pilot):
        assert "o roofline" in screen_text(app).splitlines()[-1]
        await pilot.press("question_mark")
        await shows(pilot, "roofline: the run under its ceilings: what bounds it")
        assert isinstance(app.screen, HelpScreen)
        assert " q Ctrl+C Ctrl+Q F10 leave; runs go on\n" in screen_text(app)
        assert screen_text(app).count("leave; ") == 1
        await pilot.press("question_mark")
        await until(pilot, lambda: not isinstance(app.screen, HelpScreen))
        await pilot.press("ctrl+p", opens=CommandPalette)
        await pilot.press(*"roofline", shows="ceilings")
        await pilot.press("enter", "enter", shows="FLOP/B")


async def test_the_palettes_screenshot_goes_where_gpuwatch_was_started(
    session: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, folder = session(), tmp_path / "a[" / "red]"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    async with live(path, (120, 40)) as (_, pilot):
        await pilot.press("ctrl+p", opens=CommandPalette)
        await pilot.press(*"screenshot", shows="an SVG picture of this screen")
        await pilot.press("enter", "enter")
        await until(pilot, lambda: any("</svg>" in f.read_text() for f in folder.glob("*.svg")))
        await shows(pilot, "Screenshot")


async def test_the_help_lists_tab_only_where_something_takes_the_focus(session: Make) -> None:
    path = session(alive=False)
    async with running(lambda: CompareScreen([path]), (80, 40)) as (app, pilot):
        await pilot.press("question_mark", shows="next column")
        assert "focus" not in screen_text(app) and "PageUp" in screen_text(app)
    async with running(NewRunScreen, (80, 40)) as (app, pilot):
        await pilot.press("f1", shows="next field")


@pytest.mark.parametrize(
    ("made", "several", "in_time"),
    [({"gpus": 2}, True, True), ({}, False, True), ({"kind": "import", "gpus": 0}, False, False)],
    ids=["two GPUs", "one GPU", "import"],
)
async def test_the_help_lists_no_key_that_does_nothing_there(
    session: Make, made: dict[str, Any], several: bool, in_time: bool
) -> None:
    async with live(session(**made, alive=False), (120, 60)) as (app, pilot):
        await pilot.press("question_mark", shows="Ctrl+Z")
        told = screen_text(app)
    assert ("next GPU" in told, "ten columns back" in told) == (several, in_time)


async def test_the_palette_has_no_key_that_just_moves(fake: Fake, session: Make) -> None:
    fake.list(entry(session(alive=False)))
    async with running(HomeScreen, (100, 40)) as (app, pilot):
        await shows(pilot, "c compare")
        commands = Commands(app.screen)
        told = [str(hit.text) async for hit in commands.discover()]
    assert "help: all keys of this screen" in told and not {"up", "down"} & {*told}
    assert not any("copy" in text for text in told), "nothing can be selected"


@pytest.mark.parametrize("screen", [HomeScreen, NewRunScreen])
async def test_the_palette_has_what_we_wrote_and_each_thing_once(
    fake: Fake, screen: type[HomeScreen | NewRunScreen]
) -> None:
    async with running(screen, (100, 40)) as (app, pilot):
        await shows(pilot, "Engine of bare" if screen is NewRunScreen else "No run was recorded")
        told = [str(hit.text) async for hit in Commands(app.screen).discover()]
        others = [each.title for each in app.get_system_commands(app.screen)]
    assert told.count("leave; runs go on") == 1 and "shell: to the shell; fg returns" in told
    assert len(others) == 1 and others[0].startswith("screenshot: an SVG picture")
    assert not [text for text in told if "delete" in text or "select" in text or "palette" in text]


async def test_the_help_of_a_small_screen_scrolls_by_keys(session: Make) -> None:
    async with live(session(), (60, 15)) as (app, pilot):
        await pilot.press("f1", shows="all keys of this screen")
        text = screen_text(app)
        assert "Esc closes" in text and "palette" not in text
        await pilot.press("end", shows="palette")
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, HelpScreen))


async def test_a_key_of_the_footer_is_pressed_by_a_click(fake: Fake) -> None:
    async with running(HomeScreen) as (app, pilot):
        await shows(pilot, "? help")
        await pilot.click(offset=(2, 23))
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))


async def test_the_footer_cuts_no_key(session: Make) -> None:
    async with live(session(gpus=8), (200, 24)) as (app, pilot):
        await shows(pilot, "e report")
        whole = screen_text(app).splitlines()[-1].partition("▏")[0].split("  ")
        for width in (*range(40, 130, 9), 200):
            await pilot.resize_terminal(width, 24)
            row = screen_text(app).splitlines()[-1]
            shown, palette, _ = row.partition("▏")
            keys = shown.rstrip().split("  ")
            assert palette and keys == [each.rstrip() for each in whole[: len(keys)]], row


async def test_the_help_begins_with_the_footers_keys_and_ends_with_the_signs(fake: Fake) -> None:
    fake.list(entry(Path("/home/user/studies/a.gpuwatch")))
    async with running(HomeScreen, (120, 60)) as (app, pilot):
        await shows(pilot, "mnist-cnn")
        await pilot.press("question_mark", shows="• ▲")
        told = screen_text(app)
        assert told.index("start a run") < told.index("hide a study's runs") < told.index("• ▲")
