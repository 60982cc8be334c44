"""What the step lines of a session say: progress, rates, medians."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from math import isfinite
from statistics import median
from typing import Any

from gpuwatch.analysis.rates import bytes_of, flop_of, samples_of
from gpuwatch.metrics import Method
from gpuwatch.models import mapping
from gpuwatch.session.reader import CHUNK, SessionReader
from gpuwatch.session.rows import StepRow
from gpuwatch.tui.phases import PhaseTimes
from gpuwatch.tui.series import NS, Series, StepHistory, recent_steps
from gpuwatch.tui.snapshot import Reading, Work

_MOST_STEPS = 1000
"""Steps that the shown median is of: the newest ones."""
_FIRST_LOOK = 4 * CHUNK
"""Step lines read at once when a session is opened; older ones follow in pieces."""
_ETA_NS = 30 * NS


class Steps:
    """Step lines read so far. Lives in the feed's thread."""

    def __init__(self, reader: SessionReader) -> None:
        self._reader = reader
        self._last = max(-1, reader.last_step() - _FIRST_LOOK)
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
        for history in (self.flop, self.bytes, self.samples):
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
        self._note_start(rows)

    def _note_start(self, rows: list[StepRow]) -> None:
        first = next((row for row in rows if not row.warmup), None)
        if first is not None:
            start = max(0, first.t - int(sum(first.seconds or ()) * NS))
            known = self.timed_start
            self.timed_start = start if known is None else min(known, start)

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

    def backfill(self) -> bool:
        """Read one chunk of the step lines before the first look; returns whether more are left."""
        if self._back >= self._first_recent:
            return False
        limit = min(CHUNK, self._first_recent - self._back)
        rows = [row for row in self._reader.steps(self._back, limit) if row.n <= self._first_recent]
        if not rows:
            self._back = self._first_recent
            return False
        for history in (self.flop, self.bytes, self.samples):
            history.add(self._back_row, rows)
        for t, loss, seconds in map(_figures, rows):
            if loss is not None:
                self.losses.add_past(t, loss)
            if seconds is not None:
                self.times.add_past(t, seconds)
        self._note_start(rows)
        self._back, self._back_row = rows[-1].n, rows[-1]
        return True

    def work(self, name: str, environment: str, meta: Mapping[str, Any], live: bool) -> Work:
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
        return Work(
            name=name,
            environment=environment,
            reports=last is not None,
            warmup=bool(last and last.warmup),
            step=step,
            total=total,
            eta_seconds=self._eta(step, total) if live and last and not last.warmup else None,
            throughput=self._throughput(live),
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


def _figures(row: StepRow) -> tuple[int, float | None, float | None]:
    """When a line was printed, its newest loss, and the mean duration of its timed steps."""
    loss = row.loss[-1] if row.loss and isfinite(row.loss[-1]) else None
    seconds = sum(row.seconds) / len(row.seconds) if row.seconds and not row.warmup else None
    return row.t, loss, seconds if seconds is None or isfinite(seconds) else None


def _int(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _short(value: object) -> str | None:
    return str(value)[:200] if isinstance(value, str) and value else None
