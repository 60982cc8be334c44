"""Progress, rates, phases and medians from the step lines of a session."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from math import inf, isfinite
from statistics import median
from typing import Any

from gpuwatch.analysis.samples.rates import (
    Span,
    StepLine,
    bytes_of,
    flop_of,
    intervals,
    mean_rate,
    rate_series,
    samples_of,
)
from gpuwatch.analysis.samples.step_lines import (
    NO_STEPS,
    NO_STEPS_YET,
    ends_told,
    mean_by_arrival,
    no_figure,
    no_rates,
    no_steps,
    other_phase,
    run_of,
    several_writers,
    times_of,
)
from gpuwatch.analysis.samples.window import first_timed
from gpuwatch.core.metrics import Method
from gpuwatch.core.models import mapping, number
from gpuwatch.core.units import NS, pause
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.rows import StepBucket, StepPlace, StepRow, step_words
from gpuwatch.session.schema import BUCKET_SECONDS
from gpuwatch.tui.feed.log_lines import Count
from gpuwatch.tui.feed.samples import (
    BUCKET_NS,
    RECENT_NS,
    History,
    Window,
    bucket_ranges,
    clip,
    column_means,
)
from gpuwatch.tui.feed.snapshot import Reading, StepShares, Work

_MAX_STEPS = 1000
"""Number of newest steps of the median and of the phases."""
_MAX_PHASES = 9
"""Most phases with a name; foreign step lines may name any number."""
_MOST_ROWS = 5_000
"""Newest step lines that are kept one by one."""
_MIN_FIRST_ROWS, _MAX_FIRST_ROWS = _MAX_STEPS + 1, 4000
"""Least and most step lines read when a session is opened; older ones follow in chunks."""
_CHUNK, _SPARSE_CHUNK = 20_000, 1000
"""Older step lines per chunk: in ten-second sums, or single ones if they are rare."""
_STALE_NS = 3 * NS
"""Least time without a step line after which the current rate is unknown."""
_MOST_BUCKETS = 1000
"""Buckets that one step line may cover; a foreign file may hold any time."""
FIGURES_SOON = "figures soon"


def no_steps_yet(meta: Mapping[str, Any]) -> str:
    """Why a run that goes on has no step."""
    soon = mapping(meta.get("waiting")).get("for") == "own lines"
    return FIGURES_SOON if soon else NO_STEPS_YET


class StepHistory(History):
    """A figure of the step lines: recent ones one by one, older ones by ten-second bucket."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self.sums: dict[int, tuple[float, float]] = {}
        """Total and weight by bucket; an earlier moment has those of the present."""

    @property
    def seen(self) -> bool:
        return bool(self.sums) and self._steps.any

    def columns(self, view: Window) -> list[float | None]:
        recent = self._steps.recent
        if not recent:
            return [None] * view.columns
        if self._steps.complete or recent[0].t <= view.start:
            return self._of_recent(view)
        means: list[float | None] = []
        for first, last in bucket_ranges(view):
            buckets: Collection[int] = range(first, last + 1)
            if len(buckets) > len(self.sums):  # a foreign file may hold any time
                buckets = [bucket for bucket in self.sums if bucket in buckets]
            means.append(self._of_sums([self.sums[each] for each in buckets if each in self.sums]))
        return clip(means, view, recent[-1].t)

    def _of_sums(self, known: Sequence[tuple[float, float]]) -> float | None:
        weight = sum(each for _, each in known)
        return sum(total for total, _ in known) / weight if weight else None

    def _of_recent(self, view: Window) -> list[float | None]:
        raise NotImplementedError


class WorkRate(StepHistory):
    """Counted work per second."""

    def __init__(self, steps: Steps, work: Callable[[StepLine], float | None]) -> None:
        super().__init__(steps)
        self._work = work

    def add(self, spans: Iterable[Span]) -> None:
        """Add step lines, spread evenly over the time that they cover."""
        for start, end, row in spans:
            amount = self._work(row)
            if amount is None or end <= start:
                continue
            last = (end - 1) // BUCKET_NS
            for bucket in range(max(start // BUCKET_NS, last - _MOST_BUCKETS), last + 1):
                overlap = min(end, (bucket + 1) * BUCKET_NS) - max(start, bucket * BUCKET_NS)
                total, weight = self.sums.get(bucket, (0.0, 0.0))
                weight = min(BUCKET_SECONDS, weight + overlap / NS)
                self.sums[bucket] = total + amount * overlap / (end - start), weight

    def _of_recent(self, view: Window) -> list[float | None]:
        edges, newest = view.edges(), self._steps.newest
        rows = [row for row in self._steps.recent if row.t >= view.start - 60 * NS]
        # The newest column ends at the last step line, not at its edge.
        last = bisect_left(edges, newest)
        if 0 < last < len(edges) and newest > edges[last - 1]:
            known = rate_series(rows, self._work, [*edges[:last], newest])
            return known + [None] * (view.columns - len(known))
        return rate_series(rows, self._work, edges)

    def of(self, rows: Sequence[StepLine]) -> float | None:
        """Work per second of the time that these lines' steps took."""
        return mean_rate(rows, self._work, told=self._steps.told)

    def mean(self, start: int, end: int, least: float = 0.0) -> float | None:
        """Of the timed steps as in ``gpuwatch show``: of the time that they took. Of any other
        time from its first step to its last: what a run does without steps is no rate of 0."""
        if least:
            return super().mean(start, end, least)
        rows = self._steps.within(start, end)
        known = rows is not None or self._steps.whole is not None
        if known and (start, end) == self._steps.timed and (timed := self._steps.timed_lines()):
            return self.of(timed)
        first, last = self._steps.span
        start, end = max(start, first), min(end, last)
        if rows is not None:
            near = [row for row in self._steps.recent if row.t >= start - 60 * NS]
            return rate_series(near, self._work, [start, end])[0]
        shares = [
            total * max(0, min(end, (bucket + 1) * BUCKET_NS) - max(start, bucket * BUCKET_NS))
            for bucket, (total, _) in self.sums.items()
        ]
        return sum(shares) / BUCKET_NS / ((end - start) / NS) if any(shares) else None

    def last(self, seconds: float = 2.0) -> float | None:
        """Work per second over the last ``seconds`` that end with the newest step line."""
        recent = self._steps.recent
        if not recent:
            return None
        end = recent[-1].t
        start = end - int(seconds * NS)
        rows: list[StepRow] = []
        for row in reversed(recent):
            if row.warmup and not recent[-1].warmup:
                break  # the first steps took longer
            rows.append(row)
            if row.t < start and len(rows) > 1:
                break
        rows.reverse()
        begin = max(start, intervals(rows)[0][0])
        return rate_series(rows, self._work, [begin, end])[0] if begin < end else None


class StepFigure(StepHistory):
    """A figure that each step line tells: its loss, or the mean duration of its steps."""

    def __init__(self, steps: Steps, figure: Callable[[StepRow], float | None]) -> None:
        super().__init__(steps)
        self._figure = figure

    def add(self, rows: Iterable[StepRow]) -> None:
        """Add step lines."""
        for row in rows:
            value = self._figure(row)
            if value is not None:
                total, count = self.sums.get(row.t // BUCKET_NS, (0.0, 0.0))
                self.sums[row.t // BUCKET_NS] = total + value * row.count, count + row.count

    def mean(self, start: int, end: int, least: float = 0.0) -> float | None:
        """Mean over steps, as every other mean of them, where their lines are at hand."""
        rows = None if least else self._steps.within(start, end)
        if rows is None:
            return super().mean(start, end, least)
        known = [(v, row.count) for row in rows if (v := self._figure(row)) is not None]
        steps = sum(count for _, count in known)
        return sum(value * count for value, count in known) / steps if steps else None

    def _of_recent(self, view: Window) -> list[float | None]:
        told = [(row.t, v) for row in self._steps.recent if (v := self._figure(row)) is not None]
        times = [t for t, _ in told]
        return column_means(times, [value for _, value in told], view, _pause(times))


class LongestSteps(StepHistory):
    """The longest step of each column, over all the time that it took: in a mean a stall of a
    minute would be one of a second."""

    def add(self, spans: Iterable[Span]) -> None:
        """Add step lines, with the time that they cover."""
        for start, end, row in spans:
            if (value := _longest(row)) is None:
                continue
            last = max(0, end - 1) // BUCKET_NS
            for bucket in range(max(start // BUCKET_NS, last - _MOST_BUCKETS), last + 1):
                self.sums[bucket] = max(value, self.sums.get(bucket, (0.0, 0.0))[0]), 1.0

    def _of_sums(self, known: Sequence[tuple[float, float]]) -> float | None:
        return max((value for value, _ in known), default=None)

    def _of_recent(self, view: Window) -> list[float | None]:
        edges = view.edges()
        columns: list[float | None] = [None] * view.columns
        for start, end, row in intervals(self._steps.recent):
            if end <= view.start or (value := _longest(row)) is None:
                continue
            first, last = bisect_right(edges, start) - 1, bisect_left(edges, end)
            for column in range(max(0, first), min(last, view.columns)):
                columns[column] = max(value, columns[column] or 0.0)
        return columns


class Steps:
    """The step lines read so far; used in the feed's thread."""

    def __init__(
        self, reader: SessionReader, present: Steps | None = None, back_ns: int = RECENT_NS
    ) -> None:
        """``present``: for an earlier moment, the steps of now, whose older lines are used.

        ``back_ns``: time before the newest step line for which lines are read one by one.
        """
        self._reader = reader
        self._present = present
        self._back_ns = back_ns
        self._writers: str | None = None
        self.told = False
        """Whether the workload tells when its steps end."""
        self._no_rates: str | None = None
        """Why none follows from the timed lines that were read."""
        self.whole: Sequence[StepLine] | None = None
        """All timed lines of a run that is over, those of ten seconds together."""
        self._depends_on: tuple[object, ...] = ()
        """What the figures of lines that were read before depend on."""
        self._begin({})

    def _begin(self, count: Mapping[str, Any]) -> None:
        """Read from the start; ``count``: what the workload counted of a step."""
        last = self._reader.last_step()
        newest = self._reader.steps(last - 1, 1)
        begin = newest[0].t - self._back_ns - 10 * NS if newest else 0
        oldest = self._reader.row_at("step", begin) if newest else -1
        self._last = max(-1, last - _MAX_FIRST_ROWS, min(oldest, last - _MIN_FIRST_ROWS))
        self._first_recent = self._last
        self._backfilled = -1
        """Number of the last row that :meth:`backfill` has read."""
        self._backfilled_row: StepRow | None = None
        self.recent: deque[StepRow] = deque(maxlen=_MOST_ROWS)
        self._dropped = False
        self._timed: deque[StepRow] = deque(maxlen=_MAX_STEPS + 1)  # one tells that there are more
        self._phased: deque[StepRow] = deque(maxlen=_MAX_STEPS)
        """The newest step lines with durations, and those of them with phases."""
        self.newest_loss: float | None = None
        self._lost_at: StepPlace | None = None
        """The step whose loss came after the newest one that was a number."""
        self.timed_start: int | None = None
        """Session time of the first timed step's start; ``None``: none yet."""
        self.longest_pause = 0
        """Longest time between two step lines, in nanoseconds."""
        self.first: StepRow | None = None
        self.evaluations: deque[tuple[float, float]] = deque(maxlen=_MAX_STEPS)
        """Start and end of those that took most of the time of a step line."""
        works = (_unknown,) * 3 if self.doubt else (flop_of(count), bytes_of(count), samples_of)
        figures = (_unknown,) * 2 if self._writers else (_loss, _mean_seconds)
        self.flop, self.bytes, self.samples = (WorkRate(self, work) for work in works)
        self.losses, self.times = (StepFigure(self, figure) for figure in figures)
        self.longest = LongestSteps(self)
        if self._present is not None:
            for own, present in zip(self.histories, self._present.histories, strict=True):
                own.sums = present.sums

    @property
    def histories(self) -> Sequence[StepHistory]:
        """All of them."""
        return self.flop, self.bytes, self.samples, self.losses, self.times, self.longest

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
        return self._writers or self._no_rates

    @property
    def complete(self) -> bool:
        """Whether ``recent`` holds every step line of the session."""
        return self._first_recent < 0 and not self._dropped

    def within(self, start: int, end: int) -> list[StepRow] | None:
        """The step lines from ``start`` to ``end``; ``None``: older ones are not at hand."""
        if self.complete or (self.recent and self.recent[0].t <= start):
            return [row for row in self.recent if start < row.t <= end]
        return None

    @property
    def timed(self) -> tuple[int, int]:
        """Start and end of the timed steps, in nanoseconds of session time; equal: none."""
        start = self.timed_start
        return (self.newest, self.newest) if start is None else (start, self.newest)

    @property
    def span(self) -> tuple[int, int]:
        """From the start of the first step to the newest step line; equal: none."""
        first = intervals([self.first])[0][0] if self.first else self.newest
        return first, self.newest

    def silence(self, t: int) -> str | None:
        """Why current rates are unknown at ``t``; ``None``: the newest step line is recent."""
        if not self.recent:
            return None
        between = self.recent[-1].t - self.recent[-2].t if len(self.recent) > 1 else 0
        usual = max(between, sum(self.recent[-1].seconds or ()) * NS)
        elapsed = t - self.newest
        if self._present is not None and t > self._present.newest:
            return "after the steps"
        if elapsed <= max(_STALE_NS, 3 * usual):
            return None
        return f"no step for {pause(elapsed / NS)}"

    @property
    def lost(self) -> str:
        """That the loss is no number any more; empty: it is one."""
        if self.newest_loss is None or isfinite(self.newest_loss):
            return ""
        since = "" if self._lost_at is None else f" (since {step_words(self._lost_at)} or before)"
        return f"the loss is {self.newest_loss:g}{since}"

    def update(self, meta: Mapping[str, Any]) -> None:
        """Read new step lines; all again once they turn out to be something else."""
        self._writers, self.told = several_writers(meta), ends_told(meta)
        while True:
            count = mapping(meta.get("count"))
            depends_on = (self.doubt, meta.get("evaluated_until"), count)
            if depends_on != self._depends_on:
                self._depends_on = depends_on
                self._begin(count)
            rows = self._reader.steps(self._last)
            if not rows:
                last = None if self._writers else self._reader.completed()
                if last and last.loss:
                    self._take_loss(last.loss[-1], last)
                return
            before = [self.recent[-1]] if self.recent else []
            timed = [row for row in (*before, *rows) if not row.warmup]
            if self.doubt is None and (doubt := no_rates(meta, timed)):
                self._no_rates = doubt
                continue
            self._add(rows)
            self._last = rows[-1].n

    def finish(self, meta: Mapping[str, Any]) -> None:
        """Read, once, the timed lines of a run that is over and has more than are kept."""
        if self.whole is None and not self.complete:
            self.whole = [row for row in self._reader.steps_together() if not row.warmup]
            self._no_rates = self._no_rates or no_rates(meta, self.whole)
            self.update(meta)

    def _add(self, rows: list[StepRow]) -> None:
        self.whole = None  # a run that lost its recorder may go on
        self.first = self.first or self._reader.steps(limit=1)[0]
        before = self.recent[-1] if self.recent else None
        spans = _spans(before, rows)
        self.evaluations.extend(
            (start, start + row.evaluation * NS)
            for start, end, row in spans
            if 2 * row.evaluation * NS > end - start
        )
        self._put(before, spans, rows, spans)
        self._dropped |= len(self.recent) + len(rows) > _MOST_ROWS
        self.recent.extend(rows)
        if not self._writers:
            for row in rows:
                if row.loss:
                    self._take_loss(row.loss[-1], row)
            timed = [row for row in rows if row.seconds and not row.warmup]
            self._timed.extend(timed)
            self._phased.extend(row for row in timed if row.phases and row.sampled != 0)
        if self.timed_start is None:
            first = first_timed(self._reader)
            self.timed_start = None if first is None else max(0, first[0])

    def lacks(self, meta: Mapping[str, Any], key: str, *, live: bool) -> str:
        """Why no step has the loss, or another figure."""
        return f"no {key} yet" if live else no_figure(meta, key)

    def _take_loss(self, loss: float, row: StepRow) -> None:
        known = self.newest_loss is not None and isfinite(self.newest_loss)
        if known and not isfinite(loss):
            self._lost_at = self._reader.place(row.n, row.step)
        self.newest_loss = loss

    def _put(
        self,
        before: StepRow | None,
        spans: Sequence[Span],
        rows: Sequence[StepRow],
        every: Sequence[Span],
    ) -> None:
        """``every``: with all step times, of which ``spans`` may have a part."""
        times = [row.t for row in (before, *rows) if row is not None]
        self.longest_pause = max((self.longest_pause, *(b - a for a, b in pairwise(times))))
        if self._present is None:
            for rate in (self.flop, self.bytes, self.samples):
                rate.add(spans)
            for figure in (self.losses, self.times):
                figure.add(rows)
            self.longest.add(every)

    def backfill(self) -> bool:
        """Read one chunk of older step lines; returns whether there may be more."""
        if self._present is not None or self._backfilled >= self._first_recent:
            return False
        upto = min(self._backfilled + _CHUNK, self._first_recent)
        rows = self._reader.step_groups(self._backfilled, upto)
        if not rows:
            upto = min(self._reader.steps(self._backfilled, 1)[0].n - 1, self._first_recent)
        start = self._backfilled_row.t if self._backfilled_row else 0
        if rows and rows[-1].t - start > (upto - self._backfilled) * NS:
            upto = min(self._backfilled + _SPARSE_CHUNK, self._first_recent)
            rows = self._reader.steps(self._backfilled, _SPARSE_CHUNK)
            rows = [row for row in rows if row.n <= upto]
            spans = every = _spans(self._backfilled_row, rows)
        else:
            buckets = [row.t // BUCKET_NS * BUCKET_NS for row in rows]
            spans = [(t, t + BUCKET_NS, row) for t, row in zip(buckets, rows, strict=True)]
            # Groups have the step times of their newest lines alone.
            every = intervals(self._reader.steps_together(self._backfilled, upto))
        self._put(self._backfilled_row, spans, rows, every)
        self._backfilled, self._backfilled_row = upto, rows[-1] if rows else self._backfilled_row
        return True

    # The newest timed steps.

    def newest_timed(self) -> list[StepRow]:
        """Of about as many steps as the median is of, the newest first."""
        steps = accumulate((len(row.seconds or ()) for row in reversed(self._timed)), initial=0)
        newest = zip(reversed(self._timed), steps, strict=False)
        return [row for row, before in newest if before < _MAX_STEPS]

    def _newest(self, rows: Sequence[StepRow]) -> str:
        """What ``rows`` are called, the newest timed ones; empty: they are all."""
        return "the last " * (len(self._timed) > len(rows))

    def _durations(self) -> list[float]:
        """Seconds of the newest timed steps, in order."""
        rows = reversed(self.newest_timed())
        return [seconds for row in rows for seconds in row.seconds or ()]

    def last_seconds(self) -> float | None:
        """Mean duration of the timed steps of the last two seconds; ``None``: unknown."""
        durations: list[float] = []
        for row in reversed(self._timed):
            if durations and row.t < self._timed[-1].t - 2 * NS:
                break
            durations += row.seconds or ()
        return sum(durations) / len(durations) if durations else None

    def per_second(self) -> float | None:
        """Steps per second of the newest timed steps."""
        durations = self._durations()
        return len(durations) / sum(durations) if sum(durations) > 0 else None

    def shares(self, meta: Mapping[str, Any]) -> StepShares | None:
        """See :func:`phase_shares`; of a run that is over as shares of the mean of all its timed
        steps, as in ``show``, where their lines are at hand."""
        at_hand = self.complete or self.whole is not None
        if "result" not in meta or self._writers or not at_hand:
            rows = self.newest_timed()
            every = all(row.phases and row.sampled in (None, row.count) for row in rows)
            called = self._newest(rows) * every
            return phase_shares(reversed(self._phased), meta, called=called)
        timed = self.timed_lines()
        found, (times, _) = phase_shares(timed, meta, most=inf), times_of(timed)
        if found is None or not times:
            return found
        return replace(found, seconds=sum(times) / len(times))

    # Progress.

    def work(
        self, meta: Mapping[str, Any], live: bool, t: int, printed: Count | None = None
    ) -> Work:
        """Progress at session time ``t``; rates are unknown if the newest step is too old.

        ``printed``: a count that may be that of the steps, whose total the session does not tell.
        """
        run = mapping(meta.get("run"))
        last = self.recent[-1] if self.recent else None
        # Later ones are counted again, not timed.
        warmup = last is not None and last.warmup and self.timed_start is None
        total, warmup_steps = _int(run.get("total_steps")), _int(run.get("warmup_steps")) or 0
        step = None
        if self._writers:
            total = None
        elif last is not None:
            step = last.step
            if total is not None and not warmup and step > total:
                step -= warmup_steps
            if warmup:
                total = warmup_steps or None
            if total is None and printed is not None and printed.counts(step):
                total = printed.total
        silence = self.silence(t) if live else None
        why = no_steps_yet(meta) if live else no_steps(meta)
        durations: Sequence[float] = self._durations()
        newest = self._newest(self.newest_timed())
        if not live and not self._writers:
            newest = ""
            times, reason = times_of(self.timed_lines())
            durations = times if reason is None else ()
        pace = median(durations) if durations else None
        mean = sum(durations) / len(durations) if durations else None
        left = 0 if step is None or total is None else total - step
        known = live and last is not None and not warmup and left > 0
        return Work(
            reports=last is not None,
            no_steps=why,
            warmup=warmup,
            step=step,
            total=total,
            eta_seconds=time_left(left, mean, self.recent) if known and silence is None else None,
            silence=silence if known else None,
            throughput=self._throughput(live, why)
            if silence is None
            else Reading(None, Method.COUNTED, silence, "step lines"),
            step_seconds=pace,
            mean_seconds=mean,
            arrival_seconds=None
            if self._writers or durations or self.told
            else mean_by_arrival(self.timed_lines()),
            step_count=len(durations),
            newest=newest,
            loss=self.newest_loss,
            no_loss=self.lacks(meta, "loss", live=live),
            model=_text(run.get("model")),
            batch_size=_int(run.get("batch_size")),
            dtype=_text(run.get("dtype")),
        )

    def timed_lines(self) -> Sequence[StepLine]:
        """The timed lines of a run that is over, as far as they were read."""
        if self.whole is not None:
            return self.whole
        return [row for row in self.recent if not row.warmup]

    def _throughput(self, live: bool, no_steps: str) -> Reading:
        """Samples per second: over the last seconds, or the timed steps of a finished run."""
        if not self.recent:
            return Reading(None, Method.UNAVAILABLE, no_steps)
        if self.doubt:
            return Reading(None, Method.UNAVAILABLE, self.doubt)
        timed = [] if live else self.timed_lines()
        if not live and not timed:
            return Reading(None, Method.UNAVAILABLE, NO_STEPS)
        value = self.samples.of(timed) if timed else self.samples.last()
        if value is None:
            return Reading(None, Method.UNAVAILABLE, "the step lines contain no samples")
        return Reading(value, Method.COUNTED, None, "step lines")


def time_left(left: int, mean: float | None, recent: Sequence[StepRow]) -> float | None:
    """Seconds that ``left`` steps take of ``mean`` seconds, in which the pauses between them are,
    with evaluations as often and as long as among the ``recent`` timed ones; without a mean as long
    as the newest arrivals took."""
    if mean is not None:
        timed = [row for row in recent if not row.warmup]
        steps, evaluation = (sum(row.count for row in timed), sum(row.evaluation for row in timed))
        return left * (mean + evaluation / max(1, steps))
    if len(recent) < 2:
        return None
    first, newest = recent[-min(len(recent), 17)], recent[-1]
    done = newest.step - first.step
    return left * (newest.t - first.t) / NS / done if done > 0 else None


def phase_shares(
    newest: Iterable[StepLine], meta: Mapping[str, Any], most: float = _MAX_STEPS, called: str = ""
) -> StepShares | None:
    """The shares of the phases in the time of the newest timed steps, and of the hook by the
    session's ``meta``; ``None``: no step line named any.

    Where only some steps have phases, or one is ``other``, these add up to the time of those steps,
    which stand for all since those before, as in :func:`mean_phases`.
    ``newest``: step lines, the newest first, which are read until they are of ``most`` steps,
    which are ``called`` so, as in :class:`Work`.
    """
    steps = since = 0
    every = whole = 0.0
    sums: dict[str, float] = {}
    for row in newest:
        since += row.count
        times = row.times if isinstance(row, StepBucket) else row.seconds
        if not row.phases or not times:
            continue
        phases = {name: max(0.0, seconds) for name, seconds in row.phases.items()}
        count, seconds = len(times), sum(phases.values())
        if row.sampled is not None:
            count = round(row.sampled)
        elif "other" not in phases:
            seconds = max(sum(times), seconds)
        if not count or not 0 < seconds < inf:
            continue
        steps += count
        weight = since / (row.sampled or count)
        every, since = every + since, 0
        whole += seconds * weight
        for name, part in phases.items():
            if name in sums or len(sums) < _MAX_PHASES:
                sums[name] = sums.get(name, 0.0) + part * weight
        if steps >= most:
            break
    if not steps:
        return None
    other = other_phase(run_of(meta, sums))
    parts = tuple(
        (other if name == "other" else name, min(1.0, part / whole))
        for name, part in sums.items()
        if part > 0
    )
    hook = number(mapping(meta.get("timing")).get("cost"))
    return StepShares(parts, steps, called, whole / every, hook)


def _spans(before: StepRow | None, rows: Sequence[StepRow]) -> list[Span]:
    """The time that each of these step lines covers; ``before``: the line before them."""
    return intervals(rows) if before is None else intervals([before, *rows])[1:]


def _pause(times: Sequence[int]) -> float:
    """Mean seconds between two lines, over the newest ones of these ends in nanoseconds."""
    if len(times) < 2:
        return 1.0
    pauses = min(len(times) - 1, 16)
    return max(0.0, (times[-1] - times[-1 - pauses]) / NS / pauses)


def _loss(row: StepRow) -> float | None:
    return row.loss[-1] if row.loss and isfinite(row.loss[-1]) else None


def _mean_seconds(row: StepRow) -> float | None:
    """Mean duration of the timed steps of a line."""
    seconds = sum(row.seconds) / len(row.seconds) if row.seconds and not row.warmup else None
    return seconds if seconds is None or isfinite(seconds) else None


def _longest(row: StepLine) -> float | None:
    """Seconds of the longest timed step of a line."""
    times = row.times if isinstance(row, StepBucket) else row.seconds
    return None if row.warmup else max(filter(isfinite, times or ()), default=None)


def _unknown(_: StepLine) -> float | None:
    """The figure of a line that is in doubt."""
    return None


def _int(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _text(value: object) -> str | None:
    return str(value)[:200] if isinstance(value, str) and value else None
