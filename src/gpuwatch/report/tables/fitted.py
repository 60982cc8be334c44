"""Tables that never exceed the terminal's width: columns without room go to a table below."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.report.tables.plain import table

_GAP = 2
_HEAD = 14
"""Characters from which a heading is broken into lines, if its values are narrower."""
_SHORTEST_NAMES, _SHORTEST = 20, 8
_UNBROKEN = 15
"""Characters of a line that is left whole where that takes no more tables."""


def fitted(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    columns: int,
    *,
    repeat_last: bool = False,
) -> str:
    """One table, or several below each other, each at most ``columns`` wide (at least 40).

    All of them have the first column, and with ``repeat_last`` the last one too. A name too long
    for its column gets its own lines, a heading is wrapped, and a value is cut. A newline in a cell
    starts a new line; a tab does so if there is no room for a space.
    """
    columns = max(40, columns)
    lines = [_lines([cell.replace("\t", " ") for cell in row]) for row in rows]
    if _width([list(head), *(line for of in lines for line in of)]) <= columns:
        return table(head, [line for of in lines for line in of])
    last = [len(head) - 1] if repeat_last else []
    narrow = (columns * 2 // 3) // max(1, len(head) - 1) - _GAP
    split, whole = (_split(head, rows, each, columns, last) for each in (narrow, _UNBROKEN))
    chosen = whole if len(whole.pages) <= len(split.pages) else split
    return "\n\n".join(
        "\n".join(_page(head, chosen.lines, chosen.names, [*page, *last], chosen.widths, columns))
        for page in chosen.pages
    )


@dataclass(frozen=True)
class _Split:
    """A table in several below each other."""

    lines: list[list[list[str]]]
    names: int
    """Width of the first column."""
    widths: dict[int, int]
    """Of the other columns."""
    pages: list[list[int]]
    """The columns of each table, without those that all of them have."""


def _split(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    narrow: int,
    columns: int,
    last: Sequence[int],
) -> _Split:
    """The table with cells broken at tabs where a line is wider than ``narrow``."""
    lines = [_lines([_broken(cell, narrow) for cell in row]) for row in rows]
    names = min(
        max((len(line[0]) for of in lines for line in of if any(line[1:])), default=0),
        max(_SHORTEST_NAMES, columns // 3),
    )
    names = max(names, min(len(head[0]), _SHORTEST_NAMES))
    widths = {
        at: max(
            _SHORTEST if at not in last else 1,
            max((len(line[at]) for of in lines for line in of), default=0),
            min(len(head[at]), _HEAD),
        )
        for at in range(1, len(head))
    }
    room = columns - names - sum(_GAP + widths[at] for at in last)
    for at in widths:
        widths[at] = min(widths[at], max(_SHORTEST, room - _GAP))
    pages = _pages([at for at in widths if at not in last], widths, room)
    return _Split(lines, names, widths, pages)


def _broken(cell: str, width: int) -> str:
    """``cell`` with tabs as newlines if a line would be wider than ``width``, else as spaces."""
    wide = any(len(line) > width for line in cell.split("\n") if "\t" in line)
    return cell.replace("\t", "\n" if wide else " ")


def _lines(row: Sequence[str]) -> list[list[str]]:
    """A row with multi-line cells, as several rows."""
    cells = [cell.split("\n") for cell in row]
    return [
        [cell[at] if at < len(cell) else "" for cell in cells] for at in range(max(map(len, cells)))
    ]


def _width(rows: Sequence[Sequence[str]]) -> int:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return sum(widths) + _GAP * (len(widths) - 1)


def _pages(values: Sequence[int], widths: dict[int, int], room: int) -> list[list[int]]:
    """The columns of each table."""
    pages: list[list[int]] = [[]]
    left = room
    for at in values:
        if pages[-1] and left < widths[at] + _GAP:
            pages.append([])
            left = room
        pages[-1].append(at)
        left -= widths[at] + _GAP
    return pages


def _page(
    head: Sequence[str],
    lines: Sequence[list[list[str]]],
    names: int,
    page: Sequence[int],
    widths: dict[int, int],
    columns: int,
) -> list[str]:
    heads = [textwrap.wrap(head[at], max(1, widths[at])) or [""] for at in page]
    first = textwrap.wrap(head[0], max(1, names)) or [""]
    height = max(len(first), *map(len, heads))
    out = [
        _line(
            _from_below(first, at, height),
            [_from_below(each, at, height) for each in heads],
            names,
            [widths[column] for column in page],
        )
        for at in range(height)
    ]
    for of in lines:
        for line in of:
            name, values = line[0], [_cut(line[at], widths[at]) for at in page]
            if len(name) > names:
                indent = " " * (len(name) - len(name.lstrip()))
                out += textwrap.wrap(
                    name.lstrip(),
                    columns,
                    initial_indent=indent,
                    subsequent_indent=f"{indent}  ",
                )
                name = ""
                if not any(values):
                    continue
            if name or any(values):
                out.append(_line(name, values, names, [widths[at] for at in page]))
    return out


def _from_below(lines: Sequence[str], at: int, height: int) -> str:
    """Line ``at`` of ``height`` lines, with ``lines`` aligned to the bottom."""
    place = at - (height - len(lines))
    return lines[place] if place >= 0 else ""


def _line(name: str, values: Sequence[str], names: int, widths: Sequence[int]) -> str:
    cells = [value.rjust(width) for value, width in zip(values, widths, strict=True)]
    return (" " * _GAP).join([name.ljust(names), *cells]).rstrip()


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"
