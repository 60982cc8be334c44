"""The list of sessions and studies as Textual's table: its rows, and the details of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import ClassVar

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widgets import DataTable

from gpuwatch.analysis.summary.listing import moment
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.text import clean
from gpuwatch.core.units import (
    UNKNOWN,
    binary,
    bounded,
    clock_time,
    milliseconds,
    percent,
    samples_rate,
)
from gpuwatch.session.reading.status import State
from gpuwatch.tui.home.list import Item, elapsed, first_start, place
from gpuwatch.tui.widgets.head_rows import MARKS
from gpuwatch.tui.widgets.line import Line, fit, pad, wrap
from gpuwatch.tui.widgets.palette import styles

_ROOMY = 130
"""Columns from which a name and what ran stand side by side, and tags have a column."""
_SPACIOUS = 170
"""Columns from which the folder of a session, or of a study, has one."""
_FIGURES = {"step": 9, "samples/s": 10, "MFU": 7, "peak mem": 11}
"""Columns of numbers, and their widths; a row with a sentence has it in their place."""
_DROPPED = (
    *("folder", "started", "samples/s", "peak mem", "MFU"),
    *("environment", "elapsed", "step"),
)
"""Columns that go first where there is no room."""
_WIDTHS = {
    "status": (12, 17),
    "name": (8, 24),
    "command": (10, 160),
    "environment": (8, 64),
    "elapsed": (8, 10),
    "started": (8, 12),
    "tags": (8, 24),
    "folder": (8, 40),
    "result": (0, 120),
}
"""Least and most that the content of a column is given."""
_COMMAND = 20
"""Width of a command for which other columns go."""
_TITLED = 8
"""Columns of ``result`` from which on it has a title."""
_GROWN = (
    *(("result", 24), ("environment", 12), ("command", 32), ("environment", 16), ("result", 44)),
    *(("command", 80), ("environment", 32), ("result", 120), ("environment", 64), ("command", 160)),
)
"""Who gets the room that is left, and up to which width; ``result`` with the figures before it."""


_PARTED = ("command", "environment", "folder")


@dataclass(frozen=True)
class Column:
    name: str
    width: int
    right: bool = False
    title: str = ""
    """The heading, where that is not the name."""

    def cell(self, text: str) -> str:
        """With a blank at its right so that neighbours never touch."""
        return pad(text, self.width, ">") if self.right else pad(text, self.width - 1) + " "


def columns(items: Sequence[Item], width: int) -> list[Column]:
    """What there is room for, as wide as it is long; what no row has takes none."""
    roomy = width >= _ROOMY
    named = any(item.of.name for item in items)
    beside = roomy and named
    rows = [_texts(item, named=beside) for item in items]
    needs = {
        name: max(least, *(min(most, cell_len(row[name]) + 1) for row in rows), 0)
        for name, (least, most) in _WIDTHS.items()
    }
    known = [name for name in _FIGURES if any(row[name] not in ("", UNKNOWN) for row in rows)]
    title = "command / name" if named and not beside else ""
    needs["command"] = max(needs["command"], len(title) + 1)
    listed = [
        Column("status", needs["status"], title="  status"),
        *([Column("name", needs["name"])] if beside else []),
        Column("command", min(_COMMAND, needs["command"]), title=title),
        Column("environment", _WIDTHS["environment"][0], title="env"),
        *([Column("folder", needs["folder"])] if width >= _SPACIOUS else []),
        *(Column(name, _FIGURES[name], right=True) for name in known),
        Column("result", 0, title=" result" if known else "result"),
        Column("elapsed", needs["elapsed"], right=True),
        Column("started", needs["started"], right=True),
    ]
    if roomy and any(row["tags"] for row in rows):
        listed.append(Column("tags", needs["tags"] + 1, title=" tags"))
    for name in _DROPPED:
        if sum(column.width for column in listed) > width:
            listed = [column for column in listed if column.name != name]
    spare = width - sum(column.width for column in listed)
    figures = sum(column.width for column in listed if column.name in _FIGURES)
    for name, most in _GROWN:
        taken = figures if name == "result" else 0
        for at, column in enumerate(listed):
            if column.name == name:
                more = min(spare, min(most, needs[name]) - taken - column.width)
                listed[at] = replace(column, width=column.width + max(0, more))
                spare -= max(0, more)
    # What is left parts what ran from its numbers, so that these end at the right edge.
    parted = [column.name for column in listed if column.name in _PARTED]
    for at, column in enumerate(listed):
        if column.name in parted:
            more = parted.index(column.name) < spare % len(parted)
            listed[at] = replace(column, width=column.width + spare // len(parted) + more)
    # Of a few columns, in which a sentence goes on, the title would be cut.
    return [
        replace(each, title=" ") if each.name == "result" and each.width < _TITLED else each
        for each in listed
        if each.width
    ]


Cells = tuple[tuple[str, str], ...]
"""Text and the role of its colour, of each column of a row."""


def cells(item: Item, shown: Sequence[Column], marked: Sequence[Path]) -> Cells:
    """One row: a mark, then what its columns show."""
    mark = str(marked.index(item.path) + 1)[-1] if item.path in marked else " "
    texts = _texts(item, named=any(column.name == "name" for column in shown))
    texts["status"] = mark + texts["status"][1:]
    texts["tags"] = f" {texts['tags']}"
    cut = {column.name: column.cell(texts[column.name]) for column in shown}
    if texts["result"]:
        cut |= _over(texts["result"], [each for each in shown if each.name in _IN_PLACE])
    roles = {"status": _sign(item)[1], "command": "strong", "name": "strong"}
    return tuple((cut[column.name], roles.get(column.name, "text")) for column in shown)


_IN_PLACE = (*_FIGURES, "result")
"""Columns that a sentence stands over."""


def _over(text: str, shown: Sequence[Column]) -> dict[str, str]:
    """``text`` over several neighbouring columns, by column."""
    parts, rest = {}, list(text)
    for column in shown[:-1]:
        part = ""
        while rest and cell_len(part + rest[0]) <= column.width:
            part += rest.pop(0)
        # A wide character that would stand on an edge goes on in the next column.
        parts[column.name] = pad(part, column.width)
    return parts | {column.name: pad("".join(rest), column.width) for column in shown[-1:]}


def _sign(item: Item) -> tuple[str, str]:
    """The mark of a row's state and the role of its colour."""
    try:
        return MARKS[State(item.state[0])]
    except ValueError:
        return "!", "warn"


def _texts(item: Item, *, named: bool) -> dict[str, str]:
    """What a row says in each column; ``named``: a name has a column of its own."""
    of, entry, seconds, failed = item.of, item.entry, elapsed(item), item.failed
    start = first_start(item) or ""
    known, today = moment(start), datetime.now().astimezone().date()
    if known and known.astimezone().date() == today:
        when = known.astimezone().strftime("%H:%M")
    else:
        when = started(start)
    environment, memory, result = "", "", ""
    if entry is not None:
        memory = bounded(binary(entry.peak_gpu_memory_bytes), entry.peak_bound)
        environment = entry.environment
    elif item.study is not None:  # its baseline, and how many others there are
        placed = item.study.placement
        shown = placed and (item.study.going_on or placed["in_part"])
        result = placed["text"] if placed and shown else verdict(item)
        environment, *others = item.study.environments or ("",)
        environment += f" +{len(others)}" if others else ""
    if failed is not None and not result:
        result = failed.failure or failed.status_text
    return {
        "status": f"  {_sign(item)[0]} {item.state[1]}",
        "name": of.name,
        "command": _what(item, named=named),
        "environment": environment,
        "step": milliseconds(entry.step_median_seconds) if entry else "",
        "samples/s": samples_rate(entry.samples_per_second) if entry else "",
        "MFU": percent(entry.mfu) if entry else "",
        "peak mem": memory,
        "result": result,
        "elapsed": UNKNOWN if seconds is None else clock_time(seconds),
        "started": when,
        "tags": " ".join(of.tags),
        "folder": clean((item.path if entry is None else item.path.parent).name),
    }


def _what(item: Item, *, named: bool) -> str:
    """What ran, or the name in its place; before it how the row hangs together with others."""
    if item.entry is None:
        return f"{'-' if item.opened else '+'} {item.ran if named else item.title}"
    title = item.ran if named else item.title
    if item.study is None:
        return title
    if item.alike and title == item.ran:
        title = ""  # its study's row says it
    return " ".join(filter(None, ("╰" if item.last else "│", place(item.entry), title)))


def verdict(item: Item) -> str:
    """Of a study what its summary says, in short; empty where it says nothing."""
    if item.entry is not None or item.study is None or not item.study.says:
        return ""
    says = item.study.says
    kinds = [each["kind"] for each in says if each["kind"] not in ("sweeps", "noise")]
    told = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
    return told if len(kinds) > 1 else says[0]["text"]


def started(text: str) -> str:
    """``11-20 22:54`` in the local time of the terminal."""
    known = moment(text)
    return known.astimezone().strftime("%m-%d %H:%M") if known else fit(text, 11)


def details(item: Item, width: int, lines: int) -> list[Line]:
    """What the row under the cursor has no room for: why it failed, question, verdicts, name, tags,
    note, or why there are none."""
    if lines <= 0:
        return []
    of, failed = item.of, item.failed
    told: list[tuple[str, str]] = []
    if item.entry is None and item.study is not None:
        told += [("", each["text"]) for each in item.study.says]
        if item.study.question:
            told.insert(min(1, len(told)), ("asks", item.study.question))
    elif item.entry is not None and (item.entry.name or cell_len(item.ran) >= _COMMAND):
        told.append(("", f"{item.ran} in {item.entry.environment}"))
    if failed is not None:
        why = [failed.status_text] if failed.status_text else []
        why += [failed.reason] if failed.reason not in failed.status_text else []
        told.insert(0, ("✗", ": ".join(why)))
    if of.note:
        told.insert(0, ("note", " ".join(of.note.split("\n"))))
    if of.tags:
        told.insert(1 if of.note else 0, ("tags", " ".join(of.tags)))
    if of.labels_problem:
        folder = item.path if item.entry is None else item.path.parent
        told.insert(0, ("!", of.labels_problem.replace(f"{folder}/", "")))
    rows: list[Line] = []
    for label, text in told:
        for at, part in enumerate(wrap(clean(text), width - len(label) - 3, lines - len(rows))):
            row = Line(width).add(f" {label if not at else ''}", "muted").to(len(label) + 1)
            rows.append(row.add(f" {part}" if label else part, "text"))
    return rows


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
