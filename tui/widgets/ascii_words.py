"""Glyphs that need several characters in ASCII: ``<=``, ``>=`` and the names of arrow keys.

The longer text takes spaces from the next gap, so that columns stay aligned if possible.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby

from rich.cells import cell_len

from gpuwatch.tui.widgets.line import Line, Span

_SIGNS = {"≤": "<=", "≥": ">="}
_ARROWS = {"←": "Left", "→": "Right", "↑": "Up", "↓": "Down"}
_HINT_ARROW = (" → ", "key")
"""The arrow before a hint: not a key."""
_REPLACED = frozenset((*_SIGNS, *_ARROWS))
_LAYOUTS: tuple[tuple[int, Mapping[str, str]], ...] = ((2, _ARROWS), (1, _ARROWS), (1, {}))
"""Least spaces in a gap, and the arrow keys that are spelled out: the first that fits is used."""


def with_words(line: Line) -> Line:
    """The row, and the keys that clicks press, with words in place of such glyphs."""
    spans = line.spans()
    if all(_REPLACED.isdisjoint(text) for text, _ in spans):
        return line
    row = _Row(line.width)
    for gap, keys in _LAYOUTS:
        row = _Row(line.width)
        row.write(spans, gap, keys)
        if row.used <= line.width:
            break
    return row.line(line)


class _Row:
    """A row of cells under construction."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._cells: list[Span] = []
        self._columns: list[int] = []
        """Index of the new cell for each old column."""
        self._excess = 0
        """Cells that the row is too long so far."""

    @property
    def used(self) -> int:
        """Columns without trailing spaces."""
        return cell_len("".join(text for text, _ in self._cells).rstrip())

    def write(self, spans: tuple[Span, ...], gap: int, keys: Mapping[str, str]) -> None:
        """``gap``: least spaces between two parts of the row; ``keys``: names of arrow keys."""
        cells = [(c, role, (text, role) != _HINT_ARROW) for text, role in spans for c in text]
        for at, (character, role, may_be_key) in enumerate(cells):
            self._columns += [len(self._cells)] * cell_len(character)
            following = [cell[0] for cell in cells[at + 1 : at + 1 + gap]]
            after_sign = at > 0 and cells[at - 1][0] in _SIGNS
            if character in _SIGNS:
                self._sign(_SIGNS[character], role)
            elif role == "key" and may_be_key and character in keys:
                if at > 0 and cells[at - 1][0] in keys:
                    self._add("/", role, 0)
                self._add(keys[character], role, 1)
            elif self._excess and character == " " and (after_sign or following == [" "] * gap):
                self._excess -= 1
            else:
                self._cells.append((character, role))

    def _sign(self, word: str, role: str) -> None:
        if [text for text, _ in self._cells[-2:]] == [" ", " "]:
            self._cells.pop()
            self._columns[-1] -= 1
            self._excess -= 1
        self._add(word, role, 1)

    def _add(self, word: str, role: str, replaced: int) -> None:
        self._cells += [(character, role) for character in word]
        self._excess += len(word) - replaced

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
