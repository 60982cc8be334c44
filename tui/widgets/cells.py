"""Text in a given number of terminal cells."""

from __future__ import annotations

from rich.cells import cell_len, chop_cells, set_cell_size


def fit(text: str, width: int) -> str:
    """``text`` cut to ``width`` cells, with an ellipsis if it is too long."""
    if width <= 0:
        return ""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1).rstrip() + "…"


def pad(text: str, width: int, align: str = "<") -> str:
    """``text`` in exactly ``width`` cells; ``align`` is ``<`` or ``>``."""
    text = fit(text, width)
    space = " " * (width - cell_len(text))
    return space + text if align == ">" else text + space


def wrap(text: str, width: int, lines: int) -> list[str]:
    """``text`` in at most ``lines`` lines of ``width`` cells, broken at spaces if possible."""
    rows: list[str] = []
    words = text.split()
    current = ""
    for word in words:
        joined = f"{current} {word}" if current else word
        if cell_len(joined) <= width:
            current = joined
            continue
        if current:
            rows.append(current)
        *full, current = chop_cells(word, max(1, width)) or [""]
        rows.extend(full)
    if current:
        rows.append(current)
    if len(rows) > lines:
        rest = " ".join(rows[lines - 1 :])
        rows = [*rows[: lines - 1], fit(rest, width)] if lines else []
    return rows
