"""The period of a session that is shown, and its axis."""

from __future__ import annotations

from functools import lru_cache

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.units import NS, duration

_DURATIONS = (
    *(1, 2, 5, 10, 20, 30),
    *(60, 120, 300, 600, 1200, 1800),
    *(3600, 7200, 18000, 36000, 43200),
    *(86400, 2 * 86400, 5 * 86400, 10 * 86400, 20 * 86400, 50 * 86400, 100 * 86400),
)
"""Round lengths of a time axis in seconds."""


@dataclass(frozen=True)
class Window:
    """A period of session time in nanoseconds, divided into equal columns."""

    start: int
    end: int
    columns: int

    @property
    def column_ns(self) -> float:
        return max(1.0, (self.end - self.start) / max(1, self.columns))

    def edges(self) -> tuple[int, ...]:
        """The ``columns + 1`` borders in nanoseconds."""
        return _edges(self)


@lru_cache(maxsize=16)
def _edges(view: Window) -> tuple[int, ...]:
    """Cached, because all histories of a snapshot share the window."""
    step = view.column_ns
    return tuple(view.start + round(i * step) for i in range(view.columns + 1))


def window(t: int, seconds: int | None, columns: int, ended: bool = False) -> Window:
    """The window at session time ``t`` in nanoseconds; ``seconds``: its length, ``None``: all.

    A live window moves in steps of a tenth of its length, so that usually only the newest column
    of a history changes.
    """
    if seconds is None or t <= seconds * NS:
        if ended:
            return Window(0, max(t, NS), columns)
        length = seconds if seconds is not None else readable_duration(t / NS)
        return Window(0, length * NS, columns)
    if ended:
        return Window(t - seconds * NS, t, columns)
    jump = seconds * NS // 10
    end = -(-t // jump) * jump
    return Window(end - seconds * NS, end, columns)


def readable_duration(seconds: float) -> int:
    """The next round length of a time axis in seconds."""
    for length in _DURATIONS[3:]:
        if seconds <= length:
            return length
    return int(seconds) + 1


def axis(view: Window, gap: int = 11) -> tuple[str, str]:
    """The time axis: a line with ticks, and their labels, lengths of session time."""
    line, labels = ["─"] * view.columns, [" "] * view.columns
    step = next((s for s in _DURATIONS if s * NS / view.column_ns >= gap), _DURATIONS[-1])
    at = -(-view.start // (step * NS)) * step
    free = 0
    while at * NS <= view.end:
        column = int((at * NS - view.start) / view.column_ns)
        label = duration(at)
        if column < view.columns:
            line[column] = "┬"
            if column >= free and column + len(label) <= view.columns:
                labels[column : column + len(label)] = label
                free = column + len(label) + 1
        at += step
    return "".join(line), "".join(labels)
