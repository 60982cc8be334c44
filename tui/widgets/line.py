"""One row of styled text: texts in a number of cells, bars and histories on a fixed scale."""

from __future__ import annotations

import re
from codecs import charmap_decode
from collections.abc import Sequence
from functools import lru_cache

from rich.cells import cell_len, chop_cells, set_cell_size

from gpuwatch.tui.feed.log_lines import bar_of


def fit(text: str, width: int) -> str:
    """``text`` cut to ``width`` cells, with an ellipsis if it is too long."""
    if width <= 0:
        return ""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1).rstrip() + "…"


def pad(text: str, width: int, align: str = "<") -> str:
    """``text`` in exactly ``width`` cells; ``align`` is ``<`` or ``>``."""
    text = fit(text, width)
    space = " " * (width - cell_len(text))
    return space + text if align == ">" else text + space


def wrap(text: str, width: int, lines: int) -> list[str]:
    """``text`` in at most ``lines`` lines of ``width`` cells, broken at spaces if possible, but not
    before a per cent sign."""
    rows: list[str] = []
    words = re.findall(r"\S+(?: %\S*)?", text)
    current = ""
    for word in words:
        joined = f"{current} {word}" if current else word
        if cell_len(joined) <= width:
            current = joined
            continue
        if current:
            rows.append(current)
        *full, current = chop_cells(word, max(1, width)) or [""]
        rows.extend(full)
    if current:
        rows.append(current)
    if len(rows) > lines:
        rows = [*rows[: lines - 1], fit(" ".join(rows[lines - 1 :]), width)] if lines else []
    return rows


_BLOCKS = " ▁▂▃▄▅▆▇█"
_MOST_OF_BYTES = 31
"""Rows up to which a level, in eighths of one, is a byte, which is drawn fast."""


def bar(fraction: float | None, width: int) -> tuple[str, str]:
    """The filled (heavy) and the empty (light) part of a bar from 0 to 1."""
    if fraction is None:
        return "", "┄" * width
    halves = round(min(1.0, max(0.0, fraction)) * width * 2)
    full, half = divmod(halves, 2)
    filled = "━" * full + ("╸" if half else "")
    return filled, "─" * (width - len(filled))


def area(values: Sequence[float | None], top: float, height: int) -> list[str]:
    """An area graph from zero to ``top``, as rows from the top.

    A known value has at least one eighth of a row, an unknown one is blank.
    """
    levels = [_level(value, top, height * 8) for value in values]
    if height > _MOST_OF_BYTES:
        return ["".join([blocks[level] for level in levels]) for blocks in _drawings(height)]
    drawn = bytes(levels)
    return [charmap_decode(drawn, "strict", blocks)[0] for blocks in _drawings(height)]


def _level(value: float | None, top: float, maximum: int) -> int:
    if value is None:
        return 0
    if value >= top:
        return maximum
    return round(value / top * maximum) or 1 if value > 0 else 1


@lru_cache(maxsize=64)
def _drawings(height: int) -> tuple[str, ...]:
    """For each row from the top, the block of every level in eighths of a row."""
    return tuple(
        "".join(_BLOCKS[max(0, min(8, level - 8 * row))] for level in range(8 * height + 1))
        for row in range(height - 1, -1, -1)
    )


Span = tuple[str, str]
"""Text and the role of its colour."""

Press = tuple[int, int, str]
"""First column, column after the last one, and the key that a click there presses."""


class Line:
    """One row, built from left to right."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.used = 0
        self._spans: list[Span] = []
        self._presses: list[Press] = []

    @property
    def left(self) -> int:
        return self.width - self.used

    def add(self, text: str, role: str = "text", *, press: str | None = None) -> Line:
        """Append ``text``, cut at the row's end; a click on it presses the key ``press``.

        ``press`` is Textual's name of a key: ``q``, ``escape``, ``question_mark``.
        """
        cells = len(text) if text.isascii() else cell_len(text)
        left = self.width - self.used
        if cells > left:
            text = fit(text, left)
            cells = cell_len(text)
        if text:
            start = self.used
            self._spans.append((text, role))
            self.used += cells
            if press is not None:
                self._presses.append((start, self.used, press))
        return self

    def bar(self, share: float | None, columns: int, role: str) -> Line:
        """Append a bar from 0 to 1."""
        filled, empty = bar(share, columns)
        return self.add(filled, role).add(empty, "faint")

    def to(self, column: int, role: str = "text") -> Line:
        """Fill with spaces up to ``column``."""
        if column > self.used:
            self.add(" " * (min(column, self.width) - self.used), role)
        return self

    def end(self, text: str, role: str = "text") -> Line:
        """Add ``text`` at the right edge."""
        text = fit(text, self.left)
        return self.to(self.width - cell_len(text)).add(text, role)

    def join(self, other: Line) -> Line:
        """Append the spans of another row."""
        self._presses += [
            (self.used + start, self.used + end, key)
            for start, end, key in other._presses
            if self.used + start < self.width
        ]
        if other.used <= self.left:
            self._spans += other._spans
            self.used += other.used
            return self
        for text, role in other._spans:
            self.add(text, role)
        return self

    def painted(self, role: str) -> Line:
        """A copy of the row in one role, filled to the edge."""
        text = "".join(text for text, _ in self._spans)
        return Line(self.width).add(text, role).to(self.width, role)

    def presses(self) -> tuple[Press, ...]:
        """The keys that clicks on the row press."""
        return tuple(self._presses)

    def spans(self) -> tuple[Span, ...]:
        """The spans; neighbours of the same role are joined."""
        joined: list[Span] = []
        for text, role in self._spans:
            if joined and joined[-1][1] == role:
                joined[-1] = (joined[-1][0] + text, role)
            else:
                joined.append((text, role))
        return tuple(joined)


def filled(rows: Sequence[Line], width: int, height: int) -> list[Line]:
    """Exactly ``height`` rows: the first ones, or empty ones behind them."""
    return [*rows, *(Line(width) for _ in range(height - len(rows)))][:height]


def marked_rows(
    text: str, mark: str, mark_role: str, width: int, most: int, role: str = "text"
) -> list[Line]:
    """``text`` in at most so many rows, the first one behind a mark of three columns."""
    return [
        Line(width).add("   " if at else mark, mark_role).add(line, role)
        for at, line in enumerate(wrap(text, width - 4, most))
    ]


def stream_mark(stream: str, text: str) -> Span:
    """The mark before a printed line; a progress bar, which goes to stderr, is no error."""
    if stream == "stderr":
        return (" err ", "warn") if bar_of(stream, text) is None else (" bar ", "muted")
    return " out " if stream == "stdout" else " ?   ", "muted"


def rule(title: str, width: int) -> Line:
    """A horizontal line with a title."""
    row = Line(width).add("── ", "faint").add(title, "muted").add(" ", "faint")
    return row.add("─" * row.left, "faint")
