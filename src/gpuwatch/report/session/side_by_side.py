"""One or several sessions side by side, as a terminal table, Markdown or CSV."""

from __future__ import annotations

import csv
import io
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby

from gpuwatch.analysis.comparison.comparison_row import ComparisonRow
from gpuwatch.analysis.comparison.side_by_side import Comparison, headings, used_gpus
from gpuwatch.analysis.comparison.training_rows import GROUP, STEP, name_of
from gpuwatch.analysis.summary.identity import device_names
from gpuwatch.analysis.summary.missing import missing
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.analysis.summary.training import NAMES
from gpuwatch.core import units
from gpuwatch.core.metrics import Method
from gpuwatch.core.models import mapping
from gpuwatch.core.text import clean, markdown, shell, spreadsheet
from gpuwatch.report.session import efficiency
from gpuwatch.report.tables.fitted import fitted
from gpuwatch.report.tables.plain import markdown_table
from gpuwatch.report.values import moved, ratio, shown

_COLUMNS, _NAMES = (40, 100), 20
"""Least and greatest width of sentences in a terminal; greatest width of the names before them."""
_ROOM_FOR_VALUES = 120
"""Characters for all values in one row of the fingerprint."""
_FIRST = (
    ("start-up and time", "real"),
    ("steps", "step time, median"),
    ("steps", "throughput"),
    *((GROUP, name_of(key, STEP)) for key in NAMES),
    ("mean", "gpuwatch.flop.rate"),
    ("mean", "hw.gpu.utilization"),
    ("mean", "hw.gpu.memory.usage"),
    ("mean", "hw.gpu.power"),
    ("mean", "hw.cpu.utilization"),
)
"""Groups and names of the rows of the brief table."""


def terminal(
    compared: Comparison,
    notices: Sequence[str] = (),
    *,
    columns: int = 80,
) -> str:
    """The full comparison for a terminal; a table that is too wide is split."""
    wrap = textwrap.TextWrapper(
        max(_COLUMNS[0], min(_COLUMNS[1], columns)),
        break_on_hyphens=False,
        break_long_words=False,
    )
    parts = [_wrapped(wrap, "", _heading(session)) for session in compared.sessions]
    parts += [_wrapped(wrap, "", clean(line)) for line in _given(compared)]
    if not compared.sessions:
        return "\n".join(parts) + "\n"
    parts.append("")
    head, rows = _grid(compared, clean)
    parts.append(fitted(head, rows, columns, repeat_last=True))
    for title, lines in _efficiency(compared):
        width = min(_NAMES, max(len(name) for name, _ in lines))
        parts += ["", _wrapped(wrap, "", clean(title))]
        parts += [
            _wrapped(wrap, f"  {name:{width}}  ", clean(text, 1000), width + 4)
            for name, text in lines
        ]
    if compared.kernels:
        labels = headings(compared.sessions)
        grid = efficiency.kernel_grid(labels, compared.kernels, clean)
        parts += ["", fitted(*grid, columns)]
    if compared.differences:
        parts += ["", fitted(*_differences(compared, clean), columns)]
    notes = [*notices, *compared.notes, *_unavailable(compared)]
    parts += ["", *(_wrapped(wrap, "note: ", clean(note)) for note in notes)] if notes else []
    return "\n".join(parts) + "\n"


def brief(compared: Comparison, *, columns: int = 80) -> str:
    """The outcome and the main figures of each session, in a few lines."""
    ends = [
        clean(f"{session.given.before(session.label)}: {session.status.text}", columns)
        for session in compared.sessions
    ]
    by_name = {(row.group, row.name): row for row in compared.rows}
    first = tuple(by_name[at] for at in _FIRST if at in by_name)
    head, rows = _grid(replace(compared, rows=first), clean)
    # Drop the group names, whose rows have no values.
    rows = [[row[0].strip(), *row[1:]] for row in rows if any(row[1:])]
    table = [fitted(head, rows, columns, repeat_last=True)] if rows else []
    return "\n".join([*ends, *table]) + "\n"


def as_markdown(
    compared: Comparison,
    title: str,
    notices: Sequence[str] = (),
    *,
    answer: Sequence[str] = (),
    roofline: str | None = None,
) -> str:
    """The full comparison as Markdown for a pull request.

    ``answer`` are Markdown lines for the beginning, ``roofline`` is the name of the picture in the
    same folder.
    """
    parts = [f"# {markdown(title)}", "", *answer]
    parts += [f"- {markdown(_heading(session))}" for session in compared.sessions]
    parts += [f"- {markdown(line)}" for line in _given(compared)]
    if not compared.sessions:
        return "\n".join(parts) + "\n"
    head, rows = _grid(compared, markdown)
    parts += ["", markdown_table(head, rows)]
    for title, lines in _efficiency(compared):
        parts += ["", f"## {markdown(title[:1].upper() + title[1:])}", ""]
        parts += [f"- {name}: {markdown(clean(text, 1000))}" for name, text in lines]
    if roofline:
        parts += ["", "## Roofline", "", f"In {roofline}, beside this file."]
    if compared.kernels:
        labels = headings(compared.sessions)
        grid = efficiency.kernel_grid(labels, compared.kernels, markdown)
        parts += ["", "## Kernels", "", markdown_table(*grid)]
    if compared.differences:
        parts += ["", "## What differs around the runs", ""]
        parts.append(markdown_table(*_differences(compared, markdown)))
    notes = [*notices, *compared.notes, *_unavailable(compared)]
    if notes:
        parts += ["", "## Notes", "", *(f"- {markdown(note)}" for note in notes)]
    return "\n".join(parts) + "\n"


def as_csv(compared: Comparison) -> str:
    """One row per session and quantity, in base units."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        ("session", "label", "environment", "group", "name", "unit", "value", "method", "ratio")
    )
    for row in compared.rows:
        for at, session in enumerate(compared.sessions):
            writer.writerow(
                (
                    spreadsheet(session.id),
                    spreadsheet(session.label),
                    spreadsheet(session.environment.get("label")),
                    row.group,
                    row.name,
                    row.unit,
                    "" if row.values[at] is None else repr(row.values[at]),
                    row.methods[at].value,
                    "" if row.ratios[at] is None else repr(row.ratios[at]),
                )
            )
    return out.getvalue()


def _wrapped(wrap: textwrap.TextWrapper, name: str, text: str, indent: int = 2) -> str:
    wrap.initial_indent, wrap.subsequent_indent = name, " " * indent
    return wrap.fill(text)


def _efficiency(compared: Comparison) -> list[tuple[str, list[tuple[str, str]]]]:
    """Title and lines for each session with a workload."""
    labels = headings(compared.sessions)
    blocks = []
    for label, session in zip(labels, compared.sessions, strict=True):
        named = f"{label}: " if len(labels) > 1 else ""
        if lines := efficiency.efficiency_rows(session):
            blocks.append((f"{named}{efficiency.heading(session)}", lines))
    return blocks


def _heading(session: Summary) -> str:
    gpus = [f"{gpu.id} {gpu.name}" for gpu in used_gpus(session)]
    device = ", ".join(gpus or device_names(session))
    parts = [
        f"{session.given.before(session.label)}: {session.status.text}",
        session.started,
        device,
        _what(session),
    ]
    return clean("; ".join(part for part in [*parts, session.path] if part), 600)


def _given(compared: Comparison) -> list[str]:
    """Tags and note of a single session, one per line; empty for several sessions."""
    if len(compared.sessions) != 1:
        return []
    given = compared.sessions[0].given
    tags = [f"tags: {', '.join(given.tags)}"] if given.tags else []
    return [*tags, *(f"note: {line}" for line in given.note.splitlines() if line.strip())]


def _what(session: Summary) -> str:
    """The command, or the settings of one of gpuwatch's own workloads."""
    arguments = session.workload.get("arguments")
    if session.workload.get("kind") == "command" and isinstance(arguments, list):
        return " ".join(shell(str(each)) for each in arguments)[:200]
    run, data = session.run, mapping(session.run.get("data"))
    settings = (
        f"batch {run['batch_size']}" if run.get("batch_size") else "",
        str(run.get("dtype") or ""),
        f"on {run['device']}" if run.get("device") else "",
        f"{data['kind']} data" if data.get("kind") else "",
    )
    return ", ".join(part for part in settings if part)


def _grid(
    compared: Comparison, escape: Callable[[object], str]
) -> tuple[list[str], list[list[str]]]:
    labels = headings(compared.sessions)
    head = ["", *(escape(label) for label in labels)]
    beside = (
        len(labels) == 2
        and compared.baseline == 0
        and any(row.ratios[1] is not None for row in compared.rows)
    )
    if beside:
        head.append("ratio")
    head.append("method")
    rows: list[list[str]] = []
    for group, of_group in groupby(compared.rows, key=lambda row: row.group):
        rows.append([escape(group), *[""] * (len(head) - 1)])
        rows.extend(_line(row, escape, compared.baseline, beside=beside) for row in of_group)
    return head, rows


def _line(
    row: ComparisonRow, escape: Callable[[object], str], baseline: int | None, *, beside: bool
) -> list[str]:
    """The cells of a row; ``beside`` puts ratios into a separate column."""
    cells = []
    for at, value in enumerate(row.values):
        cell = _cell(row, value)
        if any(row.at_most[at : at + 1]):
            cell = f"under {cell}"
        if not beside and at != baseline and row.ratios[at] is not None:
            cell += f" ({ratio(row.ratios[at])})"
        cells.append(escape(cell))
    if beside:
        cells.append(ratio(row.ratios[1]))
    methods = dict.fromkeys(m.value for m in row.methods if m is not Method.UNAVAILABLE)
    return [f"  {escape(row.name)}", *cells, "/".join(methods)]


def _cell(row: ComparisonRow, value: float | None) -> str:
    return moved(value) if row.is_traffic else shown(value, row.unit)


def _differences(
    compared: Comparison, escape: Callable[[object], str]
) -> tuple[list[str], list[list[str]]]:
    longest = max(20, _ROOM_FOR_VALUES // len(compared.sessions))
    head = ["fingerprint", *(escape(label) for label in headings(compared.sessions))]
    rows = [
        [
            escape(f"{each.scope}: {each.key}"),
            *(escape(short_fact(each.key, value, longest)) for value in each.values),
        ]
        for each in compared.differences
    ]
    return head, rows


def _unavailable(compared: Comparison) -> list[str]:
    return [
        f"unavailable: {', '.join(names)}: {why}"
        for why, names in missing(compared.sessions).items()
    ]


def short_fact(key: str, value: object, longest: int) -> str:
    """A fact of the fingerprint, cut to ``longest`` characters."""
    text = units.fact(key, value)
    return text if len(text) <= longest else text[: longest - 1] + "…"
