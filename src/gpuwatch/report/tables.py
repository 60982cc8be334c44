"""Plain tables, aligned for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.core.text import width_of


def table(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1, last_left: bool = False
) -> str:
    """Align the first ``left`` columns (and the last, if ``last_left``) left, the others right."""
    widths = [max(width_of(row[column]) for row in (head, *rows)) for column in range(len(head))]
    lines = []
    for row in (head, *rows):
        cells = [
            cell + " " * (width - width_of(cell))
            if column < left or (last_left and column == len(head) - 1)
            else " " * (width - width_of(cell)) + cell
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> str:
    """The same as a Markdown table; cells must be escaped already."""
    marks = ["---" if column < left else "---:" for column in range(len(head))]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, marks, *rows))
