"""A document for a terminal: rows of spans with their roles, and their text."""

from __future__ import annotations

import bisect
import itertools
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence

from gpuwatch.analysis.comparison.effect import BETTER, WORSE
from gpuwatch.analysis.results import StudyResult
from gpuwatch.analysis.study import interval_plot
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.text import clean, cut, whole_words
from gpuwatch.report.document import blocks, study

_NARROWEST, _WIDEST = 40, 100
"""Limits on the width of sentences, in columns."""
_LONGEST_WORD, _LONGEST_NAME = 24, 24
_LONGEST_TEXT = 1000
_FASTER, _SLOWER = "faster <", "> slower"
_BETWEEN_BREAKS = re.compile(r"[^\n\t]+")

Span = tuple[str, str]
"""Text and what it is: ``text``, ``muted``, ``strong`` (also a change), ``good``, ``bad``, or a
verdict's word; ``axis`` and one of these for a drawing of ``<>|:[]-*``."""
Row = tuple[Span, ...]
_COLOURS = {
    **dict.fromkeys(("strong", "same", "small", "can't tell", "invalid", "described"), "1"),
    **dict.fromkeys(("good", "faster"), "32"),
    **dict.fromkeys(("bad", "slower"), "1;31"),
}
"""Attributes (SGR) of what a terminal shows by colour too; all is told by words."""


@dataclass(frozen=True)
class Part:
    """Rows, some of which are a heading that a screen keeps in sight over the others."""

    heading: tuple[Row, ...]
    body: tuple[Row, ...]
    left_out: tuple[int, int] = (0, 0)
    """Columns of a table before and after those that a screen shows."""


def terminal(
    result: StudyResult, columns: int = 80, colours: bool = False, *, short: bool = False
) -> str:
    """Sentences, an interval plot, and for each question its tables, runs and explanation.

    No table is wider than ``columns``; only the commands of hints may be. If every cell has one
    run, the sessions are shown side by side instead. ``short`` gives only the answer, or for single
    runs their main figures.
    """
    return as_text(study.brief(result) if short else study.document(result), columns, colours)


def as_text(of: blocks.Document, columns: int, colours: bool = False) -> str:
    """``of`` as lines, with the codes of a terminal's ``colours``."""
    rows = [row for part in parts(of, columns) for row in (*part.heading, *part.body)]
    lines = ["".join(_coloured(*span) if colours else span[0] for span in row) for row in rows]
    return "\n".join(line.rstrip() for line in lines).strip("\n") + "\n"


def _coloured(text: str, role: str) -> str:
    code = _COLOURS.get(role.removeprefix("axis "))
    return f"\x1b[{code}m{text}\x1b[m" if code and text.strip() else text


def parts(of: blocks.Document, columns: int, first: int | None = None) -> Iterator[Part]:
    """All parts in order.

    A table that is too wide is split into several below each other; with ``first`` it has one part
    alone, whose columns begin with that one of those that are not kept.
    """
    columns = max(_NARROWEST, columns)
    legend = [blocks.Sentence(each.letter, each.text) for each in of.legend]
    chart = [of.chart] if isinstance(of.chart, blocks.Intervals) else []
    for items in (legend, of.answer, chart, of.missing):
        yield from _blocks(items, columns, first)
    rows = [row for each in of.asked for row in _wrap("", each, columns, "strong")]
    rows += [row for each in of.origin for row in _wrap("", each, columns, "muted")]
    yield Part((), ((), *rows) if rows else ())
    question = ""
    for section in of.sections:
        if blocks.TEXT not in section.formats:
            continue
        if section.of and section.of != question:
            name = clean(section.of, 200)
            yield Part((), ((), ((name, "strong"),), (("-" * min(columns, len(name)), "muted"),)))
        question = section.of
        if section.title:
            title = ((), *_wrap("", section.title, columns, "strong"))
            for at, part in enumerate(_blocks(section.items, columns - 2, first)):
                if at == 0:
                    yield Part((), title)
                heading, body = (
                    tuple((("  ", "text"), *row) if row else row for row in rows)
                    for rows in (part.heading, part.body[at == 0 :])
                )
                yield Part(heading, body, part.left_out)
        else:
            yield from _blocks(section.items, columns, first)


def _blocks(items: Sequence[blocks.Item], columns: int, first: int | None) -> Iterator[Part]:
    """The items that can be written, after a blank row; tables and plots stand apart."""
    width = 0
    rows: list[Row] = [()]
    before: blocks.Item | None = None
    for at, item in enumerate(items):
        if before is None or isinstance(before, blocks.Heading):
            until = itertools.takewhile(
                lambda each: not isinstance(each, blocks.Heading), items[at:]
            )
            words = [clean(each.word) for each in until if isinstance(each, blocks.Sentence)]
            width = max((len(word) for word in words if len(word) <= _LONGEST_WORD), default=0)
        if isinstance(item, blocks.Table):
            if len(rows) > 1:
                yield Part((), tuple(rows))
            yield from _table(item, columns, first)
            rows = [()]
        elif isinstance(item, blocks.Sentence):
            rows += _sentence(item, width, columns)
        elif isinstance(item, blocks.Heading):
            rows += _wrap("", f"{item.text}:", columns, "muted")
        elif isinstance(item, blocks.Intervals):
            rows += _intervals(item, columns)
        else:
            continue
        before = item
    if len(rows) > 1:
        yield Part((), tuple(rows))


def _sentence(item: blocks.Sentence, width: int, columns: int) -> list[Row]:
    word = clean(item.word)
    fits = 0 < len(word) <= _LONGEST_WORD
    text = item.text if fits or not word else f"{word}: {item.text}"
    role = "strong" if item.kind is None else item.kind.value
    rows = _wrap(f"{word:{width}}  " if fits else "", text, columns, "text", role)
    line = rows[0][1][0]
    if not fits and item.kind and line.startswith(f"{word}: "):  # the word is the verdict's
        rows[0] = ((f"{word}: ", role), (line[len(word) + 2 :], "text"))
    return [*rows, ((f"    Fix: {clean(item.hint)}", "text"),)] if item.hint else rows


def _wrap(name: str, text: str, columns: int, role: str, name_role: str = "text") -> list[Row]:
    """``text`` wrapped after ``name``; a per cent sign stays with its number, a command whole where
    it fits."""
    room = min(columns, _WIDEST) - len(name)
    whole = re.sub(
        r"`[^`]+`",
        lambda found: found[0].replace(" ", "\u00a0") if len(found[0]) < room else found[0],
        clean(text, _LONGEST_TEXT).replace(" %", "\u00a0%"),
    )
    lines = whole_words(whole, room, further="" if name else "  ")
    shown = [line.replace("\u00a0", " ") for line in lines] or [""]
    starts = [name, *[" " * len(name)] * (len(shown) - 1)]
    return [((start, name_role), (line, role)) for start, line in zip(starts, shown, strict=True)]


def _intervals(of: blocks.Intervals, columns: int) -> list[Row]:
    """The sides, one row per verdict with its name in front, and the axis; ASCII but for names."""
    chart = interval_plot.plot([(each.name, each.verdict) for each in of.changes], columns)
    if chart is None:
        return []
    start = " " * (chart.label + 2)
    zero = len(start) + chart.zero
    faster = _FASTER if zero >= len(_FASTER) else _FASTER[-1]
    rows: list[Row] = [((f"{faster:>{zero}} {_SLOWER}", "axis muted"),)]
    for row, change in zip(chart.drawn, of.changes, strict=True):
        role = change.verdict.kind.value
        drawn = (
            (each, f"axis {'muted' if each in '|:' else role}")
            for each in re.findall(r"[|:]|[^|:]+", row.axis)
        )
        name = cut(row.name, chart.label, "..")
        rows.append(((f"{name:{chart.label}}  ", "strong"), *drawn, (f"  {row.text}", role)))
    return [*rows, ((f"{start}{chart.scale}", "muted"),)]


def bars(of: blocks.Bars, width: int) -> list[str]:
    """One row per bar: its name, ``#`` for its length, its value; at most ``width`` characters."""
    names = [clean(bar.name, _LONGEST_NAME) for bar in of.bars]
    name = max(map(len, names))
    text = max(len(bar.text) for bar in of.bars)
    most = max(bar.value for bar in of.bars)
    room = max(1, width - name - text - 4)
    return [
        f"{label:{name}}  {'#' * round(room * bar.value / most) if most > 0 else '':{room}}  "
        f"{bar.text:>{text}}".rstrip()
        for label, bar in zip(names, of.bars, strict=True)
    ]


def _table(table: blocks.Table, columns: int, first: int | None) -> Iterator[Part]:
    """One table, or several below each other, each at most ``columns`` wide.

    What stands in brackets below a value is beside it where there is room. All of them have the
    first column and those that are kept. A name too long for its column gets its own lines, a
    heading is wrapped, and a value is cut.
    """
    columns = max(_NARROWEST, columns)
    head = [clean(cell) for cell in table.head]
    rows = [
        [_BETWEEN_BREAKS.sub(lambda text: clean(text[0]), cell) for cell in row]
        for row in table.rows
    ]
    flat = [[cell.replace("\n(", " (") for cell in row] for row in rows]
    for layout in (_whole(head, flat), _whole(head, rows)):
        if layout.names + sum(_GAP + width for width in layout.widths) <= columns:
            break
    else:
        lines = {line for row in rows for cell in row for line in cell.split("\n")}
        wide = {len(line) for line in lines if "\t" in line}
        tried = list[_Layout]()
        for longest in sorted({*wide, 0}, reverse=True):
            tried.append(_split(head, rows, longest, columns, table.kept, first))
            if tried[-1].lack == (False, 1, 0):
                break
        layout = min(tried, key=lambda each: each.lack)
    for of_page in layout.pages:
        heading, body = _page(head, layout, of_page, columns, table.marks)
        yield Part((), ((),))
        yield Part(heading, body, layout.left_out)


_GAP = 2
_HEAD = 14
"""Characters from which a heading is broken into lines, if its values are narrower."""
_SHORTEST_NAMES, _SHORTEST = 20, 8


@dataclass(frozen=True)
class _Layout:
    """A table in one or several below each other."""

    rows: list[list[list[str]]]
    """Of each row its lines, of each line its cells."""
    names: int
    """Width of the first column."""
    widths: list[int]
    """Of the other columns."""
    pages: list[list[int]]
    """The columns of each table but the first; the others are counted from 1."""
    left_out: tuple[int, int] = (0, 0)
    """Columns before and after those of the only page of a screen."""
    is_cut: bool = False

    @property
    def lack(self) -> tuple[bool, int, int]:
        """Whether a value is cut, tables, columns left out: less is better."""
        return self.is_cut, len(self.pages), sum(self.left_out)


def _whole(head: Sequence[str], rows: Sequence[Sequence[str]]) -> _Layout:
    """The table as it is."""
    lines = [_lines([cell.replace("\t", " ") for cell in row]) for row in rows]
    names, *widths = (max(map(len, c)) for c in zip(head, *itertools.chain(*lines), strict=True))
    return _Layout(lines, names, widths, [[*range(1, len(head))]])


def _split(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    longest: int,
    columns: int,
    kept: Sequence[int],
    first: int | None,
) -> _Layout:
    """The table with rows broken at tabs where a line is longer than ``longest``."""
    lines = []
    for row in rows:
        wide = any(len(e) > longest for cell in row for e in cell.split("\n") if "\t" in e)
        lines.append(_lines([cell.replace("\t", "\n" if wide else " ") for cell in row]))
    every = [line for of in lines for line in of]
    most = max(_SHORTEST_NAMES, columns // 3)
    names = max(
        (len(line[0]) for line in every if any(line[1:]) and len(line[0]) <= most), default=0
    )
    names = max(names, min(len(head[0]), _SHORTEST_NAMES))
    widths = [
        max(
            _SHORTEST if at not in kept else 1,
            max((len(line[at]) for line in every), default=0),
            min(len(head[at]), _HEAD),
        )
        for at in range(1, len(head))
    ]
    while True:
        room = columns - names - sum(_GAP + widths[at - 1] for at in kept)
        if len(kept) < 2 or room >= _GAP + _SHORTEST:
            break
        kept = kept[1:]
    limit = max(_SHORTEST, room - _GAP)
    is_cut = max(widths, default=0) > limit
    widths = [min(width, limit) for width in widths]
    others = [at for at in range(1, len(head)) if at not in kept]
    ends = list(itertools.accumulate((widths[at - 1] + _GAP for at in others), initial=0))
    # The last column that a screen begins with: from there on, all others fit.
    latest = next((at for at in range(len(others)) if ends[-1] - ends[at] <= room), len(others) - 1)
    pages: list[list[int]] = []
    start = 0 if first is None else min(first, latest)
    while not pages or (first is None and start < len(others)):
        stop = max(start + 1, bisect.bisect_right(ends, ends[start] + room) - 1)
        pages.append(sorted([*kept, *others[start:stop]]))
        left_out = (start, len(others) - stop)
        start = stop
    return _Layout(lines, names, widths, pages, (0, 0) if first is None else left_out, is_cut)


def _lines(row: Sequence[str]) -> list[list[str]]:
    """A row with multi-line cells, as several rows."""
    return [
        list(line) for line in itertools.zip_longest(*(c.split("\n") for c in row), fillvalue="")
    ]


_ROLES = {blocks.CHANGED: "strong", BETTER: "good", WORSE: "bad"}


def _page(
    head: Sequence[str],
    layout: _Layout,
    page: Sequence[int],
    columns: int,
    marks: Mapping[tuple[int, int], str],
) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    """Heading and rows of the columns ``page``, its cells in the colours of their ``marks``."""
    names, widths = layout.names, [layout.widths[at - 1] for at in page]

    def line(name: str, values: Sequence[str], role: str, number: int = -1) -> Row:
        spans = [(name.ljust(names), role)]
        for value, width, at in zip(values, widths, page, strict=True):
            mark = marks.get((number, at), "")
            # Of a cell in several lines, the first one and that which has the word.
            own = _ROLES.get(mark, role) if role != "muted" or value.endswith(mark) else role
            spans.append((" " * (_GAP + width - len(value)) + value, own))
        return tuple(spans)

    heads = [
        textwrap.wrap(text, max(1, width)) or [""]
        for text, width in zip([head[0], *(head[at] for at in page)], [names, *widths], strict=True)
    ]
    height = max(map(len, heads))
    first, *others = ([*[""] * (height - len(each)), *each] for each in heads)
    heading = [line(first[at], [each[at] for each in others], "muted") for at in range(height)]
    body: list[Row] = []
    for number, of in enumerate(layout.rows):
        for at, (name, *cells) in enumerate(of):
            values = [
                cut(cells[column - 1], width) for column, width in zip(page, widths, strict=True)
            ]
            role = "muted" if at or not any(values) else "text"
            if len(name) > names:
                indent = " " * (len(name) - len(name.lstrip()))
                body += [
                    ((each, role),)
                    for each in textwrap.wrap(
                        name.lstrip(),
                        columns,
                        initial_indent=indent,
                        subsequent_indent=f"{indent}  ",
                    )
                ]
                name = ""
            if name or any(values):
                body.append(line(name, values, role, number))
    return tuple(heading), tuple(body)
