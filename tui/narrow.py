"""Sending only the changed cells of a row, and of their styles only what differs.

Textual sends each changed row of a widget from the widget's left edge on, and every piece of it
with its whole style and a reset. On a screen that is one widget that is most of the row for one
new column of a history, and forty bytes of colours around two digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

from rich.color import ColorSystem
from rich.console import Console
from rich.style import Style
from textual._compositor import ChopsUpdate, CompositorUpdate
from textual.geometry import Region
from textual.screen import Screen
from textual.widget import Widget

from gpuwatch.tui.changes import narrow

_Look = tuple[tuple[str, ...], str, str]
"""The attributes' codes, those of the colour, and those of the background."""
_PLAIN: _Look = ((), "39", "49")
_ATTRIBUTES = (
    ("bold", "1", "22"),
    ("dim", "2", "22"),
    ("italic", "3", "23"),
    ("underline", "4", "24"),
    ("blink", "5", "25"),
    ("reverse", "7", "27"),
    ("strike", "9", "29"),
)
"""Of a style; the codes that turn it on and off."""
_OFF = {on: off for _, on, off in _ATTRIBUTES}


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


class Pen:
    """Writes styled text here and there, and knows what the terminal was told before."""

    def __init__(self, system: ColorSystem) -> None:
        """``system``: the colours that the terminal knows."""
        self._system = system
        self._look: _Look = _PLAIN
        self._style: Style | None = None
        self._out: list[str] = []
        self._at: tuple[int, int] | None = None
        """Where the terminal's cursor is, as long as that is sure."""

    def move(self, x: int, y: int) -> None:
        """Go to a cell, counted from 0: along a row by a step, which is half as long to say."""
        before, self._at = self._at, (x, y)
        if before is None or before[1] != y or before[0] > x:
            self._out.append(f"\x1b[{y + 1};{x + 1}H")
        elif before[0] < x:
            self._out.append(f"\x1b[{x - before[0]}C")

    def write(self, text: str, style: Style | None) -> None:
        """Write from where the pen is."""
        if style is not self._style:
            look = _PLAIN if style is None else _look(style, self._system)
            if look != self._look:
                self._out.append(_switch(self._look, look))
                self._look = look
            self._style = style
        self._out.append(text)
        if self._at is not None:
            x, y = self._at
            self._at = (x + len(text), y) if narrow(text) else None

    def sequence(self) -> str:
        """All that was written; behind it the terminal's style is its plain one."""
        if self._look != _PLAIN:
            self._out.append("\x1b[0m")
            self._look, self._style = _PLAIN, None
        return "".join(self._out)


@lru_cache(maxsize=1024)
def _look(style: Style, system: ColorSystem) -> _Look:
    on = tuple(code for name, code, _ in _ATTRIBUTES if getattr(style, name))
    colours = ["39", "49"]
    for place, colour in enumerate((style.color, style.bgcolor)):
        if colour is not None:
            codes = colour.downgrade(system).get_ansi_codes(foreground=place == 0)
            colours[place] = ";".join(codes)
    return on, colours[0], colours[1]


@lru_cache(maxsize=4096)
def _switch(before: _Look, after: _Look) -> str:
    """The sequence that leads from one style to another."""
    codes: list[str] = []
    ended = {_OFF[code] for code in before[0] if code not in after[0]}
    codes += sorted(ended)
    # 22 ends bold and dim at once.
    codes += [code for code in after[0] if code not in before[0] or _OFF[code] in ended]
    codes += [new for old, new in zip(before[1:], after[1:], strict=True) if old != new]
    return f"\x1b[{';'.join(codes)}m"


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
