"""The list of sessions and studies as Textual's table, and its columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widgets import DataTable

from gpuwatch.analysis.summary.listed_item import Item
from gpuwatch.analysis.summary.listing import ListedStudy, moment
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
from gpuwatch.tui.widgets.head_rows import MARKS
from gpuwatch.tui.widgets.line import pad
from gpuwatch.tui.widgets.palette import styles


@dataclass(frozen=True)
class Order:
    """By what rows are sorted."""

    name: str
    key: Callable[[Item], float | str | None]
    """``None`` is unknown, and comes last both ways."""
    turn: int
    """When the key that sorts comes to it, from 1."""
    falling: bool = True
    """Whether the largest comes first at first."""


@dataclass(frozen=True)
class Column:
    """All that there is to a column of the list."""

    name: str
    text: Callable[[Item], str]
    widths: tuple[int, ...]
    """Most that it is given at first, and in each round in which the room that is left is given
    out; never more than it needs."""
    least: int = 8
    """Least that it is given."""
    title: str = ""
    """The heading, where that is not the name."""
    role: str = "text"
    right: bool = False
    number: bool = False
    """Of a row with a result, that stands over it."""
    optional: bool = False
    """It is left out where no row has it."""
    spreads: bool = False
    """What is left at last is given to these, so that the numbers end at the right edge."""
    from_width: int = 0
    """The narrowest list that it stands in."""
    goes: int = 0
    """The lowest goes first where there is no room; 0 stays."""
    order: Order | None = None
    """How a click on its title sorts."""
    width: int = 0
    """What it was given."""

    def cell(self, text: str) -> str:
        """With a blank at its right so that neighbours never touch."""
        return pad(text, self.width, ">") if self.right else pad(text, self.width - 1) + " "


def _number(
    name: str,
    width: int,
    value: str,
    text: Callable[[Any], str],
    *,
    goes: int,
    turn: int,
    order: str = "",
    falling: bool = True,
) -> Column:
    """A figure of a session, its field ``value``; a study has none of its own."""

    def of(item: Item) -> Any:
        return None if item.entry is None else getattr(item.entry, value)

    return Column(
        name,
        lambda item: "" if item.entry is None else text(of(item)),
        (width,),
        least=width,
        right=True,
        number=True,
        optional=True,
        goes=goes,
        order=Order(order or name, of, turn, falling),
    )


def _sign(item: Item) -> tuple[str, str]:
    """The mark of a row's state and the role of its colour."""
    try:
        return MARKS[State(item.state[0])]
    except ValueError:
        return "!", "warn"


def _what(item: Item, *, named: bool = False) -> str:
    """What ran; the name in its place, unless the row is ``named`` in a column of its own. Before
    it how the row hangs together with others."""
    title = item.ran if named else item.title
    if item.entry is None:
        return f"{'-' if item.opened else '+'} {title}"
    if item.study is None:
        return title
    run, block = item.entry.run, item.entry.block
    warmup = "w" if block == 0 else f"b{block}"
    place = "" if run is None else f"r{run}" if block is None else f"{warmup} r{run}"
    if item.alike and title == item.ran:
        title = ""  # its study's row says it
    file = item.path.stem if run is None else ""  # without a plan all else may be the same
    return " ".join(filter(None, ("╰" if item.last else "│", place, title, file)))


_RAN = partial(_what, named=True)


def _peak(item: Item) -> str:
    of = item.entry
    return "" if of is None else bounded(binary(of.peak_gpu_memory_bytes), of.peak_bound)


def _result(item: Item) -> str:
    """What went wrong; of a study where it is, or what its summary says, before that."""
    told, study = "", item.study
    if item.entry is None and study is not None:
        placed = study.placement
        if placed is not None and (study.going_on or study.waits or placed["in_part"]):
            told = placed["text"]
        told = told or verdict(study)
    wrong = item.failed or next((run for run in item.sessions if run.failure), None)
    return told or (wrong.failure or wrong.status_text if wrong else "")


def verdict(study: ListedStudy) -> str:
    """What the summary of a study says, in short; empty where it says nothing."""
    kinds = [each["kind"] for each in study.says if each["kind"] not in ("sweeps", "noise")]
    if len(kinds) > 1:
        return ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
    return study.says[0]["short"] if study.says else ""


def started(text: str | None, *, brief: bool = False) -> str:
    """``11-20 22:54`` in the local time of the terminal; ``brief``: of today the time alone."""
    known = moment(text or "")
    if known is None:
        return ""
    local = known.astimezone()
    return local.strftime("%H:%M" if brief and local.date() == date.today() else "%m-%d %H:%M")


_ROOMY = 130
"""Columns from which a name and what ran stand side by side, and tags have a column."""
COMMAND_WIDTH = 20
"""Width of a command for which other columns go."""
_BY_NAME = Order("name", lambda item: item.title.casefold(), 7, False)
COLUMNS = (
    Column(
        "status",
        lambda item: f"  {_sign(item)[0]} {item.state[1]}",
        (17,),
        least=12,
        title="  status",
        order=Order("status", lambda item: item.state[0], 8, False),
    ),
    Column(
        "name",
        lambda item: item.of.name,
        (24,),
        role="strong",
        optional=True,
        from_width=_ROOMY,
        order=_BY_NAME,
    ),
    Column(
        "command",
        _what,
        (COMMAND_WIDTH, 32, 32, 80, 80, 160),
        least=10,
        role="strong",
        spreads=True,
        order=_BY_NAME,
    ),
    Column(
        "environment",
        lambda item: item.environment,
        (8, 12, 16, 16, 32, 64),
        title="env",
        spreads=True,
        goes=6,
    ),
    Column(
        "folder",
        lambda item: clean((item.path if item.entry is None else item.path.parent).name),
        (40,),
        spreads=True,
        from_width=170,
        goes=1,
    ),
    _number(
        "med. step",  # the rate is by the mean
        9,
        "step_median_seconds",
        milliseconds,
        goes=8,
        turn=3,
        order="step time",
        falling=False,
    ),
    _number("samples/s", 10, "samples_per_second", samples_rate, goes=2, turn=4),
    _number("MFU", 7, "mfu", percent, goes=5, turn=5),
    replace(_number("peak mem", 11, "peak_gpu_memory_bytes", binary, goes=3, turn=6), text=_peak),
    Column("result", _result, (0, 24, 24, 44, 44, 120), least=0),
    Column(
        "elapsed",
        lambda item: UNKNOWN if item.elapsed is None else clock_time(round(item.elapsed)),
        (10,),
        right=True,
        goes=7,
        order=Order("elapsed", lambda item: item.elapsed, 2),
    ),
    Column(
        "started",
        lambda item: started(item.first_start, brief=True),
        (12,),
        right=True,
        goes=4,
        order=Order("started", lambda item: item.first_start, 1),
    ),
    Column(
        "tags",
        lambda item: "".join(f" {tag}" for tag in item.of.tags),
        (25,),
        least=9,
        title=" tags",
        optional=True,
        from_width=_ROOMY,
    ),
)
"""The columns, as they stand from left to right: a new one is an entry here, and nothing else."""
ORDERS = sorted({each.order for each in COLUMNS if each.order}, key=lambda order: order.turn)
_TITLED = 8
"""Columns of ``result`` from which on it has a title."""


def columns(items: Sequence[Item], width: int) -> list[Column]:
    """What there is room for, as wide as it is long."""
    named = any(item.of.name for item in items)
    offered = [each for each in COLUMNS if width >= each.from_width]
    at = [each.name for each in offered].index("command")
    if named and width >= _ROOMY:
        offered[at] = replace(offered[at], text=_RAN)
    elif named:
        title = "command / name"
        offered[at] = replace(offered[at], title=title, least=len(title) + 1)
    listed, needs = [], {}
    for each in offered:
        texts = [each.text(item) for item in items]
        if each.optional and {"", UNKNOWN}.issuperset(texts):
            continue
        longest = max(map(cell_len, texts), default=0)
        need = needs[each.name] = max(each.least, min(each.widths[-1], longest + 1))
        listed.append(replace(each, width=min(each.widths[0], need)))
    for each in sorted(COLUMNS, key=lambda column: column.goes):
        if each.goes and sum(column.width for column in listed) > width:
            listed = [column for column in listed if column.name != each.name]
    spare = width - sum(column.width for column in listed)
    numbers = sum(column.width for column in listed if column.number)
    for turn in range(1, max(len(each.widths) for each in COLUMNS)):
        for at, each in reversed([*enumerate(listed)]):
            if turn < len(each.widths):
                taken = each.width + (numbers if each.name == "result" else 0)
                more = max(0, min(spare, min(each.widths[turn], needs[each.name]) - taken))
                listed[at] = replace(each, width=each.width + more)
                spare -= more
    spread = [at for at, column in enumerate(listed) if column.spreads]
    for place, at in enumerate(spread):
        more = spare // len(spread) + (place < spare % len(spread))
        listed[at] = replace(listed[at], width=listed[at].width + more)
    listed = [each for each in listed if each.width]
    for at, each in enumerate(listed):
        if each.name == "result":
            # A sentence begins over the numbers, whose titles stand there.
            listed[at] = replace(each, title=" " if numbers or each.width < _TITLED else "result")
    return listed


Cells = tuple[tuple[str, str], ...]
"""Text and the role of its colour, of each column of a row."""


def cells(item: Item, shown: Sequence[Column], marked: Sequence[Path]) -> Cells:
    """One row: a mark, then what its columns show."""
    mark = str(marked.index(item.path) + 1)[-1] if item.path in marked else " "
    cut = {column.name: column.cell(column.text(item)) for column in shown}
    cut["status"] = mark + cut["status"][1:]
    if result := _result(item):
        cut |= _over(result, [each for each in shown if each.number or each.name == "result"])
    roles = {"status": _sign(item)[1]}
    return tuple((cut[each.name], roles.get(each.name, each.role)) for each in shown)


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
        """The columns of the new width, also of the first one that is known; the cursor stays in
        sight where there are fewer rows."""
        self.update(*self._wanted)
        self._show_cursor(self.cursor_row, self.scroll_y)

    def show_below(self, rows: int) -> None:
        """Scroll until the ``rows`` below the cursor are in sight, as far as it stays so."""
        lowest = self.cursor_row + rows + 1 - (self.scrollable_content_region.height - 1)
        if lowest > self.scroll_y:
            self.scroll_to(y=min(lowest, self.cursor_row), animate=False)

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
        # A key may have moved it out of the rows that were in sight, and not yet scrolled.
        self._show_cursor(row_at, top)

    def _show_cursor(self, row: int, top: float) -> None:
        """Scroll to ``top``, or so far from there that ``row`` is in sight."""
        room = max(1, self.scrollable_content_region.height - 1)
        self.scroll_to(y=min(max(top, row + 1 - room), row), animate=False)

    def _text(self, cell: tuple[str, str]) -> Text:
        text, role = cell
        if self._ascii:
            text = text.replace(" ≤", "<=")
        style = styles(self.app.current_theme, self.app.no_color)[role]
        return Text(text, Style(color=style.color, bold=style.bold, dim=style.dim))
