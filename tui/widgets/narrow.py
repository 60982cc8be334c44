"""Sending only the changed cells of a row, and of their styles only what differs.

Textual sends each changed row of a widget from the widget's left edge on, and every piece of it
with its whole style and a reset. On a screen that is one widget that is most of the row for one
new column of a history, and forty bytes of colours around two digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rich.color import ColorSystem
from rich.console import Console
from rich.style import Style
from textual._compositor import ChopsUpdate, CompositorUpdate
from textual.geometry import Region
from textual.screen import Screen
from textual.widget import Widget

from gpuwatch.tui.widgets.pen import Pen


class NarrowUpdate(ChopsUpdate):
    """A partial update whose rows are cut at both ends, written as one stream of changes."""

    def render_segments(self, console: Console) -> str:
        pen = Pen(console._color_system or ColorSystem.TRUECOLOR)
        for y, x1, x2 in self.spans:
            for end, (x, strip) in zip(self.chop_ends[y], self.chops[y].items(), strict=False):
                if strip is None or x >= x2 or end <= x1:
                    continue
                start = max(x, x1)
                pen.move(start, y)
                for text, style, _ in strip.crop(start - x, min(end, x2) - x):
                    pen.write(text, style)
        return pen.sequence()


Piece = tuple[str, Style | None]
"""Text and its style."""


def send(
    canvas: Widget, regions: Sequence[Region], pieces: Callable[[Region], Iterable[Piece]]
) -> bool:
    """Write what stands in ``regions`` of ``canvas`` to the terminal now; whether that was done.

    Each region is of one row, whose ``pieces`` fill it. ``canvas`` is its whole screen, so nothing
    lies over it and the way through Textual's layout, which costs as much as the picture itself,
    gives the same. Not done where another screen is on top, or where Textual itself is about to
    draw.
    """
    app, screen = canvas.app, canvas.screen
    driver = app._driver
    if driver is None or app.is_headless or driver.is_inline or app._batch_count:
        return False
    # Textual's own, for notifications and tooltips, are children too, and shown when they speak.
    alone = app.screen is screen and not any(
        each.display for each in screen.children if each is not canvas
    )
    if not alone or not app._running or canvas.region != screen.region or canvas._repaint_required:
        return False
    pen = Pen(app.console._color_system or ColorSystem.TRUECOLOR)
    for region in regions:
        pen.move(region.x, region.y)
        for text, style in pieces(region):
            pen.write(text, style)
    app._begin_update()
    driver.write(pen.sequence())
    app._end_update()
    driver.flush()
    return True


def send_only_changes(screen: Screen[Any]) -> None:
    """Let ``screen`` send narrow updates from now on."""
    compositor = screen._compositor
    whole = compositor.render_partial_update

    def changes() -> CompositorUpdate | None:
        update = whole()
        if type(update) is not ChopsUpdate:
            return update
        return NarrowUpdate(update.chops, update.spans, update.chop_ends)

    compositor.render_partial_update = changes  # type: ignore[method-assign,assignment]
