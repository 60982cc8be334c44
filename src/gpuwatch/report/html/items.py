"""A section of the report, as the terminal shows it, in HTML."""

from __future__ import annotations

from gpuwatch.report.html.markup import table, text
from gpuwatch.report.study.document import Grid, Heading, LabelledSentence, Section


def tables(section: Section) -> str:
    """Its tables, each under the heading before it, and its sentences."""
    parts = []
    caption = section.title
    for item in section.items:
        if isinstance(item, Heading):
            caption = item.text
        elif isinstance(item, Grid):
            rows = [[_cell(cell) for cell in row] for row in item.rows]
            parts.append(table(caption, [text(cell, 80) for cell in item.head], [("", rows)]))
        elif isinstance(item, LabelledSentence):
            word = f"{text(item.word)}: " if item.word else ""
            fix = f"<br>Fix: {text(item.hint)}" if item.hint else ""
            parts.append(f'<p class="what">{word}{text(item.text, 1000)}{fix}</p>')
    return "\n".join(parts)


def _cell(cell: str) -> str:
    """The first line, and those below it smaller; these break at tabs alone."""
    first, *rest = cell.split("\n")
    below = (
        " ".join(text(part, 120).replace(" ", "&nbsp;") for part in line.split("\t"))
        for line in rest
    )
    return text(first, 120) + "".join(f"<br><small>{line}</small>" for line in below)
