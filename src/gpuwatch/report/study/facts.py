"""Facts that differ around the runs of one question, with the value in each environment."""

from __future__ import annotations

import re

from gpuwatch.analysis.comparison.quantity_table import of_question
from gpuwatch.analysis.results import Question
from gpuwatch.report.study.document import Heading, Item, LabelledSentence, Section
from gpuwatch.report.tables.grid import difference_grid

_TITLE = "what differs around the runs"
_FOLDED = (
    ("namespaces", re.compile(r"process\.namespace\.")),
    ("capabilities", re.compile(r"process\.capabilities")),
    ("image ids and layers", re.compile(r"image_(id|layers)|.*digest")),
)
"""The least informative facts, which are only counted."""


def listed(question: Question) -> Section:
    """One line per fact, its values separated by bars; the least informative are only counted."""
    differences = of_question(question)
    grid = difference_grid(differences, [cell.label for cell in question.cells])
    items: list[Item] = [Heading(" | ".join(grid.head[1:]))]
    folded: dict[str, int] = {}
    for difference, (name, *values) in zip(differences, grid.rows, strict=True):
        group = next((name for name, pattern in _FOLDED if pattern.match(difference.key)), None)
        if group is None:
            items.append(LabelledSentence(name, " | ".join(values)))
        else:
            folded[group] = folded.get(group, 0) + 1
    if folded:
        counts = ", ".join(f"{count} of {name}" for name, count in folded.items())
        many = sum(folded.values())
        items.append(
            LabelledSentence(
                "", f"{many} more ({counts}): in summary.md, summary.html and summary.json"
            )
        )
    return Section(_TITLE, tuple(items) if differences else ())


def table(question: Question) -> Section:
    """One row per fact, one column per environment."""
    differences = of_question(question)
    grid = difference_grid(differences, [cell.label for cell in question.cells])
    return Section(_TITLE, (grid,) if differences else ())
