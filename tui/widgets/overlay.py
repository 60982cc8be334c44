"""Several line graphs in one plot, drawn with braille dots and labelled with letters."""

from __future__ import annotations

from collections.abc import Sequence

DOT_COLUMNS = 2
"""Columns of dots per cell."""
_DOT_ROWS = 4
"""Rows of dots per cell."""
_BITS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_LETTER_DISTANCE = 24
"""Cells between two letters on a line."""
_CROSSING = "*"
"""A cell with several lines, without dots."""

Cell = tuple[str, str]
"""A character and the role of its colour."""


class Overlay:
    """A plot of ``columns`` by ``rows`` cells.

    A cell with several lines has the dots of all and the colour of the last one.
    """

    def __init__(self, columns: int, rows: int, *, ascii: bool = False) -> None:
        """``ascii``: draw with letters, without dots."""
        self._columns, self._rows = columns, rows
        self._ascii = ascii
        self._bits: dict[tuple[int, int], int] = {}
        self._crossings: dict[tuple[int, int], list[int]] = {}
        self._lines: list[Cell] = []
        self._letters: dict[tuple[int, int], int] = {}
        self._ends: dict[int, list[Cell]] = {}

    def add(
        self, letter: str, role: str, values: Sequence[float | None], scale: tuple[float, float]
    ) -> None:
        """Draw a line with one value per column of dots; values are clamped to the scale, ``None``
        is a gap."""
        number = len(self._lines)
        self._lines.append((letter, role))
        low, high = scale
        heights = [None if v is None else self._height(v, low, high) for v in values]
        before: int | None = None
        for x, y in enumerate(heights):
            if y is not None:
                start = y if before is None else before
                # A vertical line connects the dot with the previous one.
                step = (y > start) - (y < start)
                for dot in range(start + step, y, step) if step else ():
                    self._dot(x, dot, number)
                self._dot(x, y, number)
            before = y
        self._add_letters(number, heights)

    def row(self, at: int) -> list[Cell]:
        """The cells of a row, 0 at the top."""
        return [self._cell(column, at) for column in range(self._columns)]

    def ends(self, at: int) -> list[Cell]:
        """Letters of the lines that end in a row."""
        return self._ends.get(at, [])

    def _height(self, value: float, low: float, high: float) -> int:
        share = (value - low) / ((high - low) or 1.0)
        return round(min(1.0, max(0.0, share)) * (self._rows * _DOT_ROWS - 1))

    def _dot(self, x: int, y: int, number: int) -> None:
        column, right = divmod(x, DOT_COLUMNS)
        row, down = divmod(self._rows * _DOT_ROWS - 1 - y, _DOT_ROWS)
        self._bits[column, row] = self._bits.get((column, row), 0) | _BITS[down][right]
        lines = self._crossings.setdefault((column, row), [])
        if number not in lines:
            lines.append(number)

    def _add_letters(self, number: int, heights: Sequence[int | None]) -> None:
        """Label the line at regular distances and at its end; each line at different columns."""
        ends = [x for x, y in enumerate(heights) if y is not None]
        if not ends:
            return
        row = self._row_of(heights[ends[-1]])
        self._ends.setdefault(row, []).append(self._lines[number])
        for column in range(4 + number * 3, self._columns, _LETTER_DISTANCE):
            y = heights[column * DOT_COLUMNS]
            if y is not None:
                self._letters.setdefault((column, self._row_of(y)), number)

    def _row_of(self, y: int | None) -> int:
        return (self._rows * _DOT_ROWS - 1 - (y or 0)) // _DOT_ROWS

    def _cell(self, column: int, row: int) -> Cell:
        lines = self._crossings.get((column, row))
        if not lines:
            return " ", "text"
        if (column, row) in self._letters:
            return self._lines[self._letters[column, row]]
        letter, role = self._lines[lines[-1]]
        if self._ascii:
            return (letter if len(lines) == 1 else _CROSSING), role
        return chr(0x2800 + self._bits[column, row]), role
