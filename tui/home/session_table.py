"""The list of sessions and studies: Textual's table."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widgets import DataTable

from gpuwatch.tui.home.list import Item
from gpuwatch.tui.home.table import Cells, Column, cells, columns
from gpuwatch.tui.widgets.palette import styles


class SessionTable(DataTable[Text]):
    """A row for each session and study; the cursor is a whole row."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select_cursor", "open", tooltip="open: live or replay; a study's runs"),
        Binding("right", "screen.unfold(True)", "runs", show=False, tooltip="show a study's runs"),
        Binding("left", "screen.unfold(False)", "hide", show=False, tooltip="hide a study's runs"),
        Binding("j", "cursor_down", "down", show=False),
        Binding("k", "cursor_up", "up", show=False),
        Binding("home", "scroll_top", "first row", show=False),
        Binding("end", "scroll_bottom", "last row", show=False),
    ]

    def __init__(self, *, ascii: bool) -> None:
        """``ascii``: whether a bound is written in ASCII; the terminal does the rest."""
        super().__init__(cursor_type="row", cell_padding=0)
        self._ascii = ascii
        self._wanted: tuple[tuple[Item, ...], tuple[Path, ...], int] = ((), (), 0)
        """Items, marked ones and the cursor that were asked for last."""
        self._drawn: tuple[object, ...] = ()
        """What that depends on: devices are drawn every second, the list is not."""
        self._columns: list[Column] = []
        self._rows: dict[str, Cells] = {}
        """What stands in each row, by its key."""

    def update(self, items: tuple[Item, ...], marked: tuple[Path, ...], cursor: int) -> None:
        """Show ``items`` with the cursor on the one at ``cursor``; only what changed is drawn."""
        self._wanted = items, marked, cursor
        width = self.scrollable_content_region.width
        # With the day: what was started on it shows the time alone.
        asked = (*self._wanted, width, date.today())
        if asked == self._drawn:
            return
        self._drawn = asked
        shown = columns(items, width)
        rows = {f"{at} {item.path}": cells(item, shown, marked) for at, item in enumerate(items)}
        if shown != self._columns or list(rows) != list(self._rows):
            self._fill(shown, rows)
        else:
            for key, row in rows.items():
                for column, old, new in zip(shown, self._rows[key], row, strict=True):
                    if old != new:
                        self.update_cell(key, column.name, self._text(new))
        self._columns, self._rows = shown, rows
        if self.cursor_row != cursor:
            self.move_cursor(row=cursor, animate=False)

    def on_resize(self) -> None:
        """The columns of the new width, also of the first one that is known."""
        self.update(*self._wanted)

    def redraw(self) -> None:
        """Draw all rows anew, in other colours."""
        self._fill(self._columns, self._rows)

    def _fill(self, shown: Sequence[Column], rows: dict[str, Cells]) -> None:
        (cursor, column), top = self.cursor_coordinate, self.scroll_y
        self.clear(columns=True)
        for each in shown:
            title = each.cell(each.title or each.name)
            self.add_column(title, width=each.width, key=each.name)
        for key, row in rows.items():
            self.add_row(*map(self._text, row), key=key)
        row_at = min(cursor, max(0, len(rows) - 1))
        # With its column: a second click in the same place opens the row.
        self.move_cursor(row=row_at, column=column, animate=False, scroll=False)
        self.scroll_to(y=top, animate=False)

    def _text(self, cell: tuple[str, str]) -> Text:
        text, role = cell
        if self._ascii:
            text = text.replace(" ≤", "<=")
        style = styles(self.app.current_theme, self.app.no_color)[role]
        return Text(text, Style(color=style.color, bold=style.bold, dim=style.dim))
