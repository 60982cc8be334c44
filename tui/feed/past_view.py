"""Keeps a collector for an earlier moment of a session, for the next request."""

from __future__ import annotations

from gpuwatch.core.units import NS
from gpuwatch.session.reading.reader_at import PastReader
from gpuwatch.tui.feed.collector import Collector
from gpuwatch.tui.feed.samples import RECENT_NS

_ADVANCE_NS = 30 * NS
"""Longest step forward that reads on; for a longer one a new collector is faster."""
_MIN_STEPS_NS = 60 * NS
"""Least time before the moment for which step lines are read one by one."""


class PastView:
    """Gives a collector for any moment; used in the feed's thread."""

    def __init__(self, current: Collector) -> None:
        self._present = current
        self._past: tuple[PastReader, Collector] | None = None
        self._back_ns = 0
        """``back_ns`` of the kept collector."""

    def at(self, t: int | None, seconds: int | None = None) -> Collector:
        """The collector for session time ``t`` in nanoseconds (``None``: now) and a history of
        ``seconds``."""
        if t is None:
            self._past = None
            return self._present
        t = max(0, min(t, self._present.end))
        back_ns = max(_MIN_STEPS_NS, self._steps_ns(seconds))
        if (
            self._past is None
            or back_ns > self._back_ns
            or not 0 <= t - self._past[0].t_ns <= _ADVANCE_NS
        ):
            self._past = None
            reader = PastReader(self._present.reader, t)
            collector = Collector(reader, current=self._present, back_ns=back_ns)
            collector.update()
            self._past, self._back_ns = (reader, collector), back_ns
        elif t > self._past[0].t_ns:
            self._past[0].advance(t)
            self._past[1].update()
        return self._past[1]

    def _steps_ns(self, seconds: int | None) -> int:
        """How far back the history needs single step lines, in nanoseconds."""
        if seconds is None:
            return self._present.end if self._present.end <= RECENT_NS else 0
        return round(seconds * 1.2 * NS)
