"""Pages over the live screen: the ranks of a run, and its kernels, as rows of text."""

from __future__ import annotations

from gpuwatch.analysis.hardware.kernels import all_tables, short_names
from gpuwatch.analysis.hardware.profile import TITLES, Cell, Table, source
from gpuwatch.analysis.ranks.levels import LEVELS, level
from gpuwatch.core.models import number
from gpuwatch.core.text import clean
from gpuwatch.core.units import NS, UNKNOWN, clock_time, digits, milliseconds, percent, si
from gpuwatch.tui.feed.snapshot import RankNow, RanksNow, Snapshot
from gpuwatch.tui.widgets.line import Line, fit, pad
from gpuwatch.tui.widgets.page import Row, counter_rows, wrapped

SHADES = (("·", "faint"), ("░", "warn"), ("▒", "warn"), ("▓", "bad"), ("█", "bad"))
"""Pattern and colour role of each level: the patterns alone tell them apart."""
_CAPTION = " own time beside the median rank's; text and table: the last 5 minutes"
_LABEL = 10
"""Columns of a rank's name before its row of the map."""
_AFTER = 19
"""Columns of what stands behind it, from this width on."""
_WIDE = 70
_COLUMNS = (("step", 10), ("own time", 10), ("data wait", 10), ("samples/s", 11), ("tokens/s", 11))
_DEVICE = 8


def rank_rows(snapshot: Snapshot, width: int) -> list[Row]:
    """All that is known of the ranks; one row that says so if there are none."""
    ranks = snapshot.ranks
    if ranks is None:
        return [((" the run has no ranks that report their steps", "muted"),)]
    mark = "!" if ranks.straggler else " "
    rows: list[Row] = []
    for sentence in ranks.sentences:
        rows += wrapped(clean(sentence, 1000), width, mark=mark, role="text")
    room = max(10, width - _LABEL - (_AFTER if width >= _WIDE else 1))
    first, last = (clock_time(t / NS) for t in (snapshot.window.start, snapshot.window.end))
    least = [f"+{100 * each:.0f} %" for each in LEVELS]
    names = [f"under {least[0]}", *(f"from {each}" for each in least)]
    legend: list[tuple[str, str]] = [(" ", "text")]
    for (pattern, role), name in zip(SHADES, names, strict=True):
        legend += [(pattern * 2, role), (f" {name}  ", "muted")]
    rows += [
        (("", "text"),),
        ((_CAPTION, "muted"),),
        *(_row(each, room, named=width >= _WIDE) for each in ranks.ranks),
        ((" " * _LABEL + first + last.rjust(room - len(first)), "muted"),),
        tuple(legend),
        (("", "text"),),
    ]
    return rows + _table(ranks, width)


def _row(rank: RankNow, room: int, *, named: bool) -> Row:
    """One rank over time, stretched or thinned to the room."""
    row = Line(_LABEL + room + _AFTER).add("▸" if rank.slower is not None else " ", "key")
    role = "strong" if rank.slower is not None else "text"
    row.add(pad(f"rank {rank.figures.rank}", _LABEL - 1), role)
    count = len(rank.columns)
    for at in range(room):
        first = at * count // room
        part = rank.columns[first : max(first + 1, (at + 1) * count // room)]
        known = [value for value in part if value is not None]
        row.add(*(SHADES[level(max(known))] if known else (" ", "text")))
    if named and rank.slower is not None:
        row.add(f" slower, +{percent(rank.slower)}", "warn")
    return row.spans()


def _table(ranks: RanksNow, width: int) -> list[Row]:
    """A row for each rank; columns in which nothing is known are left out."""
    texts = [
        (
            milliseconds(rank.figures.step_seconds),
            milliseconds(rank.figures.own_seconds),
            percent(rank.figures.data_share),
            si(rank.figures.samples_per_second, ""),
            si(rank.figures.tokens_per_second, ""),
        )
        for rank in ranks.ranks
    ]
    shown = [at for at in range(len(_COLUMNS)) if any(row[at] != UNKNOWN for row in texts)]
    left = width - _LABEL - _DEVICE
    while sum(_COLUMNS[at][1] for at in shown) > left and shown:
        shown.pop()
    head = "".join(_COLUMNS[at][0].rjust(_COLUMNS[at][1]) for at in shown)
    rows: list[Row] = [((pad(" rank", _LABEL) + pad("device", _DEVICE) + head, "muted"),)]
    for rank, cells in zip(ranks.ranks, texts, strict=True):
        device = fit(clean(rank.device or UNKNOWN), _DEVICE - 1)
        figures = "".join(cells[at].rjust(_COLUMNS[at][1]) for at in shown)
        role = "strong" if rank.slower is not None else "text"
        mark = "▸" if rank.slower is not None else " "
        told = pad(str(rank.figures.rank), _LABEL - 1) + pad(device, _DEVICE) + figures
        rows.append(((mark, "key"), (told, role)))
    return rows


_KERNEL_COLUMNS = {
    "Time (%)": ("share", 8),
    "Time/Step (ns)": ("time/step", 11),
    "Total Time (ns)": ("total", 9),
    "Total (MB)": ("total MB", 9),
    "Launches/Step": ("launches/step", 15),
    **dict.fromkeys(("Instances", "Num Calls", "Count", "Calls", "Invocations"), ("count", 8)),
    "Avg (ns)": ("mean", 9),
    "Avg (MB)": ("mean MB", 9),
    "Med (ns)": ("median", 9),
    "Min (ns)": ("min", 9),
    "Max (ns)": ("max", 9),
    "FLOP": ("FLOP", 9),
    "DRAM Read (bytes)": ("read", 9),
    "DRAM Write (bytes)": ("written", 9),
}
"""Heading and width of each column; the name is the last column."""
_WIDE_COLUMNS = ("Med (ns)", "Min (ns)", "Max (ns)")
"""Columns of a wide screen."""


def kernel_rows(snapshot: Snapshot, width: int) -> list[Row]:
    """All tables, or the reason why there are none."""
    profile, counters = snapshot.profile, snapshot.counters
    tables = all_tables(profile, counters)
    known = profile is not None and (profile.main_table() is not None or profile.reason is not None)
    rows: list[Row] = []
    if profile is not None and known:
        rows += wrapped(source(profile), width, role="strong")
        if profile.reason:
            rows += wrapped(profile.reason, width, mark="!", role="text")
        for note in profile.notes:
            rows += wrapped(note, width)
    if counters is not None:
        rows += [*([(("", "text"),)] if rows else []), *counter_rows(counters, width)]
    if not tables and not known:
        reason, hint = snapshot.no_profile
        mend = wrapped(hint, width, mark="→", role="text") if hint else []
        rows = [*wrapped(reason, width, role="text"), *mend, *rows]
    for table in tables.values():
        rows += [(("", "text"),), *_kernels(table, width)]
    return rows


def _kernels(table: Table, width: int) -> list[Row]:
    shown = [
        column
        for column in table.columns
        if column in _KERNEL_COLUMNS and (width >= 120 or column not in _WIDE_COLUMNS)
    ]
    name = table.columns[-1]
    head = "".join(
        f"{_KERNEL_COLUMNS[column][0]:>{_KERNEL_COLUMNS[column][1]}}" for column in shown
    )
    rows: list[Row] = [
        ((f" {TITLES.get(table.name) or clean(table.name)}", "strong"),),
        ((f"{head}  {name.lower()}", "muted"),),
    ]
    room = max(20, width - len(head) - 2)
    kernels = [UNKNOWN if each is None else clean(str(each)) for each in table.column(name)]
    named = zip(table.rows, kernels, short_names(kernels, room - 1), strict=True)
    for cells, kernel, short in named:
        values = dict(zip(table.columns, cells, strict=True))
        numbers = "".join(
            pad(_cell(values[column], column), _KERNEL_COLUMNS[column][1], ">") for column in shown
        )
        # The whole name stands beyond the screen's edge, where a search finds it.
        rows.append(((numbers, "text"), (f"  {pad(short, room)}", "strong"), (kernel, "muted")))
    if table.rows_left_out:
        rows.append(((f"   and {table.rows_left_out:,} more, not kept", "muted"),))
    return rows


def _cell(value: Cell, column: str) -> str:
    known = number(value)
    if known is None:
        return UNKNOWN
    if column.endswith("(ns)"):
        return milliseconds(known / 1e9)
    if column.endswith("(%)"):
        return "<0.1 %" if 0 < known < 0.05 else f"{known:.1f} %"
    if column == "FLOP" or column.endswith("(bytes)"):
        return si(known, "B" if column.endswith("(bytes)") else "")
    if column.endswith("(MB)"):
        return digits(known)
    return f"{known:,.{1 if column == 'Launches/Step' else 0}f}".removesuffix(".0")
