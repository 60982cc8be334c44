"""Finds the changed part of a row."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from gpuwatch.tui.widgets.line import Span


def last_change(before: Sequence[Span], after: Sequence[Span], width: int) -> int:
    """The last of ``width`` columns in which two rows differ, or a later one.

    Rows of equal length may end with the same cells; for others it is the last column.
    """
    end = length = sum(cell_len(text) for text, _ in after)
    if length != sum(cell_len(text) for text, _ in before):
        return width - 1
    for (old, role), (new, as_role) in zip(reversed(before), reversed(after), strict=False):
        if role != as_role:
            break
        if old != new:
            common = next(
                (n for n in range(min(len(old), len(new))) if old[-1 - n] != new[-1 - n]),
                min(len(old), len(new)),
            )
            end -= cell_len(new[len(new) - common :]) if common else 0
            break
        end -= cell_len(new)
    return min(width, end) - 1
