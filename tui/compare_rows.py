"""The comparison as rows of text: a column for each session, ratios against the first."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from gpuwatch.analysis.compare import Comparison, Row, missing
from gpuwatch.analysis.summary import Summary
from gpuwatch.metrics import Method
from gpuwatch.text import clean
from gpuwatch.tui.canvas import Line
from gpuwatch.tui.cells import fit, pad, wrap
from gpuwatch.tui.head_rows import MARKS
from gpuwatch.tui.page import shown
from gpuwatch.units import UNKNOWN, clock_time, fact, milliseconds

_METHOD = 10
"""Columns of the method at the end of a row."""
_RATIO = 8
_WORDS = {"gpu": "GPU", "cpu": "CPU", "sm": "SM", "pcie": "PCIe"}
_LABELS = {
    "hw.memory.usage": "host memory usage",
    "step time, 95th percentile": "step time, 95th pct.",
    "gpuwatch.flop.rate": "FLOP/s",
    "gpuwatch.bytes.rate": "algorithmic bytes/s",
    "gpuwatch.throughput": "samples/s",
}


def name_width(width: int) -> int:
    """Columns of the names."""
    return 27 if width < 120 else 36


def column_width(width: int, sessions: int) -> int:
    """Columns of one session: its value and its ratio."""
    room = width - name_width(width) - _METHOD
    return max(19, min(30, room // max(1, sessions)))


def columns_shown(width: int, sessions: int) -> int:
    """Sessions that fit beside each other."""
    return max(
        1, min(sessions, (width - name_width(width) - _METHOD) // column_width(width, sessions))
    )


def heading_rows(compared: Comparison, width: int, first: int) -> list[Line]:
    """Names and states of the sessions: they stay when the rest scrolls."""
    sessions = compared.sessions
    size = column_width(width, len(sessions))
    order = columns_of(compared, width, first)
    texts: list[list[tuple[str, str]]] = [[], [], []]
    environments = [clean(each.environment.get("label") or "") for each in sessions]
    for at in order:
        session = sessions[at]
        mark, role = MARKS[session.status.state]
        name = clean(session.workload.get("name") or session.label)
        texts[0].append((f"{at + 1} {name}", "strong"))
        where = environments[at]
        if environments.count(where) > 1:
            where = f"{where} {clean(session.id)[:6]}"
        texts[1].append((where, "text"))
        texts[2].append((f"{mark} {session.status.state.value}", role))
    rows = []
    for cells in texts:
        row = Line(width).to(name_width(width))
        for text, role in cells:
            row.add(pad(text, size - _RATIO, ">") + " " * _RATIO, role)
        rows.append(row)
    rows[-1].add("method", "muted")
    return rows


def columns_of(compared: Comparison, width: int, first: int) -> list[int]:
    """The sessions shown: the first one always, the others from ``first`` on."""
    fit_ = columns_shown(width, len(compared.sessions))
    rest = list(range(1, len(compared.sessions)))
    return [0, *rest[first : first + fit_ - 1]]


def body_rows(compared: Comparison, width: int, first: int) -> list[Line]:
    """Everything that scrolls: quantities by group, differences, notes."""
    order = columns_of(compared, width, first)
    rows: list[Line] = []
    for group, of_group in groupby(compared.rows, key=lambda row: row.group):
        rows.append(_rule(group, width))
        rows += [_quantity(row, order, compared, width) for row in of_group]
    rows.append(_rule("what differs around the runs", width))
    if not compared.differences:
        rows.append(Line(width).add(" nothing that was recorded", "muted"))
    for difference in compared.differences:
        name = f"{clean(difference.scope)}: {clean(difference.key)}"
        row = Line(width).add(f" {pad(name, name_width(width) - 2)} ", "text")
        size = column_width(width, len(compared.sessions))
        for at in order:
            text = clean(fact(difference.key, difference.values[at]))
            row.add(pad(fit(text, size - 2), size - 2, ">") + "  ", "strong")
        rows.append(row)
    notes = [*compared.notes, *_unavailable(compared.sessions)]
    if notes:
        rows.append(_rule("to know before believing a ratio", width))
    for note in notes:
        for index, text in enumerate(wrap(clean(note), width - 5, 4)):
            rows.append(Line(width).add(" ! " if index == 0 else "   ", "warn").add(text))
    return rows


def _rule(title: str, width: int) -> Line:
    row = Line(width).add("── ", "faint").add(clean(title), "muted").add(" ", "faint")
    return row.add("─" * row.left, "faint")


def _quantity(row: Row, order: Sequence[int], compared: Comparison, width: int) -> Line:
    size = column_width(width, len(compared.sessions))
    line = Line(width).add(f" {pad(_label(row), name_width(width) - 2)} ", "text")
    for at in order:
        value, ratio = row.values[at], row.ratios[at]
        role = "muted" if value is None else "strong"
        line.add(pad(_value(value, row.unit), size - _RATIO, ">"), role)
        shown_ratio = "" if at == 0 or ratio is None else _ratio(ratio)
        line.add(f" {pad(shown_ratio, _RATIO - 1)}", "text")
    known = dict.fromkeys(m.value for m in row.methods if m is not Method.UNAVAILABLE)
    return line.add("/".join(known) or Method.UNAVAILABLE.value, "muted")


def _ratio(value: float) -> str:
    return f"×{value:.3f}" if 0.0995 < value < 10 else f"×{value:.3g}"


def _label(row: Row) -> str:
    name = clean(row.name)
    if name in _LABELS or "." not in name:
        return _LABELS.get(name, name)
    words = name.removeprefix("hw.").split(".")
    return " ".join(_WORDS.get(word, word) for word in words)


def _value(value: float | None, unit: str) -> str:
    if value is None:
        return UNKNOWN
    if unit == "s":
        return milliseconds(value) if value < 60 else clock_time(value)
    if unit == "{sample}/s":
        return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
    if unit == "{step}":
        return f"{value:,.0f}"
    return shown(value, unit)


def _unavailable(sessions: Sequence[Summary]) -> list[str]:
    return [f"unavailable, {why}: {', '.join(names)}" for why, names in missing(sessions).items()]
