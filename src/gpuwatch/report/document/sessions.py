"""One or several sessions side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpuwatch.analysis.comparison.comparison_row import (
    STEADY,
    STEP,
    TRAINING,
    ComparisonRow,
    name_of,
)
from gpuwatch.analysis.comparison.quantity_table import quantity_table
from gpuwatch.analysis.comparison.side_by_side import Comparison, headings, used_gpus
from gpuwatch.analysis.study.letters import letters
from gpuwatch.analysis.summary.identity import device_names, session_title
from gpuwatch.analysis.summary.missing import missing_notes
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.analysis.summary.training import NAMES
from gpuwatch.core.models import mapping
from gpuwatch.core.text import clean, shell
from gpuwatch.report.document import efficiency, reasons
from gpuwatch.report.document.blocks import Section, Sentence, Table
from gpuwatch.report.document.quantities import quantity_table_of

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


def sessions(compared: Comparison, notices: Sequence[str] = ()) -> tuple[Section, ...]:
    """All that is known of the sessions, under each other and side by side; ``notices`` come
    before the notes."""
    columns, several = _columns(compared), len(compared.sessions) > 1
    lines = [
        _heading(name, session)
        for name, session in zip(_named(compared), compared.sessions, strict=True)
    ]
    sections = [Section("", [Sentence("", line) for line in (*lines, *_given(compared))])]
    if not compared.sessions:
        return tuple(sections)
    sections.append(Section("", (_quantities(compared, compared.rows),)))
    for label, session in zip(columns, compared.sessions, strict=True):
        named = f"{label}: " if several else ""
        rows = [Sentence(name, text) for name, text in efficiency.efficiency_rows(session)]
        sections.append(Section(f"{named}{efficiency.heading(session)}", rows))
    for label, session in zip(columns, compared.sessions, strict=True):
        if session.ranks is not None:
            items = reasons.rank_items(label, session.ranks, session.devices)
            named = f"{label}: " if several else ""
            sections.append(Section(f"{named}{len(session.ranks.figures)} ranks", items))
    if compared.families:
        kernels = reasons.kernel_table(columns, compared.kernels, compared.families)
        sections.append(Section("kernels", (kernels,)))
    if compared.differences:
        table = reasons.difference_table(compared.differences, columns)
        sections.append(Section(reasons.DIFFERENCES, (table,)))
    notes = [*notices, *compared.notes, *missing_notes(compared.sessions)]
    sections.append(Section("notes", [Sentence("", note) for note in notes]))
    return tuple(replace(section, folded=False) for section in sections)


def brief(compared: Comparison) -> Section:
    """The outcome and the main figures of each session, in a few lines."""
    ends = [
        Sentence("", f"{name}: {session.status.text}")
        for name, session in zip(_named(compared), compared.sessions, strict=True)
    ]
    by_name = {(row.group, row.name): row for row in compared.rows}
    if ("steps", STEADY) in by_name:
        by_name.pop(_MEDIAN, None)
    first = [by_name[at] for at in _FIRST if at in by_name]
    return Section("", [*ends, *([_quantities(compared, first, named=False)] if first else [])])


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


def _quantities(
    compared: Comparison, rows: Sequence[ComparisonRow], *, named: bool = True
) -> Table:
    """The table of quantities; not ``named``: without the names of the groups."""
    groups = quantity_table(rows, compared.baseline)
    if not named:
        groups = tuple(replace(group, name="") for group in groups)
    return quantity_table_of(groups, _columns(compared))
