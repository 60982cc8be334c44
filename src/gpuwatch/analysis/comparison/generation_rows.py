"""What language models that generate reached, side by side."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.analysis.comparison.comparison_row import ComparisonRow
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.core.metrics import Method

GROUP = "generation"


def generation_rows(sessions: Sequence[Summary]) -> list[ComparisonRow]:
    """Time to first token, tokens per second and cache; no rows where no session generates."""
    listed = [{} if each.generation is None else each.generation.figures for each in sessions]
    units = {name: figure.unit for figures in listed for name, figure in figures.items()}
    rows = []
    for name, unit in units.items():
        found = [figures.get(name) for figures in listed]
        values = tuple(None if each is None else each.value for each in found)
        methods = tuple(Method.UNAVAILABLE if each is None else each.method for each in found)
        rows.append(ComparisonRow(GROUP, name, unit, values, methods))
    return rows
