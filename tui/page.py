"""A page of text over a screen: rows that scroll; help is one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType

from gpuwatch.tui.canvas import Canvas, Line, Span
from gpuwatch.tui.keys import keys_row
from gpuwatch.tui.painted import PaintedScreen

Row = tuple[Span, ...]


def help_lines(keys: Sequence[tuple[str, str]]) -> list[Row]:
    """Keys and what they do."""
    return [((f" {key:<18}", "key"), (what, "text")) for key, what in keys]


class PageScreen(PaintedScreen):
    """Rows that scroll with the arrow keys; any other key of leaving closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter,question_mark,i,K", "close", show=False),
        Binding("down,j", "scroll_by(1)", show=False),
        Binding("up,k", "scroll_by(-1)", show=False),
        Binding("pagedown,space", "scroll_by(20)", show=False),
        Binding("pageup", "scroll_by(-20)", show=False),
        Binding("home", "scroll_by(-1000000)", show=False),
        Binding("end", "scroll_by(1000000)", show=False),
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
        width, height = self.app.size
        lines = [Line(width).add(" gpuwatch ", "brand").add(self._heading, "strong"), Line(width)]
        rows = self._make(width)
        space = max(1, height - 3)
        self._first = max(0, min(self._first, len(rows) - space))
        for row in rows[self._first : self._first + space]:
            line = Line(width)
            for text, role in row:
                line.add(text, role)
            lines.append(line)
        lines += [Line(width) for _ in range(height - 1 - len(lines))]
        keys = [("Esc", "back")]
        if len(rows) > space:
            keys.append(("↑ ↓", f"scroll, {self._first + 1} of {len(rows)}"))
        lines.append(keys_row(keys, width))
        self.query_one(Canvas).show(lines)

    def action_scroll_by(self, by: int) -> None:
        self._first += by
        self.paint()

    def action_close(self) -> None:
        self.dismiss(None)
