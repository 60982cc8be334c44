"""Runs the app in a test, and reads its screen."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from rich.style import Style
from textual.app import App
from textual.pilot import Pilot
from textual.screen import Screen
from textual.strip import Strip

from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.display_options import USUAL, DisplayOptions
from gpuwatch.tui.home.screen import HomeScreen
from gpuwatch.tui.live.screen import LiveScreen

from .sessions import NS, START_UNIX_NS

Shown = TypeVar("Shown", bound=Screen[Any])
SNAPSHOTS = Path(__file__).parent / "snapshots"
UPDATE = "GPUWATCH_UPDATE_SNAPSHOTS"


def screen_text(app: GpuwatchApp) -> str:
    """The characters on the screen, row by row."""
    strips = app.screen._compositor.render_strips()
    return "\n".join(strip.text.rstrip() for strip in strips) + "\n"


def screen_styles(app: GpuwatchApp) -> str:
    """The styles on the screen: a legend, and for each row the number of cells of each style."""
    rows = [_runs(strip) for strip in app.screen._compositor.render_strips()]
    distinct = list(dict.fromkeys(style for row in rows for style, _ in row))
    letters = {style: chr(ord("a") + at) for at, style in enumerate(distinct)}
    legend = [f"{letters[style]}: {style}" for style in distinct]
    drawn = [" ".join(f"{count}{letters[style]}" for style, count in row) for row in rows]
    return "\n".join([*legend, "", *drawn]) + "\n"


def _runs(strip: Strip) -> list[tuple[str, int]]:
    runs: list[tuple[str, int]] = []
    for segment in strip:
        style = str((segment.style or Style()).without_color) + _colours_of(segment.style)
        style = style.replace("none", "").strip() or "plain"
        if runs and runs[-1][0] == style:
            runs[-1] = (style, runs[-1][1] + segment.cell_length)
        else:
            runs.append((style, segment.cell_length))
    return runs


def _colours_of(style: Style | None) -> str:
    front = style.color.name if style and style.color else "default"
    back = style.bgcolor.name if style and style.bgcolor else "default"
    return f" {front} on {back}"


def colours(app: GpuwatchApp) -> set[str]:
    """All colours on the screen."""
    colours = set()
    for strip in app.screen._compositor.render_strips():
        for segment in strip:
            if segment.style is not None:
                colours |= {str(c.name) for c in (segment.style.color, segment.style.bgcolor) if c}
    return colours - {"default"}


class Keys(Pilot[int]):
    """Comes back from a press once the app has handled it: it does so in a worker, one key after
    the other, which a Pilot does not wait for."""

    async def press(
        self, *keys: str, shows: str = "", hides: str = "", opens: type[Screen[Any]] | None = None
    ) -> None:
        """Wait then for what the screen shows, shows no more, or for the kind it is."""
        await super().press(*keys)
        app = self.app
        assert isinstance(app, GpuwatchApp)
        await until(self, lambda: not app.pressed or not app.is_running)
        if shows:
            await until(self, lambda: shows in screen_text(app))
        if hides:
            await until(self, lambda: hides not in screen_text(app))
        if opens:
            await until(self, lambda: isinstance(app.screen, opens))


@asynccontextmanager
async def piloted(
    app: GpuwatchApp, size: tuple[int, int] = (80, 24), **options: bool
) -> AsyncIterator[Keys]:
    """Run an app without a terminal."""
    async with app.run_test(size=size, **options):
        yield Keys(app)


@asynccontextmanager
async def running(
    make: Callable[[], Screen[Any]], size: tuple[int, int] = (80, 24), look: DisplayOptions = USUAL
) -> AsyncIterator[tuple[GpuwatchApp, Keys]]:
    app = GpuwatchApp(make, look)
    async with piloted(app, size, notifications=True, tooltips=True) as pilot:
        yield app, pilot


@asynccontextmanager
async def live(
    path: Path,
    size: tuple[int, int] = (80, 24),
    seconds: float = 90.0,
    look: DisplayOptions = USUAL,
) -> AsyncIterator[tuple[GpuwatchApp, Keys]]:
    """The live screen of ``path``, ``seconds`` after the session's start, once it is drawn."""

    def make() -> LiveScreen:
        return LiveScreen(path, refresh=0.1, now_ns=lambda: START_UNIX_NS + int(seconds * NS))

    async with running(make, size, look) as (app, pilot):
        screen = on_top(app, LiveScreen)
        await until(
            pilot,
            lambda: (
                screen.trouble is not None
                or (screen.snapshot is not None and screen.snapshot.view.columns == _columns(size))
            ),
        )
        await pilot.pause()
        yield app, pilot


def _columns(size: tuple[int, int]) -> int:
    from gpuwatch.tui.widgets.gauge_rows import graph_columns

    return graph_columns(size[0])


def on_top(app: App[Any], kind: type[Shown]) -> Shown:
    """The screen that is shown, which is of that kind."""
    assert isinstance(app.screen, kind)
    return app.screen


async def until(pilot: Pilot[int], true: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait until a condition is true."""
    for _ in range(int(seconds / 0.02)):
        if true():
            await pilot.pause()
            return
        await pilot.pause(0.02)
    raise AssertionError(f"it never happened; the screen:\n{screen_text(pilot.app)}")  # type: ignore[arg-type]


async def drawn(pilot: Pilot[int]) -> None:
    """Wait until the home screen draws its devices for the terminal's size."""

    def fits() -> bool:
        devices = on_top(pilot.app, HomeScreen).state.devices
        return devices is not None and devices.view.columns == _columns(pilot.app.size)

    await until(pilot, fits)


async def shows(pilot: Pilot[int], text: str) -> None:
    """Wait until the screen shows ``text``."""
    await until(pilot, lambda: text in screen_text(pilot.app))  # type: ignore[arg-type]


def check_snapshot(name: str, text: str) -> None:
    """Compare with the stored snapshot, or store it if the variable is set."""
    path = SNAPSHOTS / f"{name}.txt"
    if os.environ.get(UPDATE):
        path.write_text(text)
        return
    assert path.exists(), f"no snapshot {name}: run the tests with {UPDATE}=1 and look at it"
    stored = path.read_text()
    assert text == stored, f"{name} changed; if that is right, run with {UPDATE}=1\n{text}"


def without_paths(text: str, folder: Path) -> str:
    """``text`` without the temporary folder, in the same width."""
    return re.sub(re.escape(str(folder)) + r"\S*", "…", text)
