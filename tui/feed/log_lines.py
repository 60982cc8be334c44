"""Lines of a log as a terminal would keep them: of a progress bar the newest one alone; and the
counts up to a total that a program prints."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.units import NS
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


_COUNT = re.compile(
    r"(?:\b(?:step|iter|iteration|it|batch|epoch)s?\W{1,9}|\[ *)(\d{1,9})/ *(\d{2,9})(?![\w./-])",
    re.IGNORECASE,
)
_BAR_COUNT = re.compile(r"\| *(\d{1,9})/(\d{2,9}) \[")
_LEAST_TOTAL = 20
"""Below it, it matters whether the one that is counted is over or begins."""
_MOST_COUNTS = 20


@dataclass(frozen=True)
class Count:
    """A count up to ``total`` that a program prints, ``step 380/900``; times are of the session."""

    total: int
    began: int
    first: int
    """Where it began, and when."""
    t: int
    done: int
    """The newest."""
    rises: int = 0

    def seconds_left(self, t: int) -> float | None:
        """Until the total, at the mean rate so far; ``None``: unknown, reached or given up."""
        if self.rises < 2 or self.done >= self.total:
            return None
        pace = (self.t - self.began) / (self.done - self.first)
        if t - self.t > max(5 * NS, 3 * (self.t - self.began) / self.rises):
            return None
        return max(0.0, (self.total - self.done) * pace - (t - self.t)) / NS


def count_up(counts: dict[int, Count], line: LogRow) -> None:
    """Take the counts of a line into those by total; one that falls begins again."""
    for found in (*_BAR_COUNT.finditer(line.text), *_COUNT.finditer(line.text)):
        done, total = int(found[1]), int(found[2])
        known = counts.get(total)
        if not _LEAST_TOTAL <= total >= done:
            continue
        if known is None or done < known.done:
            counts[total] = Count(total, line.t, done, line.t, done)
            if len(counts) > _MOST_COUNTS:
                del counts[next(iter(counts))]
        elif known.done < done:
            counts[total] = replace(known, t=line.t, done=done, rises=known.rises + 1)
