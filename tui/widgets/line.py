"""One row of styled text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.cells import cell_len

from gpuwatch.tui.widgets.cells import fit, wrap
from gpuwatch.tui.widgets.graph import bar

Span = tuple[str, str]
"""Text and the role of its colour."""

Press = tuple[int, int, str]
"""First column, column after the last one, and the key that a click there presses."""


class Line:
    """One row, built from left to right."""

    def __init__(self, width: int) -> None:
        self.width = width
        self._spans: list[Span] = []
        self._used = 0
        self._presses: list[Press] = []
        self.field: tuple[int, int] | None = None
        """First column and width of a text input."""

    @property
    def used(self) -> int:
        return self._used

    @property
    def left(self) -> int:
        return self.width - self._used

    def add(self, text: str, role: str = "text", *, press: str | None = None) -> Line:
        """Append ``text``, cut at the row's end; a click on it presses the key ``press``.

        ``press`` is Textual's name of a key: ``q``, ``escape``, ``question_mark``.
        """
        cells = len(text) if text.isascii() else cell_len(text)
        left = self.width - self._used
        if cells > left:
            text = fit(text, left)
            cells = cell_len(text)
        if text:
            start = self._used
            self._spans.append((text, role))
            self._used += cells
            if press is not None:
                self._presses.append((start, self._used, press))
        return self

    def bar(self, share: float | None, columns: int, role: str) -> Line:
        """Append a bar from 0 to 1."""
        filled, empty = bar(share, columns)
        return self.add(filled, role).add(empty, "faint")

    def to(self, column: int, role: str = "text") -> Line:
        """Fill with spaces up to ``column``."""
        if column > self._used:
            self.add(" " * (min(column, self.width) - self._used), role)
        return self

    def end(self, text: str, role: str = "text") -> Line:
        """Add ``text`` at the right edge."""
        text = fit(text, self.left)
        return self.to(self.width - cell_len(text)).add(text, role)

    def join(self, other: Line) -> Line:
        """Append the spans of another row."""
        self._presses += [
            (self._used + start, self._used + end, key)
            for start, end, key in other._presses
            if self._used + start < self.width
        ]
        if other._used <= self.left:
            self._spans += other._spans
            self._used += other._used
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


_PROGRESS_BAR = re.compile(r"\d%\|.*\| |[━╸█]{3}")
"""Bars of tqdm, and those of lines or blocks."""


def stream_mark(stream: str, text: str) -> Span:
    """The mark before a printed line; a progress bar, which goes to stderr, is no error."""
    if stream == "stderr":
        return (" bar ", "muted") if _PROGRESS_BAR.search(text) else (" err ", "warn")
    return " out " if stream == "stdout" else " ?   ", "muted"


def rule(title: str, width: int) -> Line:
    """A horizontal line with a title."""
    row = Line(width).add("── ", "faint").add(title, "muted").add(" ", "faint")
    return row.add("─" * row.left, "faint")
