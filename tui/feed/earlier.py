"""The newest earlier run of the same command, to see beside the steps of a run."""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON, mapping, number
from gpuwatch.core.units import NS, milliseconds, percent
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.rows import StepRow
from gpuwatch.session.schema import SUFFIX
from gpuwatch.session.study.estimate import cell_of, changed, timing
from gpuwatch.tui.feed.window import Window

_MOST_FILES, _MOST_LINES = 100, 20_000
"""Newest sessions that are opened to find it, and first step lines that are read of it."""


@dataclass(frozen=True)
class Earlier:
    """A finished run, by its timed step lines in order."""

    began: str
    """When, in local time."""
    rows: Sequence[StepRow]

    def beside(self, recent: Sequence[StepRow], view: Window) -> tuple[float | None, ...]:
        """For each column of ``view`` the mean step time, in seconds, that this run had at the
        step to which the run with the lines ``recent`` had come then."""
        times, ends = [row.t for row in recent], [row.step for row in self.rows]
        values: list[float | None] = []
        for start, end in zip(view.edges(), view.edges()[1:], strict=False):
            at = bisect_right(times, end) - 1
            place = bisect_left(ends, recent[at].step) if at >= 0 and start < times[-1] else -1
            known = 0 <= place < len(ends)
            values.append(_mean([self.rows[place]]) if known else None)
        return tuple(values)

    def compared(self, timed: Sequence[StepRow], *, live: bool) -> str:
        """How the newest timed lines compare with the same steps of this run, without a verdict."""
        whole = [row for row in timed if row.seconds]
        first, last = (whole[0].step - whole[0].count, whole[-1].step) if whole else (0, 0)
        same = [row for row in self.rows if first <= row.step - row.count and row.step <= last]
        now, then = _mean(whole), _mean(same)
        if now is None or then is None:
            return f"the run of {self.began} has no times of these steps"
        word = "slower" if now > then else "faster"
        far = " so far" if live else ""
        return (
            f"{percent(abs(now / then - 1))} {word}{far} than on {self.began}: "
            f"{milliseconds(now)} a step, then {milliseconds(then)}, "
            f"steps {first + 1:,} to {last:,}"
        )


def earlier_of(path: Path, meta: Mapping[str, JSON]) -> Earlier | None:
    """The newest run of the same command and environment in the folder of the session's study that
    began before it and is finished; ``None``: there is none."""
    began = (number(mapping(meta.get("clock")).get("unix_ns")) or 0.0) / NS
    files = sorted(path.parent.parent.glob(f"*/*{SUFFIX}"), key=changed, reverse=True)
    known = filter(None, map(timing, files[:_MOST_FILES]))
    same = [each for each in known if each.finished and each.cell == cell_of(meta)]
    newest = max(
        (each for each in same if each.start < began), key=lambda each: each.start, default=None
    )
    if newest is None:
        return None
    with SessionReader(newest.path) as reader:
        rows = [row for row in islice(reader.all_steps(), _MOST_LINES) if not row.warmup]
    when = time.strftime("%d %b %H:%M", time.localtime(newest.start))
    return Earlier(when, [row for row in rows if row.seconds])


def _mean(rows: Sequence[StepRow]) -> float | None:
    seconds = [each for row in rows for each in row.seconds or ()]
    return sum(seconds) / len(seconds) if seconds and sum(seconds) > 0 else None
