"""The line of keys at the foot of a screen."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.tui.canvas import Line


def keys_row(keys: Sequence[tuple[str, str]], width: int) -> Line:
    """Keys with what they do; those that do not fit are left out, but for the last.

    That is ``?`` where it can be pressed, which names all.
    """
    row = Line(width).add(" ")
    last = _size(*keys[-1]) if keys else 0
    for index, (key, what) in enumerate(keys):
        kept = 0 if index == len(keys) - 1 else last
        if _size(key, what) + kept > row.left:
            continue
        row.add(key, "key").add(f" {what}  ", "muted")
    return row


def _size(key: str, what: str) -> int:
    return len(key) + len(what) + 3
