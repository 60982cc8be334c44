"""Progress, rates and medians from the step lines of a session."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from math import isfinite
from statistics import median
from typing import Any

from gpuwatch.analysis.samples.rates import StepLine, bytes_of, flop_of, samples_of
from gpuwatch.analysis.samples.step_lines import (
    NO_STEPS_YET,
    UNTIMED,
    arrived,
    ends_told,
    no_steps,
    several_writers,
    throughput,
    times_of,
)
from gpuwatch.analysis.samples.window import first_timed
from gpuwatch.core.metrics import Method
from gpuwatch.core.models import JSON, mapping
from gpuwatch.core.units import NS
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.rows import StepRow, with_phases
from gpuwatch.tui.feed.phases import PhaseTimes
from gpuwatch.tui.feed.series import RECENT_NS, Series, StepHistory, recent_steps
from gpuwatch.tui.feed.snapshot import Reading, Work

_MAX_STEPS = 1000
"""Number of newest steps of the median."""
_MIN_FIRST_ROWS, _MAX_FIRST_ROWS = 200, 4000
"""Least and most step lines read when a session is opened; older ones follow in chunks."""
_CHUNK, _SPARSE_CHUNK = 20_000, 1000
"""Older step lines per chunk: in ten-second sums, or single ones if they are rare."""
_ETA_NS = 30 * NS
"""Time over which the pace for the time left is measured."""
_STALE_NS = 5 * NS
"""Least time without a step line after which the current rate is unknown."""


class Steps:
    """The step lines read so far; used in the feed's thread."""

    def __init__(
        self, reader: SessionReader, current: Steps | None = None, back_ns: int = RECENT_NS
    ) -> None:
        """``current``: for an earlier moment, the steps of the present.

        ``back_ns``: time before the newest step line for which lines are read one by one.
        """
        self._reader = reader
        self._current = current
        self._back_ns = back_ns
        self._evaluated_until: JSON = None
        self._begin()

    def _begin(self) -> None:
        self._last = _first_row(self._reader, self._back_ns)
        self._first_recent = self._last
        self._backfilled = -1
        """Number of the last row that :meth:`backfill` has read."""
        self._backfilled_row: StepRow | None = None
        self.recent: deque[StepRow] = recent_steps()
        self._dropped = False
        self._durations: deque[float] = deque(maxlen=_MAX_STEPS)
        self._loss: float | None = None
        self._data: deque[float] = deque(maxlen=_MAX_STEPS)
        self.timed_start: int | None = None
        """Session time of the first timed step's start; ``None``: none yet."""
        self._writers: str | None = None
        self._untimed = False
        self._per_step: Mapping[str, Any] = {}
        self.flop = StepHistory(flop_of({}))
        self.bytes = StepHistory(bytes_of({}))
        self.samples = StepHistory(samples_of)
        self.losses, self.times = Series(), Series()
        """Loss and mean step duration in seconds, by the time of the step line."""
        self.phases = PhaseTimes()

    @property
    def any(self) -> bool:
        return bool(self.recent)

    @property
    def newest(self) -> int:
        """Session time of the newest step line; 0: there is none."""
        return self.recent[-1].t if self.recent else 0

    @property
    def doubt(self) -> str | None:
        """Why no rate follows from the step lines; ``None``: it does."""
        return self._writers or (UNTIMED if self._untimed else None)

    @property
    def complete(self) -> bool:
        """Whether ``recent`` holds every step line of the session."""
        return self._first_recent < 0 and not self._dropped

    @property
    def timed(self) -> tuple[int, int]:
        """Start and end of the timed steps, in nanoseconds of session time; equal: none."""
        start = self.timed_start
        return (self.newest, self.newest) if start is None else (start, self.newest)

    def silence(self, t: int) -> str | None:
        """Why current rates are unknown at ``t``; ``None``: the newest step line is recent."""
        if not self.recent:
            return None
        pause = self.recent[-1].t - self.recent[-2].t if len(self.recent) > 1 else 0
        elapsed = t - self.newest
        if elapsed <= max(_STALE_NS, 3 * pause):
            return None
        return f"no step for {elapsed / NS:.0f} s"

    @property
    def newest_loss(self) -> float | None:
        return self._loss

    @property
    def newest_seconds(self) -> float | None:
        """Duration of the newest timed step; ``None``: unknown."""
        return self._durations[-1] if self._durations else None

    @property
    def pause(self) -> float:
        """Mean seconds between two step lines, over the newest ones."""
        if len(self.recent) < 2:
            return 1.0
        pauses = min(len(self.recent) - 1, 16)
        return max(0.0, (self.recent[-1].t - self.recent[-1 - pauses].t) / NS / pauses)

    def update(self, meta: Mapping[str, Any]) -> None:
        if meta.get("evaluated_until") != self._evaluated_until:
            self._evaluated_until = meta["evaluated_until"]
            self._begin()  # what was read so far was of an evaluation
        self._doubt(meta, arrived=False)
        self._set_counts(meta.get("count"))
        while rows := self._reader.steps(self._last):
            before = self.recent[-1] if self.recent else None
            self._doubt(meta, arrived=arrived(meta, rows if before else rows[1:]))
            self._add(before, rows)
            self._last = rows[-1].n

    def _doubt(self, meta: Mapping[str, Any], *, arrived: bool) -> None:
        """Forget what was read so far once it turns out to be in doubt."""
        before, self._untimed = self.doubt, self._untimed or arrived
        writers, self._writers = self._writers, several_writers(meta)
        if self.doubt and not before:
            self.flop, self.bytes = StepHistory(_unknown), StepHistory(_unknown)
            self.samples = StepHistory(_unknown)
        if writers or not self._writers:
            return
        self._durations.clear()
        self._data.clear()
        self._loss = None
        self.losses, self.times, self.phases = Series(), Series(), PhaseTimes()

    def _set_counts(self, count: object) -> None:
        """Use new counts of the work per step, also for the lines read before."""
        per_step = mapping(count)
        if per_step == self._per_step or self.doubt:
            return
        self._per_step = per_step
        self.flop = StepHistory(flop_of(per_step))
        self.bytes = StepHistory(bytes_of(per_step))
        for history in (self.flop, self.bytes):
            history.add(None, self.recent)

    def _add(self, before: StepRow | None, rows: list[StepRow]) -> None:
        for history in self._histories:
            history.add(before, rows)
        of_one = [] if self._writers else rows
        for t, loss, seconds in map(_figures, of_one):
            self.losses.add(t, loss)
            self.times.add(t, seconds)
        self.losses.trim()
        self.times.trim()
        self._dropped |= len(self.recent) + len(rows) > (self.recent.maxlen or 0)
        self.recent.extend(rows)
        for row in of_one:
            if row.loss:
                self._loss = row.loss[-1]
            if row.seconds and not row.warmup:
                self._durations.extend(row.seconds)
                sampled = with_phases([row])
                if "data" in row.phases and sampled:
                    self._data.extend((row.phases["data"] / sampled,) * len(row.seconds))
                self.phases.add(row)
        if self.timed_start is None:
            self._find_start()

    def _find_start(self) -> None:
        first = first_timed(self._reader)
        self.timed_start = None if first is None else max(0, first[0])

    def per_second(self) -> float | None:
        """Steps per second of the newest timed steps."""
        seconds = sum(self._durations)
        return len(self._durations) / seconds if seconds > 0 else None

    def data_share(self) -> float | None:
        """Share of the data phase in the time of the newest timed steps, 0 to 1."""
        seconds = sum(self._durations)
        if not self._data or seconds <= 0:
            return None
        mean = sum(self._data) / len(self._data)
        return min(1.0, max(0.0, mean * len(self._durations) / seconds))

    @property
    def filled(self) -> bool:
        """Whether the histories contain every step line."""
        return self._backfilled >= self._first_recent

    def backfill(self) -> bool:
        """Read one chunk of older step lines; returns whether there may be more."""
        if self.filled:
            return False
        if self._current is not None and self._current.filled and self.recent:
            self._use_earlier(self._current, self.recent[0].t)
            self._backfilled = self._first_recent
            return False
        upto = min(self._backfilled + _CHUNK, self._first_recent)
        rows = self._reader.step_groups(self._backfilled, upto)
        if not rows:
            upto = min(self._reader.steps(self._backfilled, 1)[0].n - 1, self._first_recent)
        start = self._backfilled_row.t if self._backfilled_row else 0
        elapsed = rows[-1].t - start if rows else 0
        if elapsed > (upto - self._backfilled) * NS:
            upto = min(self._backfilled + _SPARSE_CHUNK, self._first_recent)
            rows = [
                row for row in self._reader.steps(self._backfilled, _SPARSE_CHUNK) if row.n <= upto
            ]
            for history in self._histories:
                history.add(self._backfilled_row, rows)
        else:
            for history in self._histories:
                history.add_groups(rows)
        for t, loss, seconds in map(_figures, [] if self._writers else rows):
            if loss is not None:
                self.losses.add_past(t, loss)
            if seconds is not None:
                self.times.add_past(t, seconds)
        self._backfilled, self._backfilled_row = upto, rows[-1] if rows else self._backfilled_row
        return True

    def _use_earlier(self, current: Steps, before: int) -> None:
        self.flop.use_earlier(current.flop, before)
        self.bytes.use_earlier(current.bytes, before)
        self.samples.use_earlier(current.samples, before)
        self.losses.use_earlier(current.losses, before)
        self.times.use_earlier(current.times, before)

    @property
    def _histories(self) -> tuple[StepHistory, ...]:
        return self.flop, self.bytes, self.samples

    def work(
        self, name: str, environment: str, meta: Mapping[str, Any], live: bool, t: int
    ) -> Work:
        """Progress at session time ``t``; rates are unknown if the newest step is too old."""
        run = meta.get("run")
        run = run if isinstance(run, dict) else {}
        last = self.recent[-1] if self.recent else None
        total, warmup_steps = _int(run.get("total_steps")), _int(run.get("warmup_steps")) or 0
        step = None
        if self._writers:
            total = None
        elif last is not None:
            step = last.step
            if total is not None and not last.warmup and step > total:
                step -= warmup_steps
            if last.warmup:
                total = warmup_steps or None
        silence = self.silence(t) if live else None
        eta = None
        if live and last is not None and not last.warmup and silence is None:
            eta = self._eta(step, total)
        durations: Sequence[float] = self._durations
        if not live and not self._writers:
            durations = times_of([row for row in self.recent if not row.warmup])[0]
        return Work(
            name=name,
            environment=environment,
            reports=last is not None,
            no_steps=no_steps(meta),
            warmup=bool(last and last.warmup),
            step=step,
            total=total,
            eta_seconds=eta,
            throughput=self._throughput(meta, live)
            if silence is None
            else Reading(None, Method.COUNTED, silence, "step lines"),
            step_seconds=median(durations) if durations else None,
            step_count=len(durations),
            loss=self._loss,
            model=_text(run.get("model")),
            batch_size=_int(run.get("batch_size")),
            dtype=_text(run.get("dtype")),
        )

    def _throughput(self, meta: Mapping[str, Any], live: bool) -> Reading:
        """Samples per second: over the last seconds, or the timed steps of a finished run."""
        if not self.recent:
            return Reading(None, Method.UNAVAILABLE, NO_STEPS_YET)
        if self.doubt:
            return Reading(None, Method.UNAVAILABLE, self.doubt)
        timed = [row for row in self.recent if not row.warmup]
        if not live and timed:
            value = throughput(timed, told=ends_told(meta))
        else:
            value = StepHistory(samples_of).last(self.recent)
        if value is None:
            return Reading(None, Method.UNAVAILABLE, "the step lines contain no samples")
        return Reading(value, Method.COUNTED, None, "step lines")

    def _eta(self, step: int | None, total: int | None) -> float | None:
        """Seconds until the last step at the pace of the last half minute."""
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


def _first_row(reader: SessionReader, back_ns: int) -> int:
    """Number of the row after which step lines are read when the session is opened."""
    last = reader.last_step()
    newest = reader.steps(last - 1, 1)
    oldest = reader.row_at("step", newest[0].t - back_ns - 10 * NS) if newest else -1
    return max(-1, last - _MAX_FIRST_ROWS, min(oldest, last - _MIN_FIRST_ROWS))


def _figures(row: StepRow) -> tuple[int, float | None, float | None]:
    """Time of a step line, its newest loss, and the mean duration of its timed steps."""
    loss = row.loss[-1] if row.loss and isfinite(row.loss[-1]) else None
    seconds = sum(row.seconds) / len(row.seconds) if row.seconds and not row.warmup else None
    return row.t, loss, seconds if seconds is None or isfinite(seconds) else None


def _unknown(_: StepLine) -> float | None:
    """The work of a line whose time is in doubt."""
    return None


def _int(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _text(value: object) -> str | None:
    return str(value)[:200] if isinstance(value, str) and value else None
