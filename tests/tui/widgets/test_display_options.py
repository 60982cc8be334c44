"""What the main screens look like dark, light, in 16 colours, without colours and in ASCII.

Stored as the tests of ``test_snapshots`` store their text: styles as runs, of ASCII the text.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.compare.screen import CompareScreen
from gpuwatch.tui.display_options import DisplayOptions
from gpuwatch.tui.home.screen import HomeScreen
from gpuwatch.tui.widgets.ascii import to_ascii

from ..compare.test_compare import study
from ..conftest import Fake, entry
from ..harness import (
    check_snapshot,
    colours,
    drawn,
    live,
    running,
    screen_styles,
    screen_text,
    shows,
    until,
)
from ..test_snapshots import LOG, MEASURED, name_of

pytestmark = pytest.mark.usefixtures("every_size")

Make = Callable[..., Path]
Show = Callable[[tuple[int, int], DisplayOptions], AbstractAsyncContextManager[GpuwatchApp]]

SCREENS = ("live", "home", "compare")


@pytest.fixture
def show(request: pytest.FixtureRequest) -> Callable[[str], Show]:
    """The app on one of the screens, once its data are shown."""

    @asynccontextmanager
    async def on_live(size: tuple[int, int], look: DisplayOptions) -> AsyncIterator[GpuwatchApp]:
        session: Make = request.getfixturevalue("session")
        async with live(session(log=LOG, **MEASURED), size, look=look) as (app, _):
            yield app

    @asynccontextmanager
    async def on_home(size: tuple[int, int], look: DisplayOptions) -> AsyncIterator[GpuwatchApp]:
        fake: Fake = request.getfixturevalue("fake")
        states = ("running", "finished", "failed", "stopped", "lost")
        listed = [Path(f"/home/user/studies/{number}.gpuwatch") for number in range(len(states))]
        fake.list(*(entry(path, status=state) for path, state in zip(listed, states, strict=True)))
        async with running(HomeScreen, size, look) as (app, pilot):
            await shows(pilot, "H100")
            await shows(pilot, "lost")
            await drawn(pilot)
            yield app

    @asynccontextmanager
    async def on_compare(size: tuple[int, int], look: DisplayOptions) -> AsyncIterator[GpuwatchApp]:
        paths = study(request.getfixturevalue("tmp_path"))
        async with running(lambda: CompareScreen(paths), size, look) as (app, pilot):
            await shows(pilot, "SLOWER")
            yield app

    shown: dict[str, Show] = {"live": on_live, "home": on_home, "compare": on_compare}
    return lambda name: shown[name]


@pytest.mark.parametrize("theme", ["dark", "light", "terminal"])
@pytest.mark.parametrize("screen", SCREENS)
async def test_styles(show: Callable[[str], Show], screen: str, theme: str) -> None:
    async with show(screen)((80, 24), DisplayOptions(theme=theme)) as app:
        check_snapshot(name_of(f"styles-{screen}-{theme}", (80, 24)), screen_styles(app))


@pytest.mark.parametrize("screen", SCREENS)
async def test_styles_without_colours(
    show: Callable[[str], Show], screen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with show(screen)((80, 24), DisplayOptions()) as app:
        styles = screen_styles(app)
        assert "#" not in styles, "no colour is sent"
        check_snapshot(name_of(f"styles-{screen}-no-color", (80, 24)), styles)


@pytest.mark.parametrize("screen", SCREENS)
async def test_ascii(show: Callable[[str], Show], screen: str) -> None:
    size = (80, 24)
    async with show(screen)(size, DisplayOptions(ascii=True)) as app:
        # The driver converts the output in the same way: see ``test_ascii``.
        check_snapshot(name_of(f"ascii-{screen}", size), to_ascii(screen_text(app)))


def style_of(app: GpuwatchApp, text: str) -> str:
    """The style at ``text`` on the screen, without its colours."""
    for strip in app.screen._compositor.render_strips():
        for segment in strip:
            if text in segment.text and segment.style is not None:
                return str(segment.style.without_color)
    raise AssertionError(screen_text(app))


@pytest.mark.parametrize("without_colours", [False, True])
async def test_in_few_colours_the_row_of_the_cursor_is_seen_also_while_a_text_is_written(
    fake: Fake, monkeypatch: pytest.MonkeyPatch, without_colours: bool
) -> None:
    if without_colours:
        monkeypatch.setenv("NO_COLOR", "1")
    fake.list(*(entry(Path(f"/x/{name}"), workload=name) for name in ("first", "second")))
    async with running(HomeScreen, (80, 24), DisplayOptions(theme="terminal")) as (app, pilot):
        await shows(pilot, "second")
        await until(pilot, lambda: "reverse" in style_of(app, "first"))
        assert "reverse" not in style_of(app, "second")
        await pilot.press("slash", shows="find:")
        await until(pilot, lambda: "underline" in style_of(app, "first"))
        assert "underline" not in style_of(app, "second")


async def test_a_question_in_the_terminals_colours_has_a_frame_and_leaves_the_rest_to_be_read(
    fake: Fake,
) -> None:
    fake.list(entry(Path("/x/first"), workload="first"))
    async with running(HomeScreen, (80, 24), DisplayOptions(theme="terminal")) as (app, pilot):
        await shows(pilot, "H100")
        await shows(pilot, "first")
        await pilot.press("d", shows="Arrows choose")
        text = screen_text(app)
        assert "H100 80GB" in text and "find" in text.splitlines()[-1]
        assert any("┌──" in row for row in text.splitlines())


async def test_the_palette_in_the_terminals_colours_has_a_frame_and_a_selected_row(
    fake: Fake,
) -> None:
    async with running(HomeScreen, (80, 24), DisplayOptions(theme="terminal")) as (app, pilot):
        await shows(pilot, "H100")
        before = colours(app)
        await pilot.press("ctrl+p", shows="┌──")
        await shows(pilot, "new run")
        assert "H100 80GB" in screen_text(app)
        await until(pilot, lambda: "color(0)" in colours(app) - before)
