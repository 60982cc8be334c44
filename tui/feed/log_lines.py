"""Lines of a log as a terminal would keep them: of a progress bar the newest one alone."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeVar

from gpuwatch.session.reading.log_lines import LogLine
from gpuwatch.session.rows import LogRow

_PROGRESS_BAR = re.compile(r"\d{1,3}%\|.*\| |[━╸█]{3}")
"""Bars of tqdm, and those of lines or blocks."""

Line = TypeVar("Line", LogRow, LogLine)


def bar_of(stream: str, text: str) -> str | None:
    """What stands before a progress bar, which goes to stderr; ``None``: the line is none."""
    found = _PROGRESS_BAR.search(text) if stream == "stderr" else None
    return None if found is None else text[: found.start()].strip()


def fold(lines: dict[int | str, Line], new: Iterable[Line]) -> None:
    """Add ``new`` lines at the end; one of a progress bar replaces the one before it."""
    for line in new:
        bar = bar_of(line.stream, line.text)
        key: int | str = line.n if bar is None else bar
        lines.pop(key, None)
        lines[key] = line
