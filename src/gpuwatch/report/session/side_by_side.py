"""Sessions side by side without a study, in each of their formats."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from gpuwatch.analysis.comparison.side_by_side import Comparison
from gpuwatch.core.text import spreadsheet
from gpuwatch.report import markdown, text
from gpuwatch.report.document.blocks import Document
from gpuwatch.report.document.sessions import sessions


def terminal(compared: Comparison, notices: Sequence[str] = (), *, columns: int = 80) -> str:
    """The full comparison for a terminal; a table that is too wide is split."""
    return text.as_text(Document("", sections=sessions(compared, notices)), columns)


def as_markdown(compared: Comparison, title: str, notices: Sequence[str] = ()) -> str:
    """The full comparison as Markdown for a pull request."""
    return markdown.written(Document(title, sections=sessions(compared, notices)))


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
