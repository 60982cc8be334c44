"""Where a step's time goes, as one stacked bar with names and shares."""

from __future__ import annotations

from rich.cells import cell_len

from gpuwatch.core.text import clean
from gpuwatch.core.units import milliseconds
from gpuwatch.tui.feed.snapshot import StepShares
from gpuwatch.tui.widgets.cells import fit
from gpuwatch.tui.widgets.line import Line

_KNOWN = {
    "data": ("░", "warn"),
    "copy": ("╱", "progress"),
    "forward": ("█", "flops"),
    "backward": ("▓", "bandwidth"),
    "optimizer": ("▒", "utilization"),
}
"""Pattern and colour of the phases that most workloads name."""
_MORE = (("╲", "good"), ("═", "key"), ("◇", "text"), ("•", "muted"))
"""Of other names, in turn."""
_OTHER = ("·", "faint")
_LONGEST = 16
"""Columns of a phase's name."""

Part = tuple[str, float, str, str]
"""Name, share, pattern, role."""


def phase_rows(shares: StepShares, width: int, most: int) -> list[Line]:
    """The bar and its names below it, in two rows; where ``most`` is 1 each name stands behind its
    part of the bar.

    Each phase keeps its own pattern; what no phase covers is ``other``.
    """
    parts = _parts(shares)
    if most > 1:
        bar = _bar(Line(width).add(" "), parts, width - 2)
        names = Line(width).add(" ").join(_legend(parts, width - 1, 0))
        over = f"of {milliseconds(shares.seconds)}, mean of {shares.steps:,} steps "
        return [bar, names.end(over, "muted") if names.left > len(over) + 2 else names]
    return [Line(width).add(" ").join(_legend(parts, width - 2, width))]


def _parts(shares: StepShares) -> list[Part]:
    more = iter(_MORE)
    parts = [
        (fit(clean(name), _LONGEST), share, *(_KNOWN.get(name) or next(more, _MORE[-1])))
        for name, share in shares.parts
    ]
    return [*parts, ("other", shares.other, *_OTHER)] if shares.other >= 0.005 else parts


def _bar(row: Line, parts: list[Part], columns: int) -> Line:
    """Columns by share: each border is rounded, so that the bar is as long as all of it."""
    start = total = 0.0
    for _, share, pattern, role in parts:
        total += share
        end = round(total * columns)
        row.add(pattern * (end - round(start)), role)
        start = end
    return row


def _legend(parts: list[Part], width: int, bar: int) -> Line:
    """Pattern, name and share of each; where not all fit, those of the largest shares.

    The patterns take the room that is left, by share, at most ``bar`` columns together.
    """
    figures = [f"{100 * share:.0f} %" for _, share, _, _ in parts]
    keep = sorted(range(len(parts)), key=lambda at: -parts[at][1])
    while keep and _taken(parts, figures, keep) > width + 2:
        keep.pop()
    room = min(bar, width + 2 - _taken(parts, figures, keep))
    row = Line(width)
    for at in sorted(keep):
        name, share, pattern, role = parts[at]
        row.add("  " if row.used else "").add(pattern * (1 + int(share * room)), role)
        row.add(f" {name} ", "muted").add(figures[at], "strong")
    return row


def _taken(parts: list[Part], figures: list[str], keep: list[int]) -> int:
    """Columns of these with one of pattern each, and a gap behind each."""
    return sum(5 + cell_len(parts[at][0] + figures[at]) for at in keep)
