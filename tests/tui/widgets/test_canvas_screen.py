"""A screen with one canvas, and messages while it closes."""

import asyncio

from gpuwatch.tui.widgets.base_screen import CanvasScreen
from gpuwatch.tui.widgets.canvas import Canvas
from gpuwatch.tui.widgets.line import Line
from tests.tui.harness import running, shows, until


class Waits(CanvasScreen):
    """Paints after its canvas was removed and before it is removed itself."""

    late = False

    def on_mount(self) -> None:
        self.call_after_refresh(self.paint)
        self.run_worker(self._wait())

    async def _wait(self) -> None:
        task = self.query_one(Canvas)._task
        assert task is not None
        await asyncio.wait([task])
        assert self.is_attached and not self.query(Canvas)
        self.paint()
        self.late = True

    def paint(self) -> None:
        self.show([Line(80).add("waits")])


class Below(CanvasScreen):
    """The screen below."""

    def paint(self) -> None:
        self.show([Line(80).add("below")])


async def test_what_a_leaving_screen_waited_for_ends_nothing() -> None:
    async with running(Below) as (app, pilot):
        await shows(pilot, "below")
        screen = Waits()
        app.push_screen(screen)
        await shows(pilot, "waits")
        screen.dismiss(None)
        await until(pilot, lambda: screen.late)
        await shows(pilot, "below")
        await pilot.press("question_mark", shows="keys")
