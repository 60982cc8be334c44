"""The ranks of a run as rows of text: sentences, a map of rank by time, a table."""

from __future__ import annotations

from gpuwatch.analysis.ranks.levels import LEVELS, level
from gpuwatch.core.text import clean
from gpuwatch.core.units import NS, UNKNOWN, clock_time, milliseconds, percent, si
from gpuwatch.tui.feed.snapshot import RankNow, RanksNow, Snapshot
from gpuwatch.tui.widgets.line import fit, pad
from gpuwatch.tui.widgets.page import Row, wrapped

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
    first, last = (clock_time(t / NS) for t in (ranks.window.start, ranks.window.end))
    rows += [
        (("", "text"),),
        ((_CAPTION, "muted"),),
        *(_row(each, room, named=width >= _WIDE) for each in ranks.ranks),
        ((" " * _LABEL + first + last.rjust(room - len(first)), "muted"),),
        _legend(),
        (("", "text"),),
    ]
    return rows + _table(ranks, width)


def _row(rank: RankNow, room: int, *, named: bool) -> Row:
    """One rank over time, stretched or thinned to the room."""
    spans: list[tuple[str, str]] = [
        ("▸" if rank.slower is not None else " ", "key"),
        (
            pad(f"rank {rank.figures.rank}", _LABEL - 1),
            "strong" if rank.slower is not None else "text",
        ),
    ]
    count = len(rank.columns)
    for at in range(room):
        text, role = " ", "text"
        if count:
            first = at * count // room
            part = rank.columns[first : max(first + 1, (at + 1) * count // room)]
            known = [value for value in part if value is not None]
            if known:
                text, role = SHADES[level(max(known))]
        if spans[-1][1] == role:
            spans[-1] = spans[-1][0] + text, role
        else:
            spans.append((text, role))
    if named and rank.slower is not None:
        spans.append((f" slower, +{percent(rank.slower)}", "warn"))
    return tuple(spans)


def _legend() -> Row:
    spans: list[tuple[str, str]] = [(" ", "text")]
    least = [f"+{100 * each:.0f} %" for each in LEVELS]
    names = [f"under {least[0]}", *(f"from {each}" for each in least)]
    for (pattern, role), name in zip(SHADES, names, strict=True):
        spans += [(pattern * 2, role), (f" {name}  ", "muted")]
    return tuple(spans)


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
        rows.append(
            (
                (mark, "key"),
                (pad(str(rank.figures.rank), _LABEL - 1) + pad(device, _DEVICE) + figures, role),
            )
        )
    return rows
