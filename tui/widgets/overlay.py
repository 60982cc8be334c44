"""Lines over one another in character cells: braille dots, and the letter of each line on it."""

from __future__ import annotations

from collections.abc import Sequence

DOTS = 2
"""Columns of dots in a cell."""
_HIGH = 4
"""Rows of dots in a cell."""
_BITS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_EVERY = 24
"""Cells between two letters on a line."""
_CROSSED = "*"
"""Where several lines meet and there are no dots to show them all."""

Cell = tuple[str, str]
"""A character and the role of its colour."""


class Overlay:
    """A picture of ``columns`` by ``rows`` cells, into which lines are added one after the other.

    In a cell that several lines cross all their dots stand, in the colour of the last one.
    """

    def __init__(self, columns: int, rows: int, *, ascii: bool = False) -> None:
        """``ascii``: of letters alone, without dots."""
        self._columns, self._rows = columns, rows
        self._ascii = ascii
        self._bits: dict[tuple[int, int], int] = {}
        self._of: dict[tuple[int, int], list[int]] = {}
        self._lines: list[Cell] = []
        self._letters: dict[tuple[int, int], int] = {}
        self._ends: dict[int, list[Cell]] = {}

    def add(
        self, letter: str, role: str, values: Sequence[float | None], scale: tuple[float, float]
    ) -> None:
        """Draw a line of one value for each column of dots; what is off the scale stands at its
        edge, ``None`` is a gap."""
        number = len(self._lines)
        self._lines.append((letter, role))
        low, high = scale
        heights = [None if v is None else self._height(v, low, high) for v in values]
        before: int | None = None
        for x, y in enumerate(heights):
            if y is not None:
                start = y if before is None else before
                # To the height before it, less that dot itself: a jump is drawn as a wall.
                step = (y > start) - (y < start)
                for dot in range(start + step, y, step) if step else ():
                    self._dot(x, dot, number)
                self._dot(x, y, number)
            before = y
        self._name(number, heights)

    def row(self, at: int) -> list[Cell]:
        """The cells of one row, the highest is 0."""
        return [self._cell(column, at) for column in range(self._columns)]

    def ends(self, at: int) -> list[Cell]:
        """Letters of the lines whose last value lies in a row."""
        return self._ends.get(at, [])

    def _height(self, value: float, low: float, high: float) -> int:
        share = (value - low) / ((high - low) or 1.0)
        return round(min(1.0, max(0.0, share)) * (self._rows * _HIGH - 1))

    def _dot(self, x: int, y: int, number: int) -> None:
        column, right = divmod(x, DOTS)
        row, down = divmod(self._rows * _HIGH - 1 - y, _HIGH)
        self._bits[column, row] = self._bits.get((column, row), 0) | _BITS[down][right]
        crossing = self._of.setdefault((column, row), [])
        if number not in crossing:
            crossing.append(number)

    def _name(self, number: int, heights: Sequence[int | None]) -> None:
        """Put the letter on the line now and then, and at the end; each line at other columns."""
        ends = [x for x, y in enumerate(heights) if y is not None]
        if not ends:
            return
        row = self._row_of(heights[ends[-1]])
        self._ends.setdefault(row, []).append(self._lines[number])
        for column in range(4 + number * 3, self._columns, _EVERY):
            y = heights[column * DOTS]
            if y is not None:
                self._letters.setdefault((column, self._row_of(y)), number)

    def _row_of(self, y: int | None) -> int:
        return (self._rows * _HIGH - 1 - (y or 0)) // _HIGH

    def _cell(self, column: int, row: int) -> Cell:
        crossing = self._of.get((column, row))
        if not crossing:
            return " ", "text"
        if (column, row) in self._letters:
            return self._lines[self._letters[column, row]]
        letter, role = self._lines[crossing[-1]]
        if self._ascii:
            return (letter if len(crossing) == 1 else _CROSSED), role
        return chr(0x2800 + self._bits[column, row]), role
