"""A page of text over a screen: rows that scroll; help is one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType

from gpuwatch.tui.widgets.canvas_screen import CanvasScreen
from gpuwatch.tui.widgets.cells import pad, wrap
from gpuwatch.tui.widgets.keys import Keys, keys_row
from gpuwatch.tui.widgets.line import Line, Span

Row = tuple[Span, ...]

_MOST = 4
"""Rows of what one key does."""


SCROLLING: list[BindingType] = [
    Binding("down,j", "scroll_by(1)", show=False),
    Binding("up,k", "scroll_by(-1)", show=False),
    Binding("pagedown,space", "scroll_by(20)", show=False),
    Binding("pageup", "scroll_by(-20)", show=False),
    Binding("home", "scroll_by(-1000000)", show=False),
    Binding("end", "scroll_by(1000000)", show=False),
]
"""What moves a page of rows, in those that have ``action_scroll_by``."""
_KEY = 18
"""Columns of the keys on the page of keys."""


def help_lines(keys: Keys, width: int) -> list[Row]:
    """Keys and what they do, in groups."""
    rows: list[Row] = []
    for key, what in keys:
        if not key:
            rows += [(("", "text"),)] * bool(rows) + [((f" {what}", "strong"),)] * bool(what)
            continue
        lines = wrap(what, max(10, width - _KEY - 2), _MOST) or [""]
        rows.append(((f" {pad(key, _KEY)}", "key"), (lines[0], "text")))
        rows += [((" " * (_KEY + 1) + line, "text"),) for line in lines[1:]]
    return rows


class PageScreen(CanvasScreen):
    """Rows that scroll; the keys that open such a page close it too."""

    KEYS: ClassVar[tuple[tuple[str, str], ...]] = (
        ("↑ ↓ PgUp PgDn", "scroll; j, k and Space too"),
        ("Home End", "the first row, the last one"),
        ("Esc or q", "back"),
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter,question_mark,f1,i,K", "close", show=False),
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
            keys.append(("↑↓", f"scroll, {self._first + 1} of {len(rows)}"))
        lines.append(keys_row(keys, width))
        self.show(lines)

    def action_scroll_by(self, by: int) -> None:
        self._first += by
        self.paint()

    def action_close(self) -> None:
        self.dismiss(None)
