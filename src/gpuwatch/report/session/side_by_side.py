"""One or several sessions side by side, as a terminal table, Markdown or CSV."""

from __future__ import annotations

import csv
import io
import textwrap
from collections.abc import Sequence
from dataclasses import replace

from gpuwatch.analysis.comparison.comparison_row import STEADY, STEP, TRAINING, name_of
from gpuwatch.analysis.comparison.quantity_table import quantity_table
from gpuwatch.analysis.comparison.side_by_side import Comparison, headings, used_gpus
from gpuwatch.analysis.ranks.wording import sentences
from gpuwatch.analysis.study.letters import letters
from gpuwatch.analysis.summary.identity import device_names, session_title
from gpuwatch.analysis.summary.missing import missing_notes
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.analysis.summary.training import NAMES
from gpuwatch.core.models import mapping
from gpuwatch.core.text import clean, markdown, shell, spreadsheet
from gpuwatch.report.session import efficiency
from gpuwatch.report.session.kernel_grid import kernel_grid
from gpuwatch.report.session.rank_grid import rank_grid
from gpuwatch.report.tables.grid import (
    Grid,
    difference_grid,
    grid_markdown,
    grid_text,
    quantity_grid,
)

_COLUMNS, _NAMES = (40, 100), 20
"""Least and greatest width of sentences in a terminal; greatest width of the names before them."""
_MEDIAN = ("steps", "step time, median")
_FIRST = (
    ("start-up and time", "real"),
    ("steps", STEADY),
    _MEDIAN,
    ("steps", "throughput"),
    *((TRAINING, name_of(key, STEP)) for key in NAMES),
    ("mean", "gpuwatch.flop.rate"),
    ("mean", "hw.gpu.utilization"),
    ("mean", "hw.gpu.memory.usage"),
    ("mean", "hw.gpu.power"),
    ("mean", "hw.cpu.utilization"),
)
"""Groups and names of the rows of the brief table; the median only without a steady step time."""


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
    parts = [_wrapped(wrap, "", line) for line in _sessions(compared)]
    parts += [_wrapped(wrap, "", clean(line)) for line in _given(compared)]
    if not compared.sessions:
        return "\n".join(parts) + "\n"
    parts.append("")
    parts.append(grid_text(_quantities(compared), columns))
    for title, lines in _efficiency(compared):
        width = min(_NAMES, max(len(name) for name, _ in lines))
        parts += ["", _wrapped(wrap, "", clean(title))]
        parts += [
            _wrapped(wrap, f"  {name:{width}}  ", clean(text, 1000), width + 4)
            for name, text in lines
        ]
    for title, table, texts in _ranks(compared):
        parts += ["", _wrapped(wrap, "", clean(title)), grid_text(table, columns)]
        parts += [_wrapped(wrap, "  ", clean(line, 1000)) for line in texts]
    if compared.families:
        parts += ["", grid_text(_kernels(compared), columns)]
    if compared.differences:
        parts += ["", grid_text(_differences(compared), columns)]
    notes = [*notices, *compared.notes, *missing_notes(compared.sessions)]
    parts += ["", *(_wrapped(wrap, "note: ", clean(note)) for note in notes)] if notes else []
    return "\n".join(parts) + "\n"


def brief(compared: Comparison, *, columns: int = 80) -> str:
    """The outcome and the main figures of each session, in a few lines."""
    ends = [
        clean(f"{name}: {session.status.text}", columns)
        for name, session in zip(_named(compared), compared.sessions, strict=True)
    ]
    by_name = {(row.group, row.name): row for row in compared.rows}
    if ("steps", STEADY) in by_name:
        by_name.pop(_MEDIAN, None)
    first = tuple(by_name[at] for at in _FIRST if at in by_name)
    grid = _quantities(replace(compared, rows=first), named=False)
    table = [grid_text(grid, columns)] if first else []
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
    parts += [f"- {markdown(line)}" for line in _sessions(compared)]
    parts += [f"- {markdown(line)}" for line in _given(compared)]
    if not compared.sessions:
        return "\n".join(parts) + "\n"
    parts += ["", grid_markdown(_quantities(compared))]
    for title, lines in _efficiency(compared):
        parts += ["", f"## {markdown(title[:1].upper() + title[1:])}", ""]
        parts += [f"- {name}: {markdown(clean(text, 1000))}" for name, text in lines]
    for title, table, texts in _ranks(compared):
        parts += ["", f"## {markdown(title[:1].upper() + title[1:])}", "", grid_markdown(table), ""]
        parts += [f"- {markdown(clean(line, 1000))}" for line in texts]
    if roofline:
        parts += ["", "## Roofline", "", f"In {roofline}, beside this file."]
    if compared.families:
        parts += ["", "## Kernels", "", grid_markdown(_kernels(compared))]
    if compared.differences:
        parts += ["", "## What differs around the runs", ""]
        parts.append(grid_markdown(_differences(compared)))
    notes = [*notices, *compared.notes, *missing_notes(compared.sessions)]
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


def _columns(compared: Comparison) -> list[str]:
    """Names of the columns, letters if they are long."""
    return letters(headings(compared.sessions))


def _named(compared: Comparison) -> list[str]:
    """Each session's name after the letter of its column, if columns have letters."""
    names = headings(compared.sessions)
    columns = _columns(compared)
    lettered = columns != names
    return [
        (f"{column}  " if lettered else "")
        + session.given.heading(session_title(session))
        + (" (baseline)" if lettered and at == compared.baseline else "")
        for at, (column, session) in enumerate(zip(columns, compared.sessions, strict=True))
    ]


def _sessions(compared: Comparison) -> list[str]:
    """A line for each session: its name, state, start, device, work and file."""
    return [
        _heading(name, session)
        for name, session in zip(_named(compared), compared.sessions, strict=True)
    ]


def _efficiency(compared: Comparison) -> list[tuple[str, list[tuple[str, str]]]]:
    """Title and lines for each session with a workload."""
    labels = _columns(compared)
    blocks = []
    for label, session in zip(labels, compared.sessions, strict=True):
        named = f"{label}: " if len(labels) > 1 else ""
        if lines := efficiency.efficiency_rows(session):
            blocks.append((f"{named}{efficiency.heading(session)}", lines))
    return blocks


def _ranks(compared: Comparison) -> list[tuple[str, Grid, list[str]]]:
    """Title, table and sentences for each session of several ranks."""
    labels = _columns(compared)
    return [
        (
            f"{f'{label}: ' if len(labels) > 1 else ''}{len(session.ranks.figures)} ranks",
            rank_grid(session.ranks, session.devices),
            sentences(session.ranks),
        )
        for label, session in zip(labels, compared.sessions, strict=True)
        if session.ranks is not None
    ]


def _heading(name: str, session: Summary) -> str:
    gpus = [f"{gpu.id} {gpu.name}" for gpu in used_gpus(session)]
    device = ", ".join(gpus or device_names(session))
    parts = [
        f"{name}: {session.status.text}",
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


def _quantities(compared: Comparison, *, named: bool = True) -> Grid:
    """The table of quantities; not ``named``: without the names of the groups."""
    groups = quantity_table(compared.rows, compared.baseline)
    if not named:
        groups = tuple(replace(group, name="") for group in groups)
    return quantity_grid(groups, _columns(compared))


def _kernels(compared: Comparison) -> Grid:
    return kernel_grid(_columns(compared), compared.kernels, compared.families)


def _differences(compared: Comparison) -> Grid:
    return difference_grid(compared.differences, _columns(compared))
