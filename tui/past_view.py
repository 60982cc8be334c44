"""The collector of the moment that is looked at, kept from one look to the next."""

from __future__ import annotations

from gpuwatch.session.past import PastReader
from gpuwatch.tui.collect import Collector
from gpuwatch.tui.series import NS

_ON = 30 * NS
"""Going on by at most so much reads on; anything else begins anew, which takes less."""


class PastView:
    """Lives in the feed's thread."""

    def __init__(self, now: Collector) -> None:
        self._now = now
        self._past: tuple[PastReader, Collector] | None = None

    def at(self, t: int | None) -> Collector:
        """What shows the session time ``t`` in nanoseconds; ``None``: now."""
        if t is None:
            self._past = None
            return self._now
        t = max(0, min(t, self._now.end))
        if self._past is None or not 0 <= t - self._past[0].t_ns <= _ON:
            reader = PastReader(self._now.reader, t)
            self._past = reader, Collector(reader, beside=self._now)
            self._past[1].update()
        elif t > self._past[0].t_ns:
            self._past[0].advance(t)
            self._past[1].update()
        return self._past[1]
