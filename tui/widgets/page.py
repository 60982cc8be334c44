"""A page of text over a screen: rows that scroll."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType

from gpuwatch.tui.widgets.canvas_screen import CanvasScreen
from gpuwatch.tui.widgets.line import Line, Span

Row = tuple[Span, ...]

SCROLLING: list[BindingType] = [
    Binding("down,j", "scroll_by(1)", "down", show=False, tooltip="one row down"),
    Binding("up,k", "scroll_by(-1)", "up", show=False, tooltip="one row up"),
    Binding("pagedown,space", "scroll_by(20)", "page down", show=False),
    Binding("pageup", "scroll_by(-20)", "page up", show=False),
    Binding("home", "scroll_by(-1000000)", "first row", show=False),
    Binding("end", "scroll_by(1000000)", "last row", show=False),
]
"""What scrolls a page of rows that has ``action_scroll_by``."""


class PageScreen(CanvasScreen):
    """Rows that scroll; the keys that open such a page close it too."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter,i,K,r", "close", "back"),
        *SCROLLING,
    ]

    def __init__(self, title: str, rows: Callable[[int], Sequence[Row]]) -> None:
        """``rows``: what is shown on a screen of so many columns."""
        super().__init__()
        self._heading = title
        self._make = rows
        self._first = 0

    def on_mount(self) -> None:
        self.call_after_refresh(self.paint)

    def paint(self) -> None:
        width, height = self.room
        lines = [Line(width).add(" gpuwatch ", "brand").add(self._heading, "strong"), Line(width)]
        rows = self._make(width)
        space = max(1, height - 2)
        self._first = max(0, min(self._first, len(rows) - space))
        for row in rows[self._first : self._first + space]:
            line = Line(width)
            for text, role in row:
                line.add(text, role)
            lines.append(line)
        if len(rows) > space:
            last = min(len(rows), self._first + space)
            lines[0].end(f"{self._first + 1} to {last} of {len(rows)} ", "muted")
        self.show(lines)

    def action_scroll_by(self, by: int) -> None:
        self._first += by
        self.paint()

    def action_close(self) -> None:
        self.dismiss(None)
