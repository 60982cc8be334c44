"""The phases of a step as a stacked bar with names and shares."""

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
"""Pattern and colour role of the common phases."""
_MORE_PATTERNS = (("╲", "good"), ("═", "key"), ("◇", "text"), ("•", "muted"))
"""The same for other phases, in turn."""
_OTHER = ("·", "faint")
_LONGEST = 16
"""Most columns of a phase's name."""

Part = tuple[str, float, str, str]
"""Name, share, pattern, role."""


def phase_rows(shares: StepShares, width: int, max_rows: int) -> list[Line]:
    """The bar and the names below it; if ``max_rows`` is 1, each name follows its part of the bar.

    Each phase keeps its pattern; ``other`` is the time outside all phases.
    """
    parts = _parts(shares)
    if max_rows > 1:
        bar = _bar(Line(width).add(" "), parts, width - 2)
        names = Line(width).add(" ").join(_legend(parts, width - 1, 0))
        hook = "" if shares.hook is None else f", hook {100 * shares.hook:.1f} % of the time"
        note = f"of {milliseconds(shares.seconds)}, mean of {shares.steps:,} steps{hook} "
        return [bar, names.end(note, "muted") if names.left > len(note) + 2 else names]
    return [Line(width).add(" ").join(_legend(parts, width - 2, width))]


def _parts(shares: StepShares) -> list[Part]:
    more = iter(_MORE_PATTERNS)
    parts = [
        (fit(clean(name), _LONGEST), share, *(_KNOWN.get(name) or next(more, _MORE_PATTERNS[-1])))
        for name, share in shares.parts
    ]
    return [*parts, ("other", shares.other, *_OTHER)] if shares.other >= 0.005 else parts


def _bar(row: Line, parts: list[Part], columns: int) -> Line:
    """The stacked bar; borders are rounded, so that the columns of all parts add up."""
    start = total = 0.0
    for _, share, pattern, role in parts:
        total += share
        end = round(total * columns)
        row.add(pattern * (end - round(start)), role)
        start = end
    return row


def _legend(parts: list[Part], width: int, bar: int) -> Line:
    """Pattern, name and share of each phase, or of the largest ones that fit.

    The patterns fill the free columns by share, at most ``bar`` columns in total.
    """
    figures = [f"{100 * share:.0f} %" for _, share, _, _ in parts]
    keep = sorted(range(len(parts)), key=lambda at: -parts[at][1])
    while keep and _taken(parts, figures, keep) > width + 2:
        keep.pop()
    free = min(bar, width + 2 - _taken(parts, figures, keep))
    row = Line(width)
    for at in sorted(keep):
        name, share, pattern, role = parts[at]
        row.add("  " if row.used else "").add(pattern * (1 + int(share * free)), role)
        row.add(f" {name} ", "muted").add(figures[at], "strong")
    return row


def _taken(parts: list[Part], figures: list[str], keep: list[int]) -> int:
    """Columns of the phases ``keep``, with one column of pattern and a gap each."""
    return sum(5 + cell_len(parts[at][0] + figures[at]) for at in keep)
