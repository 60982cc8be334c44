"""The line of keys at the foot of a screen."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.tui.canvas import Line


def keys_row(keys: Sequence[tuple[str, str]], width: int) -> Line:
    """Keys with what they do; those that do not fit are left out, ``?`` names all of them."""
    row = Line(width).add(" ")
    for key, what in keys:
        if len(key) + len(what) + 3 > row.left:
            break
        row.add(key, "key").add(f" {what}  ", "muted")
    return row
