"""What the step lines of a session say: progress, rates, medians."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from math import isfinite
from statistics import median
from typing import Any

from gpuwatch.analysis.samples.rates import bytes_of, flop_of, samples_of
from gpuwatch.core.metrics import Method
from gpuwatch.core.models import mapping
from gpuwatch.core.units import NS
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.rows import StepRow
from gpuwatch.tui.feed.phases import PhaseTimes
from gpuwatch.tui.feed.series import RECENT_NS, Series, StepHistory, recent_steps
from gpuwatch.tui.feed.snapshot import Reading, Work

_MOST_STEPS = 1000
"""Steps that the shown median is of: the newest ones."""
_LEAST_LOOK, _FIRST_LOOK = 200, 4000
"""Step lines read at once when a session is opened; older ones follow in pieces."""
_PIECE, _SPARSE_PIECE = 20_000, 1000
"""Older step lines read at once: summed by ten seconds, or each where they come slowly."""
_ETA_NS = 30 * NS
_STALE_NS = 5 * NS
"""Without a step line for so long, and three times the usual pause, the rate of now is unknown."""


class Steps:
    """Step lines read so far. Lives in the feed's thread."""

    def __init__(
        self, reader: SessionReader, now: Steps | None = None, back_ns: int = RECENT_NS
    ) -> None:
        """``now``: of an earlier moment the steps of the same session as they are now.

        ``back_ns``: how far back lines are looked at one by one.
        """
        self._reader = reader
        self._now = now
        self._last = _first_look(reader, back_ns)
        self._first_recent = self._last
        self._back = -1
        """Everything up to here was read by :meth:`backfill`."""
        self._back_row: StepRow | None = None
        self.recent: deque[StepRow] = recent_steps()
        self._dropped = False
        self._durations: deque[float] = deque(maxlen=_MOST_STEPS)
        self._loss: float | None = None
        self._data: deque[float] = deque(maxlen=_MOST_STEPS)
        self.timed_start: int | None = None
        """Session time of the first timed step's start, as far back as was read."""
        self._per_step: Mapping[str, Any] = {}
        self.flop = StepHistory(flop_of({}))
        self.bytes = StepHistory(bytes_of({}))
        self.samples = StepHistory(samples_of)
        self.losses, self.times = Series(), Series()
        """The loss, and the mean seconds of a step, by the time of the step line."""
        self.phases = PhaseTimes()

    @property
    def any(self) -> bool:
        return bool(self.recent)

    @property
    def newest(self) -> int:
        """Session time of the newest step line, 0 when there is none."""
        return self.recent[-1].t if self.recent else 0

    @property
    def complete(self) -> bool:
        """``recent`` holds every step line of the session."""
        return self._first_recent < 0 and not self._dropped

    @property
    def timed(self) -> tuple[int, int]:
        """The timed steps so far, in nanoseconds since the session's start; empty: none."""
        start = self.timed_start
        return (self.newest, self.newest) if start is None else (start, self.newest)

    def silence(self, t: int) -> str | None:
        """Why rates of now are not known at ``t``, where no step line came for long."""
        if not self.recent:
            return None
        pause = self.recent[-1].t - self.recent[-2].t if len(self.recent) > 1 else 0
        passed = t - self.newest
        if passed <= max(_STALE_NS, 3 * pause):
            return None
        return f"no step for {passed / NS:.0f} s"

    @property
    def newest_loss(self) -> float | None:
        return self._loss

    @property
    def newest_seconds(self) -> float | None:
        """Of the newest timed step that told its duration."""
        return self._durations[-1] if self._durations else None

    @property
    def pause(self) -> float:
        """Seconds between two step lines, of the newest ones."""
        if len(self.recent) < 2:
            return 1.0
        few = min(len(self.recent) - 1, 16)
        return max(0.0, (self.recent[-1].t - self.recent[-1 - few].t) / NS / few)

    def update(self, meta: Mapping[str, Any]) -> None:
        self._count(meta.get("count"))
        while rows := self._reader.steps(self._last):
            before = self.recent[-1] if self.recent else None
            self._fold(before, rows)
            self._last = rows[-1].n

    def _count(self, count: object) -> None:
        """Work per step became known: fold what was read before once more."""
        per_step = mapping(count)
        if per_step == self._per_step:
            return
        self._per_step = per_step
        self.flop = StepHistory(flop_of(per_step))
        self.bytes = StepHistory(bytes_of(per_step))
        for history in (self.flop, self.bytes):
            history.add(None, self.recent)

    def _fold(self, before: StepRow | None, rows: list[StepRow]) -> None:
        for history in self._histories:
            history.add(before, rows)
        for t, loss, seconds in map(_figures, rows):
            self.losses.add(t, loss)
            self.times.add(t, seconds)
        self.losses.trim()
        self.times.trim()
        self._dropped |= len(self.recent) + len(rows) > (self.recent.maxlen or 0)
        self.recent.extend(rows)
        for row in rows:
            if row.loss:
                self._loss = row.loss[-1]
            if row.seconds and not row.warmup:
                self._durations.extend(row.seconds)
                if "data" in row.phases:
                    self._data.extend((row.phases["data"] / row.count,) * len(row.seconds))
                self.phases.add(row)
        if self.timed_start is None:
            self._find_start()

    def _find_start(self) -> None:
        n = self._reader.first_timed_step()
        for row in () if n is None else self._reader.steps(n - 1, 1):
            self.timed_start = max(0, row.t - int(sum(row.seconds or ()) * NS))

    def per_second(self) -> float | None:
        """Timed steps per second, of the newest ones."""
        seconds = sum(self._durations)
        return len(self._durations) / seconds if seconds > 0 else None

    def data_share(self) -> float | None:
        """Share of the newest timed steps' time in the data phase."""
        seconds = sum(self._durations)
        if not self._data or seconds <= 0:
            return None
        mean = sum(self._data) / len(self._data)
        return min(1.0, max(0.0, mean * len(self._durations) / seconds))

    @property
    def whole(self) -> bool:
        """Every step line is in the histories."""
        return self._back >= self._first_recent

    def backfill(self) -> bool:
        """Read one piece of the step lines before the first look; returns whether more are left."""
        if self.whole:
            return False
        if self._now is not None and self._now.whole and self.recent:
            self._take(self._now, self.recent[0].t)
            self._back = self._first_recent
            return False
        upto = min(self._back + _PIECE, self._first_recent)
        rows = self._reader.step_groups(self._back, upto)
        if not rows:
            upto = min(self._reader.steps(self._back, 1)[0].n - 1, self._first_recent)
        passed = rows[-1].t - (self._back_row.t if self._back_row else 0) if rows else 0
        if passed > (upto - self._back) * NS:
            upto = min(self._back + _SPARSE_PIECE, self._first_recent)
            rows = [row for row in self._reader.steps(self._back, _SPARSE_PIECE) if row.n <= upto]
            for history in self._histories:
                history.add(self._back_row, rows)
        else:
            for history in self._histories:
                history.add_groups(rows)
        for t, loss, seconds in map(_figures, rows):
            if loss is not None:
                self.losses.add_past(t, loss)
            if seconds is not None:
                self.times.add_past(t, seconds)
        self._back, self._back_row = upto, rows[-1] if rows else self._back_row
        return True

    def _take(self, now: Steps, before: int) -> None:
        self.flop.take(now.flop, before)
        self.bytes.take(now.bytes, before)
        self.samples.take(now.samples, before)
        self.losses.take(now.losses, before)
        self.times.take(now.times, before)

    @property
    def _histories(self) -> tuple[StepHistory, ...]:
        return self.flop, self.bytes, self.samples

    def work(
        self, name: str, environment: str, meta: Mapping[str, Any], live: bool, t: int
    ) -> Work:
        """``t``: the session time of now; where no step came for long, no rate is told."""
        run = meta.get("run")
        run = run if isinstance(run, dict) else {}
        last = self.recent[-1] if self.recent else None
        total, warmup_steps = _int(run.get("total_steps")), _int(run.get("warmup_steps")) or 0
        step = None
        if last is not None:
            step = last.step
            if total is not None and not last.warmup and step > total:
                step -= warmup_steps
            if last.warmup:
                total = warmup_steps or None
        silence = self.silence(t) if live else None
        eta = None
        if live and last is not None and not last.warmup and silence is None:
            eta = self._eta(step, total)
        return Work(
            name=name,
            environment=environment,
            reports=last is not None,
            warmup=bool(last and last.warmup),
            step=step,
            total=total,
            eta_seconds=eta,
            throughput=self._throughput(live)
            if silence is None
            else Reading(None, Method.COUNTED, silence, "step lines"),
            step_seconds=median(self._durations) if self._durations else None,
            step_count=len(self._durations),
            loss=self._loss,
            model=_short(run.get("model")),
            batch_size=_int(run.get("batch_size")),
            dtype=_short(run.get("dtype")),
        )

    def _throughput(self, live: bool) -> Reading:
        """Of the last seconds; of a run that is over, of its timed steps."""
        if not self.recent:
            return Reading(None, Method.UNAVAILABLE, "no step line yet")
        timed = [row for row in self.recent if not row.warmup and row.samples and row.seconds]
        if not live and timed:
            seconds = sum(sum(row.seconds or ()) for row in timed)
            value = sum(row.samples or 0 for row in timed) / seconds if seconds else None
        else:
            value = StepHistory(samples_of).last(self.recent)
        if value is None:
            return Reading(None, Method.UNAVAILABLE, "the step lines give no samples")
        return Reading(value, Method.COUNTED, None, "step lines")

    def _eta(self, step: int | None, total: int | None) -> float | None:
        """Seconds to the last step at the pace of the last half minute."""
        if step is None or total is None or step >= total:
            return None
        newest = self.recent[-1]
        first = newest
        for row in reversed(self.recent):
            if row.warmup or newest.t - row.t > _ETA_NS:
                break
            first = row
        done, ns = newest.step - first.step, newest.t - first.t
        if done <= 0 or ns <= 0:
            return None
        return (total - step) * (ns / NS / done)


def _first_look(reader: SessionReader, back_ns: int) -> int:
    """The line behind which lines are read at once."""
    last = reader.last_step()
    newest = reader.steps(last - 1, 1)
    long_ago = reader.row_at("step", newest[0].t - back_ns - 10 * NS) if newest else -1
    return max(-1, last - _FIRST_LOOK, min(long_ago, last - _LEAST_LOOK))


def _figures(row: StepRow) -> tuple[int, float | None, float | None]:
    """When a line was printed, its newest loss, and the mean duration of its timed steps."""
    loss = row.loss[-1] if row.loss and isfinite(row.loss[-1]) else None
    seconds = sum(row.seconds) / len(row.seconds) if row.seconds and not row.warmup else None
    return row.t, loss, seconds if seconds is None or isfinite(seconds) else None


def _int(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _short(value: object) -> str | None:
    return str(value)[:200] if isinstance(value, str) and value else None
