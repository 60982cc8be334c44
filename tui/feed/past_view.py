"""The collector of the moment that is looked at, kept from one look to the next."""

from __future__ import annotations

from gpuwatch.core.units import NS
from gpuwatch.session.reading.reader_at import PastReader
from gpuwatch.tui.feed.collector import Collector
from gpuwatch.tui.feed.series import RECENT_NS

_ON = 30 * NS
"""Going on by at most so much reads on; anything else begins anew, which takes less."""


_LEAST = 60 * NS
"""How far back step lines are looked at, whatever is drawn: for numbers of the last minute."""


class PastView:
    """Lives in the feed's thread."""

    def __init__(self, now: Collector) -> None:
        self._now = now
        self._past: tuple[PastReader, Collector] | None = None
        self._back = 0
        """Nanoseconds of step lines that it has one by one."""

    def at(self, t: int | None, seconds: int | None = None) -> Collector:
        """What shows the session time ``t`` in nanoseconds (``None``: now) with a history of
        ``seconds``."""
        if t is None:
            self._past = None
            return self._now
        t = max(0, min(t, self._now.end))
        back = max(_LEAST, self._drawn(seconds))
        if self._past is None or back > self._back or not 0 <= t - self._past[0].t_ns <= _ON:
            self._past = None
            reader = PastReader(self._now.reader, t)
            collector = Collector(reader, beside=self._now, back_ns=back)
            collector.update()
            self._past, self._back = (reader, collector), back
        elif t > self._past[0].t_ns:
            self._past[0].advance(t)
            self._past[1].update()
        return self._past[1]

    def _drawn(self, seconds: int | None) -> int:
        """Nanoseconds of a history that is drawn line by line."""
        if seconds is None:
            return self._now.end if self._now.end <= RECENT_NS else 0
        return round(seconds * 1.2 * NS)
