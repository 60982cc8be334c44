"""Text from outside made safe to draw: no control characters, no surprises in width."""

from __future__ import annotations

import re
import unicodedata

from rich.cells import cell_len, chop_cells, set_cell_size

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)"  # OSC, DCS, SOS, PM, APC
    r"|\x1b."
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
_MOST = 4096
"""No line on a screen needs more characters."""


def clean(text: object) -> str:
    """One line without escape sequences, control, format or direction-changing characters.

    A carriage return rewrites a line: what stands behind the last one is what a terminal shows.
    """
    line = str(text)[-_MOST:].rstrip("\r\n")
    line = _ESCAPES.sub("", line.rsplit("\r", 1)[-1]).expandtabs(4)
    if line.isascii() and line.isprintable():
        return line
    return "".join(_safe(character) for character in line)


def _safe(character: str) -> str:
    if character in "\n\v\f\x85\u2028\u2029":
        return " "
    category = unicodedata.category(character)
    if category in ("Cc", "Cf", "Cs", "Co", "Cn") or category in ("Mn", "Me"):
        return ""
    return " " if category == "Zs" else character


def fit(text: str, width: int) -> str:
    """``text`` cut to ``width`` cells, with an ellipsis where something is missing."""
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
    """``text`` in at most ``lines`` lines of ``width`` cells, broken at spaces where possible."""
    found: list[str] = []
    words = text.split()
    current = ""
    for word in words:
        joined = f"{current} {word}" if current else word
        if cell_len(joined) <= width:
            current = joined
            continue
        if current:
            found.append(current)
        *full, current = chop_cells(word, max(1, width)) or [""]
        found.extend(full)
    if current:
        found.append(current)
    if len(found) > lines:
        rest = " ".join(found[lines - 1 :])
        found = [*found[: lines - 1], fit(rest, width)] if lines else []
    return found
