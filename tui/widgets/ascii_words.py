"""What one mark cannot say in ASCII, in words: ``<=`` is no ``<``, and arrow keys have names.

A row keeps its columns where it has blanks to spare.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby

from rich.cells import cell_len

from gpuwatch.tui.widgets.line import Line, Span

_SIGNS = {"≤": "<=", "≥": ">="}
_KEYS = {"←": "Left", "→": "Right", "↑": "Up", "↓": "Down"}
_MEND = (" → ", "key")
"""The mark before how to fix something: no key."""
_ANY = frozenset((*_SIGNS, *_KEYS))
_WAYS: tuple[tuple[int, Mapping[str, str]], ...] = ((2, _KEYS), (1, _KEYS), (1, {}))
"""Blanks that stay in a gap, and the names that are written: the first way that fits."""


def in_words(line: Line) -> Line:
    """The row with words in place of such marks, and what a click on it presses."""
    spans = line.spans()
    if all(_ANY.isdisjoint(text) for text, _ in spans):
        return line
    wide = _Row(line.width)
    for gap, keys in _WAYS:
        wide = _Row(line.width)
        wide.write(spans, gap, keys)
        if wide.used <= line.width:
            break
    return wide.line(line)


class _Row:
    """Cells being written; what grows takes blanks from the next gap."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._cells: list[Span] = []
        self._columns: list[int] = []
        """Of each old column the cell that stands there now."""
        self._debt = 0

    @property
    def used(self) -> int:
        """Columns without blanks at the end."""
        return cell_len("".join(text for text, _ in self._cells).rstrip())

    def write(self, spans: tuple[Span, ...], gap: int, keys: Mapping[str, str]) -> None:
        """``gap``: blanks that stay between two parts of the row; ``keys``: names of keys, where
        there is room for them."""
        cells = [(c, role, (text, role) != _MEND) for text, role in spans for c in text]
        for at, (character, role, told) in enumerate(cells):
            self._columns += [len(self._cells)] * cell_len(character)
            behind = [each for each, *_ in cells[at + 1 : at + 1 + gap]]
            sign = at > 0 and cells[at - 1][0] in _SIGNS
            if character in _SIGNS:
                self._sign(_SIGNS[character], role)
            elif role == "key" and told and character in keys:
                if at > 0 and cells[at - 1][0] in keys:
                    self._add("/", role, 0)
                self._add(keys[character], role, 1)
            elif self._debt and character == " " and (sign or behind == [" "] * gap):
                self._debt -= 1
            else:
                self._cells.append((character, role))

    def _sign(self, word: str, role: str) -> None:
        if [text for text, _ in self._cells[-2:]] == [" ", " "]:
            self._cells.pop()
            self._columns[-1] -= 1
            self._debt -= 1
        self._add(word, role, 1)

    def _add(self, word: str, role: str, had: int) -> None:
        self._cells += [(character, role) for character in word]
        self._debt += len(word) - had

    def line(self, old: Line) -> Line:
        while self._cells and self._cells[-1][0] == " ":
            self._cells.pop()
        row = Line(self._width)
        ends = [*self._columns, len(self._cells)]
        start = 0
        for *columns, key in sorted(old.presses()):
            first, last = (ends[min(column, len(ends) - 1)] for column in columns)
            self._join(row, start, first, None)
            self._join(row, first, last, key)
            start = last
        self._join(row, start, len(self._cells), None)
        return row

    def _join(self, row: Line, first: int, last: int, press: str | None) -> None:
        for role, cells in groupby(self._cells[first:last], key=lambda cell: cell[1]):
            row.add("".join(text for text, _ in cells), role, press=press)
