"""Every screen at every size: rows of the right width, or the message that it is too small."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.screen import Screen

from gpuwatch.session.machine_now import MachineNow
from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.compare.screen import CompareScreen
from gpuwatch.tui.home.fleet.screen import FleetScreen
from gpuwatch.tui.home.screen import HomeScreen
from gpuwatch.tui.live.screen import LiveScreen
from gpuwatch.tui.new_run.screen import NewRunScreen
from gpuwatch.tui.widgets import palette

from .conftest import Fake, entry
from .harness import Keys, live, running, screen_text, shows
from .hostile import check_screen
from .sessions import START_UNIX_NS, finished
from .terminal.test_hostile import PAGES
from .vision import contrast

pytestmark = pytest.mark.usefixtures("every_size")

Make = Callable[..., Path]
SIZES = ((200, 60), (10, 3), (1, 1), (60, 16), (300, 2), (40, 8), (80, 24))
LOG = [("stdout", "epoch 1"), ("stderr", "a warning")]


async def through_all_sizes(app: GpuwatchApp, pilot: Keys) -> None:
    for width, height in SIZES:
        await pilot.resize_terminal(width, height)
        await pilot.pause()
        check_screen(app)
    assert "too small" not in screen_text(app)


@pytest.mark.parametrize("page", ["", "i", "o", "l", "p", "g", "ctrl+p"])
async def test_the_live_screen_and_its_pages_follow_every_size(session: Make, page: str) -> None:
    async with live(session(gpus=8, pipes=True, log=LOG, bandwidth_measured=True)) as (app, pilot):
        if page:
            await pilot.press(page)
            await pilot.pause()
        await through_all_sizes(app, pilot)


@pytest.mark.parametrize("name", ["home", "machines", "new run", "compare", "unreadable"])
async def test_every_other_screen_follows_every_size(
    session: Make, fake: Fake, tmp_path: Path, name: str
) -> None:
    paths = [session(f"0{n}", meta=finished(), alive=False, start=100 * n) for n in (1, 2)]
    fake.list(*(entry(path) for path in paths))
    there = MachineNow("ssh=" + "a" * 90, session("there", gpus=8, throttled=True), None, 1e9)
    machines = (there, MachineNow("ssh=b", None, "no route " * 30))
    screens: dict[str, tuple[Callable[[], Screen[Any]], str]] = {
        "home": (HomeScreen, "H100"),
        "machines": (lambda: FleetScreen(lambda: machines), "2 machines"),
        "new run": (NewRunScreen, "gpuwatch"),
        "compare": (lambda: CompareScreen(paths), "step time, typical"),
        "unreadable": (lambda: LiveScreen(tmp_path / "none.gpuwatch"), "none"),
    }
    make, text = screens[name]
    async with running(make) as (app, pilot):
        await shows(pilot, text)
        await through_all_sizes(app, pilot)


@pytest.mark.parametrize("size", [(10, 3), (39, 24), (80, 7)], ids=str)
async def test_a_screen_that_nothing_fits_on_says_so(session: Make, size: tuple[int, int]) -> None:
    path = session()
    make = lambda: LiveScreen(path, now_ns=lambda: START_UNIX_NS)  # noqa: E731
    async with running(make, size) as (app, pilot):
        await shows(pilot, "too small\nneeds 40x8")
        check_screen(app)


@pytest.mark.parametrize("theme", [palette.DARK, palette.LIGHT])
@pytest.mark.parametrize("page", ["", "i", "o", "l", "p", "question_mark"])
async def test_every_word_that_is_shown_can_be_read(session: Make, theme: str, page: str) -> None:
    async with live(session(gpus=2, pipes=True, log=LOG), (120, 40)) as (app, pilot):
        app.theme = theme
        if page:
            await pilot.press(page)
        await shows(pilot, PAGES[page])
        for strip in app.screen._compositor.render_strips():
            for segment in strip:
                style = segment.style
                if style is None or style.color is None or style.bgcolor is None:
                    continue
                if not any(c.isalnum() for c in segment.text):
                    continue
                front, back = style.color.get_truecolor().hex, style.bgcolor.get_truecolor().hex
                if style.reverse:
                    front, back = back, front
                assert contrast(front, back) >= 4.5, segment
