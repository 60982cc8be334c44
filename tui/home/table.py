"""The rows of the list of sessions and studies, and the details of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.text import clean
from gpuwatch.core.units import UNKNOWN, clock_time, milliseconds
from gpuwatch.session.reading.status import State
from gpuwatch.tui.home.list import BAD, Item, first_start, moment, place, took
from gpuwatch.tui.live.head_rows import MARKS
from gpuwatch.tui.live.rows import samples_rate
from gpuwatch.tui.widgets.cells import fit, pad, wrap
from gpuwatch.tui.widgets.line import Line

_LEAST_RESULT = 16
"""Columns from which on verdicts and reasons have a column."""
_ROOMY = 130
"""Columns from which a name and what ran stand side by side, and tags have a column."""


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
    """What there is room for; names, tags and places take none where there are none."""
    names = any((i.entry or i.study).name for i in items)  # type: ignore[union-attr]
    named, mixed = names and width >= _ROOMY, names and width < _ROOMY
    tagged = width >= _ROOMY and any((i.entry or i.study).tags for i in items)  # type: ignore[union-attr]
    below = any(
        item.entry is not None and item.study is not None and not item.alike for item in items
    )
    listed = [
        Column("status", 15, title="  status"),
        *([Column("name", 20)] if named else []),
        Column("workload", 15, title="name, workload") if mixed else Column("workload", 13),
        Column("environment", 10, title="env") if mixed else Column("environment", 12),
        Column("started", 12),
        Column("took", 8, right=True),
        Column("step", 9, right=True),
        Column("samples/s", 10, right=True),
        *([Column("tags", 16)] if tagged else []),
    ]
    for name in ("started", "samples/s"):
        if sum(column.width for column in listed) > width:
            listed = [column for column in listed if column.name != name]
    spare = width - sum(column.width for column in listed)
    if below and spare < 8:
        # The place of a run in its study stands before what ran.
        listed = [column for column in listed if column.name != "samples/s"]
        spare += 10
    spare = max(0, spare)
    results = any(verdict(item) or _whys(item) for item in items)
    # Verdicts and reasons are sentences: they get what is left.
    share = spare // 6 if results else spare // 2
    first = min(12 if results else 24, spare if below and spare < 12 else share)
    grown = {"workload": first, "environment": min(12, share, spare - first)}
    listed = [replace(c, width=c.width + grown.get(c.name, 0)) for c in listed]
    left = width - sum(column.width for column in listed)
    if results and left >= _LEAST_RESULT:
        listed.append(Column("result", left, title=" result"))
    return listed


Cells = tuple[tuple[str, str], ...]
"""Text and the role of its colour, of each column of a row."""


def cells(item: Item, shown: Sequence[Column], marked: Sequence[Path]) -> Cells:
    """One row: a mark, then what its columns show."""
    mark = str(marked.index(item.path) + 1)[-1] if item.path in marked else " "
    state, words = item.state
    try:
        sign, role = MARKS[State(state)]
    except ValueError:
        sign, role = "!", "warn"
    of = item.entry or item.study
    assert of is not None
    values = {
        "status": f"{mark} {sign} {words}",
        "name": of.name,
        "workload": _what(item, named=any(column.name == "name" for column in shown)),
        "environment": _environment(item),
        "started": started(first_start(item) or ""),
        "tags": " ".join(of.tags),
        "result": " " + (verdict(item) or "; ".join(_whys(item))),
        **_figures(item),
    }
    roles = {"status": role, "workload": "strong", "name": "strong"}
    return tuple(
        (column.cell(values[column.name]), roles.get(column.name, "text")) for column in shown
    )


def _what(item: Item, *, named: bool) -> str:
    """What ran, or the name in its place; before it how the row hangs together with others."""
    if item.entry is None:
        return f"{'-' if item.opened else '+'} {item.ran if named else item.title}"
    title = item.entry.workload if named else item.title
    if item.study is None:
        return title
    if item.alike and title == item.entry.workload:
        title = ""  # its study's row says it
    return " ".join(filter(None, ("╰" if item.last else "│", place(item.entry), title)))


def _environment(item: Item) -> str:
    """Of a study its baseline, and how many others there are."""
    if item.entry is not None:
        return item.entry.environment
    first, *others = (item.study.environments if item.study is not None else ()) or ("",)
    return f"{first} +{len(others)}" if others else first


def _figures(item: Item) -> dict[str, str]:
    if item.entry is None:
        seconds = took(item)
        told = UNKNOWN if seconds is None else clock_time(seconds)
        return {"took": told, "step": "", "samples/s": ""}
    entry = item.entry
    return {
        "took": UNKNOWN if entry.seconds is None else clock_time(entry.seconds),
        "step": milliseconds(entry.step_seconds),
        "samples/s": samples_rate(entry.samples_per_second),
    }


def verdict(item: Item) -> str:
    """Of a study what its summary says, in short; empty where it says nothing."""
    if item.entry is not None or item.study is None or not item.study.says:
        return ""
    says = item.study.says
    if len(says) == 1:
        return says[0][1]
    kinds = [kind for kind, _ in says if kind not in ("sweeps", "noise")]
    if not kinds:
        return says[0][1]
    told = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
    return f"{told}" if len(kinds) > 1 else says[0][1]


def _whys(item: Item) -> list[str]:
    """Why the run, or the first of a study that did, ended badly."""
    ended = sorted((run for run in item.sessions if run.status in BAD), key=lambda run: run.path)
    return [": ".join(filter(None, (run.status_text, run.reason))) for run in ended[:1]]


def started(text: str) -> str:
    """``11-20 22:54`` in the local time of the terminal."""
    known = moment(text)
    return known.astimezone().strftime("%m-%d %H:%M") if known else fit(text, 11)


def details(item: Item, width: int, lines: int) -> list[Line]:
    """What the row under the cursor has no room for: why it failed, question, verdicts, name, tags,
    note, or why there are none."""
    if lines <= 0:
        return []
    of = item.entry or item.study
    assert of is not None
    told: list[tuple[str, str]] = []
    if item.entry is None and item.study is not None:
        told += [("", text) for _, text in item.study.says]
        if item.study.question:
            told.insert(min(1, len(told)), ("asks", item.study.question))
    elif item.entry is not None and item.entry.name:
        told.append(("", f"{item.entry.workload} in {item.entry.environment}"))
    told[:0] = [("✗", why) for why in _whys(item)]
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
