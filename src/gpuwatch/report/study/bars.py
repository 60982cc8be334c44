"""Bars of text on a common axis from zero."""

from __future__ import annotations

from gpuwatch.core.text import clean
from gpuwatch.report.study.hero import Bars

_LONGEST = 24
"""Most characters of a name."""


def rows(bars: Bars, width: int) -> list[str]:
    """One row per bar: its name, ``#`` for its length, its value; at most ``width`` characters."""
    names = [clean(bar.name, _LONGEST) for bar in bars.bars]
    name = max(map(len, names))
    text = max(len(bar.text) for bar in bars.bars)
    most = max(bar.value for bar in bars.bars)
    room = max(1, width - name - text - 4)
    return [
        f"{label:{name}}  {'#' * round(room * bar.value / most) if most > 0 else '':{room}}  "
        f"{bar.text:>{text}}".rstrip()
        for label, bar in zip(names, bars.bars, strict=True)
    ]
