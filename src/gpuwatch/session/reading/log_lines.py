"""A line of the log, read by pages: hundreds of thousands are never in memory at once."""

from __future__ import annotations

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.session.rows import LogRow

LONGEST = 64 * 1024
"""Characters read of a line; a file from elsewhere may hold longer ones."""
END = 2**62
"""A line number after every line."""


@dataclass(frozen=True)
class LogLine(LogRow):
    length: int
    """Characters of the full line; more than in ``text`` if that was cut."""
