"""Ratios between sessions, where both values are comparable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpuwatch.analysis.comparison.comparison_row import ComparisonRow, same_ceiling
from gpuwatch.analysis.comparison.training_rows import GROUP, trained_alike
from gpuwatch.analysis.summary.identity import baseline, sound
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.core.metrics import Method

_SAMPLED = frozenset({"mean", "over the window", "maximum"})
"""Groups of rows that depend on the session's window."""


THROUGHPUT = ("steps", "throughput")
"""Group and name of the row whose change is judged as that of the time of all steps."""


def paid_ratios(
    own: Sequence[float | None], all_steps: Sequence[float | None]
) -> tuple[float | None, ...]:
    """Ratios of a throughput: the inverse of those of the time of all steps, where known."""
    return tuple(
        1 / judged if ratio is not None and judged else ratio
        for ratio, judged in zip(own, all_steps, strict=True)
    )


def with_ratios(row: ComparisonRow, sessions: Sequence[Summary]) -> ComparisonRow:
    """``row`` with ratios to the first session that did not fail."""
    base = baseline(sessions)
    if base is None:
        return replace(row, ratios=(None,) * len(row.values))
    ratios = tuple(ratio(row, sessions, base, at) for at in range(len(sessions)))
    return replace(row, ratios=ratios)


def ratio(row: ComparisonRow, sessions: Sequence[Summary], base: int, at: int) -> float | None:
    """The value of ``at`` over that of ``base``; ``None`` where they are not comparable, such as
    losses of runs with different seeds or numbers of steps."""
    value, first = row.values[at], row.values[base]
    sampled = row.group in _SAMPLED and not row.name.startswith("gpuwatch.")
    if (
        value is None
        or not first
        or not (sound(sessions[base]) and sound(sessions[at]))
        or (sampled and sessions[at].window.kind != sessions[base].window.kind)
        or Method.BOUND in (*row.methods[at : at + 1], *row.methods[base : base + 1])
        or not same_ceiling(row, base, at)
        or (row.group == GROUP and not trained_alike(row, sessions[base], sessions[at]))
    ):
        return None
    return value / first
