"""The line of keys at the foot of a screen."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.tui.canvas import Line


def keys_row(keys: Sequence[tuple[str, str]], width: int) -> Line:
    """Keys with what they do; those that do not fit are left out, but ``?`` stays: it names all."""
    row = Line(width).add(" ")
    to_come = next((_size(key, what) for key, what in keys if key == "?"), 0)
    for key, what in keys:
        if key == "?":
            to_come = 0
        if _size(key, what) + to_come <= row.left:
            row.add(key, "key").add(f" {what}  ", "muted")
    return row


def _size(key: str, what: str) -> int:
    return len(key) + len(what) + 3
