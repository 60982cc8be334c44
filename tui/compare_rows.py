"""The comparison as rows of text: a column for each session, ratios against the baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from rich.cells import cell_len

from gpuwatch.analysis.compare import Comparison, Row
from gpuwatch.analysis.missing import missing
from gpuwatch.analysis.summary import Summary
from gpuwatch.metrics import Method
from gpuwatch.session.study import NotRun
from gpuwatch.text import clean
from gpuwatch.tui.canvas import Line
from gpuwatch.tui.cells import pad, wrap
from gpuwatch.tui.head_rows import MARKS
from gpuwatch.tui.numbers import shown
from gpuwatch.units import UNKNOWN, clock_time, fact, joules, milliseconds, si

_METHOD = 10
"""Columns of the method at the end of a row."""
_RATIO = 10
"""Columns of a ratio with a blank on either side."""
_NARROWEST, _WIDE = 21, 30
"""Columns of a session: at least, and at most unless its name is longer."""
_NAME, _WIDEST_NAME = 27, 46
"""Columns of the names: at least, and where there is room."""
_MOST_TOLD = 20
_WORDS = {"gpu": "GPU", "cpu": "CPU", "sm": "SM", "pcie": "PCIe"}
_LABELS = {
    "hw.memory.usage": "host memory usage",
    "step time, 95th percentile": "step time, 95th pct.",
    "gpuwatch.flop.rate": "FLOP/s",
    "gpuwatch.bytes.rate": "algorithmic bytes/s",
    "gpuwatch.throughput": "samples/s",
}


@dataclass(frozen=True)
class Layout:
    """Where everything stands at one width."""

    width: int
    name: int
    """Columns of the names."""
    size: int
    """Columns of one session: its value and its ratio."""
    order: tuple[int, ...]
    """Places of the sessions that are shown."""

    @property
    def value(self) -> int:
        """Columns of a value."""
        return self.size - _RATIO


def layout(compared: Comparison, width: int, first: int) -> Layout:
    """The baseline always, of the others as many as fit from the ``first`` on, in their order."""
    name = _NAME if width < 120 else _WIDEST_NAME
    room = width - name - _METHOD
    sessions = len(compared.sessions)
    fitting = max(1, min(sessions, room // _NARROWEST))
    widest = max((cell_len(text) for cells in _heads(compared) for text, _ in cells), default=0)
    size = max(_NARROWEST, min(max(_WIDE, widest + 2), room // fitting))
    rest = others(compared)
    kept = [at for at in range(sessions) if at not in rest]
    order = sorted([*kept, *rest[first : first + fitting - len(kept)]])
    spare = width - name - _METHOD - size * len(order)
    return Layout(width, min(_WIDEST_NAME, name + max(0, spare)), size, tuple(order))


def others(compared: Comparison) -> list[int]:
    """Places of the sessions beside the baseline."""
    kept = compared.baseline or 0
    return [at for at in range(len(compared.sessions)) if at != kept]


def against(compared: Comparison) -> str:
    """What the ratios are against."""
    if compared.baseline is None:
        return "no ratios: every run failed"
    return f"ratios are against session {compared.baseline + 1}"


def _heads(compared: Comparison) -> list[list[tuple[str, str]]]:
    """For each session its name, its environment, its state: text and colour."""
    environments = [clean(each.environment.get("label") or "") for each in compared.sessions]
    heads = []
    for at, session in enumerate(compared.sessions):
        mark, role = MARKS[session.status.state]
        name = clean(session.workload.get("name") or session.label)
        where = environments[at]
        if environments.count(where) > 1:
            where = f"{where} {clean(session.id)[:6]}"
        state = f"{mark} {session.status.state.value}"
        heads.append([(f"{at + 1} {name}", "strong"), (where, "text"), (state, role)])
    return heads


def heading_rows(compared: Comparison, place: Layout) -> list[Line]:
    """Names and states of the sessions: they stay when the rest scrolls."""
    heads = _heads(compared)
    rows = []
    for index in range(3):
        row = Line(place.width).to(place.name)
        for at in place.order:
            text, role = heads[at][index]
            # Over the values where it fits; a longer one reaches over the ratios too.
            reach = place.value if cell_len(text) <= place.value else place.size - 1
            row.add(pad(pad(text, reach, ">"), place.size), role)
        rows.append(row)
    rows[-1].add("method", "muted")
    return rows


def body_rows(compared: Comparison, place: Layout, missing_runs: Sequence[NotRun]) -> list[Line]:
    """Everything that scrolls: what did not run, quantities by group, differences, notes."""
    width = place.width
    rows: list[Line] = []
    if missing_runs:
        rows.append(_rule("did not run", width))
    for each in missing_runs[:_MOST_TOLD]:
        rows += _told(each.text, width, "✗", "bad")
    if len(missing_runs) > _MOST_TOLD:
        rows.append(Line(width).add(f"   and {len(missing_runs) - _MOST_TOLD} more", "muted"))
    seen = [row for row in compared.rows if any(row.values[at] is not None for at in place.order)]
    for group, of_group in groupby(seen, key=lambda row: row.group):
        rows.append(_rule(group, width))
        rows += [_quantity(row, compared, place) for row in of_group]
    rows.append(_rule("what differs around the runs", width))
    if not compared.differences:
        rows.append(Line(width).add(" nothing that was recorded", "muted"))
    for difference in compared.differences:
        name = f"{clean(difference.scope)}: {clean(difference.key)}"
        row = Line(width).add(f" {pad(name, place.name - 2)} ", "text")
        for at in place.order:
            text = clean(fact(difference.key, difference.values[at]))
            row.add(pad(text, place.size - 2, ">") + "  ", "strong")
        rows.append(row)
    notes = [*compared.notes, *_unavailable(compared.sessions)]
    if notes:
        rows.append(_rule("to know before believing a ratio", width))
    for note in notes:
        rows += _told(note, width, "!", "warn")
    return rows


def _told(text: str, width: int, mark: str, role: str) -> list[Line]:
    """A sentence behind a mark."""
    parts = wrap(clean(text), width - 5, 4)
    return [
        Line(width).add("   " if index else f" {mark} ", role).add(part)
        for index, part in enumerate(parts)
    ]


def _rule(title: str, width: int) -> Line:
    row = Line(width).add("── ", "faint").add(clean(title), "muted").add(" ", "faint")
    return row.add("─" * row.left, "faint")


def _quantity(row: Row, compared: Comparison, place: Layout) -> Line:
    line = Line(place.width).add(f" {pad(_label(row), place.name - 2)} ", "text")
    for at in place.order:
        value, ratio = row.values[at], row.ratios[at]
        role = "muted" if value is None else "strong"
        text = si(value, "B") if row.is_traffic else _value(value, row.unit)
        if cell_len(text) > place.value:
            text = text.replace(" ", "")
        line.add(pad(text, place.value, ">"), role)
        shown_ratio = "" if at == compared.baseline or ratio is None else _ratio(ratio)
        line.add(f" {pad(shown_ratio, _RATIO - 2)} ", "text")
    methods = [row.methods[at] for at in place.order]
    known = dict.fromkeys(m.value for m in methods if m is not Method.UNAVAILABLE)
    return line.add("/".join(known) or Method.UNAVAILABLE.value, "muted")


def _ratio(value: float) -> str:
    """At most eight characters between a millionth and a million."""
    if 0.0995 < value < 1000:
        return f"×{value:.3f}"
    return f"×{value:,.0f}" if 1000 <= value < 1e6 else f"×{value:.2g}"


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
    if unit == "J":
        return joules(value)
    if unit == "FLOP/By":
        return f"{value:.3g} FLOP/B" if value < 1000 else f"{value:,.0f} FLOP/B"
    return shown(value, unit)


def _unavailable(sessions: Sequence[Summary]) -> list[str]:
    return [f"unavailable, {why}: {', '.join(names)}" for why, names in missing(sessions).items()]
