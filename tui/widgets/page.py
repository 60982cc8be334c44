"""A page of text over a screen: rows that scroll."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType

from gpuwatch.tui.widgets.base_screen import Field, WritingScreen
from gpuwatch.tui.widgets.line import Line, Span

Row = tuple[Span, ...]

_FIND = " find: "

SCROLLING: list[BindingType] = [
    Binding("down,j", "scroll_by(1)", "down", show=False, tooltip="one row down"),
    Binding("up,k", "scroll_by(-1)", "up", show=False, tooltip="one row up"),
    Binding("pagedown,space", "scroll_by(20)", "page down", show=False),
    Binding("pageup", "scroll_by(-20)", "page up", show=False),
    Binding("home", "scroll_by(-1000000)", "first row", show=False),
    Binding("end", "scroll_by(1000000)", "last row", show=False),
]
"""What scrolls a page of rows that has ``action_scroll_by``."""


def found(rows: Sequence[Row], wanted: str) -> list[Row]:
    """The rows with ``wanted``, in small or capital letters, each below its heading, and with the
    rows that are indented below it."""
    shown: list[Row] = []
    heading: list[Row] = []
    inside = 0
    for row in rows:
        text = "".join(text for text, _ in row).casefold()
        depth = len(text) - len(text.lstrip())
        if wanted.casefold() in text:
            shown += [*heading, row]
            heading, inside = [], min(inside or depth, depth)
            continue
        inside = inside if depth > inside else 0
        shown += [row] if inside else []
        heading = [row] if depth <= 1 else heading
    return shown


class PageScreen(WritingScreen):
    """Rows that scroll, and can be searched; the keys that open such a page close it too."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter,i,K,r", "close", "back"),
        Binding("slash", "find", "find", tooltip="only rows with a text; Esc shows all again"),
        *SCROLLING,
    ]

    def __init__(self, title: str, rows: Callable[[int], Sequence[Row]]) -> None:
        """``rows``: what is shown on a screen of so many columns."""
        super().__init__()
        self._heading = title
        self._make = rows
        self._first = 0
        self._wanted = ""

    def on_mount(self) -> None:
        self.call_after_refresh(self.paint)

    def paint(self) -> None:
        width, height = self.room
        lines = [Line(width).add(" gpuwatch ", "brand").add(self._heading, "strong"), Line(width)]
        rows = found(self._make(width), self._wanted)
        if self._wanted or self.field.display:
            lines[1].add(_FIND, "key").add(self._wanted)
            self.field.stand(len(_FIND), 1, width - len(_FIND))
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

    def action_find(self) -> None:
        self.field.write(self._wanted)
        self.paint()

    def on_input_changed(self, message: Field.Changed) -> None:
        self._wanted = message.value
        self.paint()

    def on_input_submitted(self) -> None:
        self.field.hide()

    def on_field_left(self) -> None:
        self.action_close()

    def action_close(self) -> None:
        """Show all rows again, or leave."""
        if self._wanted or self.field.display:
            self._wanted = ""
            self.field.hide()
            self.paint()
        else:
            self.dismiss(None)
