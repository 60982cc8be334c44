"""Reads all step lines of a session: one by one, or very many together in ten-second buckets."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from gpuwatch.core.models import JSON, mapping, number
from gpuwatch.session.reading import limits
from gpuwatch.session.reading.parsed import bytes_of, json_of, step_of
from gpuwatch.session.reading.validation import floats, in_order, whole
from gpuwatch.session.rows import SAMPLED, StepBucket, StepRow
from gpuwatch.session.schema import BUCKET_SECONDS, WARMUP

_CHUNK = 5_000
_LINES = 20_000
"""Lines at once that become buckets, so that no statement holds the writer up for long."""

ONE_BY_ONE = (
    f"SELECT n, t, step, count, {WARMUP}, samples, seconds, loss, acc1, acc5, phases, partial, "  # noqa: S608
    "flop, bytes FROM step WHERE n > ? AND n <= ? ORDER BY n LIMIT ?"
)
_TIMES = "SELECT n, t, step, seconds, loss FROM step WHERE n > ? AND n <= ? ORDER BY n LIMIT ?"
_SUMS = (
    f"SELECT max(n), min(n), count(*), sum(count), {WARMUP} AS warm, "  # noqa: S608
    "sum(count > 0 AND typeof(seconds) = 'blob' AND length(seconds) = 8 * count), "
    "sum(samples), count(samples), sum(flop), count(flop), sum(bytes), count(bytes), "
    "sum(partial IS NOT NULL OR phases IS NOT NULL) "
    "FROM step WHERE n > ? AND n <= ? GROUP BY t / ?, warm ORDER BY 1"
)
_FURTHER = (
    "SELECT n, count, step, CASE WHEN length(phases) <= ? THEN phases END, partial FROM step "
    "WHERE n >= ? AND n <= ? AND (partial IS NOT NULL OR phases IS NOT NULL)"
)

_Row = tuple[JSON, ...]


class _Rows(Protocol):
    """Runs a statement; with ``cut`` only its first rows, where they have more than these bytes."""

    def __call__(
        self, sql: str, values: Sequence[object], *, cut: bool = ..., most_bytes: int = ...
    ) -> list[_Row]: ...


class StepLines:
    """Reads step lines in order, up to the limits on number and size."""

    def __init__(self, rows: _Rows, leave_out: Callable[[str], None]) -> None:
        """``leave_out`` gets a sentence if there are too many lines, or too large ones."""
        self._rows, self._leave_out = rows, leave_out
        self._lines_left, self._bytes_left = limits.LINES, limits.OF_LINES
        self._times_left = limits.OF_TIMES
        self._read = 0

    def one_by_one(self, after: int, upto: int) -> Iterator[StepRow]:
        """The lines with ``after < n <= upto``."""
        while not self._is_over and (rows := self._some(ONE_BY_ONE, after, upto, _CHUNK)):
            for row in rows:
                self._lines_left -= 1
                self._bytes_left -= bytes_of(row[6:12])
                if self._is_over and self._read:
                    self._leave_out(f"only the first {self._read:,} step lines are read")
                    return
                self._read += 1
                yield step_of(row)
            after = int(rows[-1][0])

    def together(self, after: int, upto: int) -> Iterator[StepRow | StepBucket]:
        """The same lines, those of ten seconds in one bucket; a line without a time for each of its
        steps stays a line."""
        while not self._is_over and (lines := self._some(_TIMES, after, upto, _LINES)):
            last = int(lines[-1][0])
            sums = self._rows(_SUMS, (after, last, BUCKET_SECONDS * 1_000_000_000))
            ends, end = [], 0
            for newest, oldest, count, *_ in sums:
                end += whole(count)
                ends.append(end)
                if (oldest, newest) != (lines[end - count][0], lines[end - 1][0]):
                    sums = []  # neighbouring buckets have lines between each other's
                    yield from self.one_by_one(after, last)
                    break
            for of_bucket, end in zip(sums, ends, strict=False):
                oldest, count = of_bucket[1], of_bucket[2]
                bucket = self._bucket(lines[end - count : end], of_bucket)
                if bucket is None:
                    yield from self.one_by_one(oldest - 1, lines[end - 1][0])
                elif self._is_over:
                    self._leave_out(f"only the first {self._read:,} step lines are read")
                    return
                else:
                    self._read += count
                    yield bucket
            after = last

    @property
    def _is_over(self) -> bool:
        return min(self._lines_left, self._bytes_left, self._times_left) < 0

    def _some(self, sql: str, after: int, upto: int, limit: int) -> list[_Row]:
        rows = self._rows(sql, (after, upto, limit), cut=True, most_bytes=limits.OF_LINES)
        in_order((row[0] for row in rows), after)
        return rows

    def _bucket(self, lines: Sequence[_Row], sums: _Row) -> StepBucket | None:
        """The bucket of ``lines``; ``None``: some line has no valid time for each of its steps."""
        last, first, count, steps, warmup, timed, *known, with_more = sums
        if timed != count:
            return None
        times = array("d", b"".join(seconds for _, _, _, seconds, _ in lines))
        taken = sum(times)
        if not (min(times) > 0 and math.isfinite(taken)):
            return None
        self._times_left -= 8 * len(times)
        further = self._rows(_FURTHER, (limits.OF_PHASES, first, last)) if with_more else []
        phases: dict[str, float] = {}
        partial: dict[int, set[int]] = {}
        sampled = float(steps)
        for (n, of_line, step, _, listed), told in zip(further, _documents(further), strict=True):
            for name, value in told.items():
                if isinstance(value, (float, int)):
                    phases[name] = phases.get(name, 0.0) + value
            if SAMPLED in told:
                sampled -= of_line
            if listed is not None and isinstance(numbers := json_of(listed), list):
                within = range(step - of_line + 1, step + 1)
                partial[n] = {each for each in numbers if each in within}
        sampled += phases.pop(SAMPLED, 0.0)
        (_, begun, _, seconds, loss), (_, t, step, _, last_loss) = lines[0], lines[-1]
        start = begun - int(sum(times[: len(seconds) // 8]) * 1e9)
        losses = [*(floats(loss) or ())[:1], *(floats(last_loss) or ())[-1:]]
        samples, flop, size = (
            number(total) if of == count else None
            for total, of in zip(known[::2], known[1::2], strict=True)
        )
        return StepBucket(
            t=whole(t),
            start=min(start, t),
            step=whole(step),
            count=steps,
            warmup=bool(warmup),
            partial=sum(map(len, partial.values())),
            samples=samples,
            taken=taken,
            times=_without(partial, lines, times) if partial else times,
            loss=tuple(losses) or None,
            evaluation=max(0.0, phases.pop("evaluation", 0.0)),
            phases={name: total for name, total in phases.items() if math.isfinite(total)},
            flop=flop,
            bytes=size,
            sampled=sampled if sampled < steps else None,
        )


def _documents(further: Sequence[_Row]) -> list[Mapping[str, JSON]]:
    """The phases of each line, parsed; at once where possible, which takes a third of the time."""
    texts = [text or "{}" for *_, text, _ in further]
    parsed = json_of(f"[{','.join(texts)}]")
    if not isinstance(parsed, list) or len(parsed) != len(texts):
        parsed = list(map(json_of, texts))
    return list(map(mapping, parsed))


def _without(
    partial: dict[int, set[int]], lines: Sequence[_Row], times: array[float]
) -> array[float]:
    """The times (seconds) of the steps of ``lines`` but those in ``partial``, by line."""
    full, begin = array("d"), 0
    for n, _, step, seconds, _ in lines:
        end = begin + len(seconds) // 8
        of_line = times[begin:end]
        if n in partial:
            numbered = enumerate(of_line, step - len(of_line) + 1)
            of_line = array("d", [each for at, each in numbered if at not in partial[n]])
        full.extend(of_line)
        begin = end
    return full
