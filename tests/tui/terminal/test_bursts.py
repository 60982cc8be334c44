"""Many keys at once, as over a slow connection, act like single ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from textual import events

from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.live.screen import LiveScreen
from gpuwatch.tui.log.screen import LogScreen
from gpuwatch.tui.processes.page import ProcessScreen
from gpuwatch.tui.widgets.page import PageScreen

from ..harness import live, screen_text, shows, until
from ..process_sessions import RUN, STRANGER, add
from ..sessions import finished

Make = Callable[..., Path]


def burst(app: GpuwatchApp, *keys: str) -> None:
    """Send all keys before the app handles the first."""
    for key in keys:
        app.post_message(events.Key(key, key if len(key) == 1 else None))


async def test_a_search_written_at_once_is_a_search(session: Make) -> None:
    path = session(log=[("stdout", "epoch 1"), ("stderr", "the loss rose"), ("stdout", "end")])
    async with live(path) as (app, pilot):
        burst(app, "l", "slash", "l", "o", "s", "s", "enter")
        await shows(pilot, "“loss”: 1 of 1 matching line")
        assert isinstance(app.screen, LogScreen)
        burst(app, "escape", "escape", "i")
        await until(pilot, lambda: isinstance(app.screen, PageScreen))


async def test_a_key_of_a_page_is_not_one_of_the_screen_below(session: Make) -> None:
    async with live(add(session(), RUN, STRANGER), (120, 40)) as (app, pilot):
        burst(app, "p", "o", "o", "o")
        await shows(pilot, "by CPU")
        assert isinstance(app.screen, ProcessScreen)
        burst(app, "escape", "o")
        await shows(pilot, "timed steps")
        assert isinstance(app.screen, LiveScreen)


async def test_back_and_on_through_several_pages(session: Make) -> None:
    async with live(session(meta=finished(), alive=False)) as (app, pilot):
        for _ in range(3):
            burst(app, "l", "escape", "p", "escape", "i", "escape", "K", "escape", "question_mark")
            await shows(pilot, "all keys of this screen")
            burst(app, "escape")
            await until(pilot, lambda: isinstance(app.screen, LiveScreen))
        assert "? help" in screen_text(app)
