"""The counters of ncu as rows of text: executed FLOP, DRAM bytes, and notes."""

from __future__ import annotations

from gpuwatch.analysis.hardware.profile import Counters, tool_name
from gpuwatch.core.text import clean
from gpuwatch.core.units import si
from gpuwatch.tui.widgets.cells import wrap
from gpuwatch.tui.widgets.page import Row

_MAX_ROWS = 6
"""Most rows of one note; foreign files may contain long ones."""


def counter_rows(counters: Counters, width: int) -> list[Row]:
    """The totals and notes, or the reason why there are no counters."""
    if counters.reason:
        return wrapped(f"no hardware counters: {counters.reason}", width, mark="!")
    flop, read, written = counters.totals
    title = clean(f" counted by {tool_name(counters)}, {counters.scope}")
    rows: list[Row] = [((title, "strong"),)]
    if (flop, read, written) != (None, None, None):
        rows += [
            ((f"   {name:<20}", "text"), (value, "strong"))
            for name, value in (
                ("executed FLOP", si(flop, "FLOP")),
                ("DRAM bytes read", si(read, "B")),
                ("DRAM bytes written", si(written, "B")),
            )
        ]
    for note in counters.notes:
        rows += wrapped(note, width)
    return rows


def wrapped(text: str, width: int, mark: str = " ", role: str = "muted") -> list[Row]:
    """Text from a session in several rows, the first with a mark."""
    return [
        ((f" {mark if n == 0 else ' '} ", "warn"), (line, role))
        for n, line in enumerate(wrap(clean(text), width - 4, _MAX_ROWS))
    ]
