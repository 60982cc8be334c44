"""Rows of text for the lines of a log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len, chop_cells

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.text import clean
from gpuwatch.core.units import NS, clock_time
from gpuwatch.session.reading.log_lines import LONGEST, LogLine
from gpuwatch.tui.widgets.line import Line

STREAMS = {None: "both streams", "stdout": "standard output", "stderr": "standard error"}
_SHORT_STREAMS = {"stdout": "out", "stderr": "err"}


@dataclass(frozen=True)
class LogOptions:
    """How the lines are drawn."""

    width: int
    clock: int
    """Width of the times."""
    wrap: bool = False
    column: int = 0
    """Cells that lines are shifted to the left; ignored if they are wrapped."""
    query: str = ""
    hit: int | None = None
    """Number of the current match's line."""

    @property
    def room(self) -> int:
        """Columns of a line's text."""
        return max(1, self.width - self.clock - 6)


def text_of(line: LogLine) -> str:
    """A line's text, harmless for a terminal; a line that was cut says so at its start."""
    text = clean(line.text, LONGEST)
    if line.length <= LONGEST:
        return text
    return f"[{line.length:,} characters, cut to {LONGEST:,}] {text}"


def with_parts(title: Line, parts: Sequence[str]) -> Line:
    """``title`` with ``parts`` at the right edge, or as many of the last ones as fit."""
    for first in range(len(parts)):
        text = "  ".join(parts[first:])
        if len(text) + 3 <= title.left:
            return title.end(f"{text} ", "muted")
    return title


def height_of(line: LogLine, options: LogOptions) -> int:
    """Number of rows of a line."""
    return len(_pieces(text_of(line), options)) if options.wrap else 1


def line_rows(line: LogLine, options: LogOptions) -> list[Line]:
    """The rows of one line: time, stream, and text with the matches marked."""
    text = text_of(line)
    hits = list(matches(text, options.query))
    rows = []
    for index, (start, piece) in enumerate(_pieces(text, options)):
        row = Line(options.width).add("▸" if line.n == options.hit and not index else " ", "key")
        if index:
            row.to(options.clock + 6)
        else:
            row.add(f"{clock_time(line.t / NS):>{options.clock}} ", "muted")
            stream = _SHORT_STREAMS.get(line.stream, "?")
            row.add(f"{stream} ", "warn" if line.stream == "stderr" else "muted")
        _add(row, piece, [(a - start, b - start) for a, b in hits])
        rows.append(row)
    return rows


def _pieces(text: str, options: LogOptions) -> list[tuple[int, str]]:
    """The visible parts of a text, one per row, each with its start in the text."""
    if not options.wrap:
        start = _skip(text, options.column)
        return [(start, text[start : start + options.room + 1])]
    pieces, start = [], 0
    for piece in _chopped(text, options.room) or [""]:
        pieces.append((start, piece))
        start += len(piece)
    return pieces


def _chopped(text: str, width: int) -> list[str]:
    if text.isascii():
        return [text[at : at + width] for at in range(0, len(text), width)]
    return chop_cells(text, width)


def _skip(text: str, cells: int) -> int:
    """Number of characters that fill ``cells`` cells."""
    if text.isascii():
        return min(cells, len(text))
    passed = 0
    for at, character in enumerate(text):
        if passed >= cells:
            return at
        passed += cell_len(character)
    return len(text)


def _add(row: Line, text: str, hits: Sequence[tuple[int, int]]) -> None:
    """Add ``text`` up to the row's end, ``hits`` inverted."""
    at = 0
    if cell_len(text) > row.left:
        text = text[: _skip(text, row.left - 1)]
        text = text if cell_len(text) < row.left else text[:-1]
        cut = "…"
    else:
        cut = ""
    for start, end in hits:
        start, end = max(at, start), min(end, len(text))
        if start < end:
            row.add(text[at:start]).add(text[start:end], "select")
            at = end
    row.add(text[at:]).add(cut, "muted")


def matches(text: str, query: str) -> Iterator[tuple[int, int]]:
    """Start and end of each ``query`` in ``text``; case matters if ``query`` has capitals."""
    if not query:
        return
    if query == query.lower():
        text = text.lower()
    at = text.find(query)
    while at >= 0:
        yield at, at + len(query)
        at = text.find(query, at + len(query))


def is_hit(text: str, query: str) -> bool:
    """Whether ``text`` contains ``query``; case matters if ``query`` has capitals."""
    return query in (text.lower() if query == query.lower() else text)
