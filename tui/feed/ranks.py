"""The ranks of a run: who is slower now, and own times over the time that is shown.

The analysis and numpy are loaded for a run of several ranks only.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.units import NS
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.rows import DeviceRow, Processes, RankRow, RankStepRow
from gpuwatch.tui.feed.samples import RECENT_NS, Histories
from gpuwatch.tui.feed.snapshot import RankNow, RanksNow
from gpuwatch.tui.widgets.graph import Window

if TYPE_CHECKING:
    from gpuwatch.analysis.ranks.ranks import Ranks, Telemetry

JUDGED_NS = 300 * NS
"""How far back the ranks are compared."""
_MOST_RECENT = 20_000
"""Most rows that are kept one by one, of all ranks."""
_BUCKET_NS = 2 * NS
_MOST_VALUES = 16_384
"""Most buckets of the history, times ranks; beyond it they become twice as long."""
_LEAST_BUCKETS = 64
_LONGEST_NS = 3600 * NS
"""Longest stretch of one row; a file from elsewhere may hold any number."""
_CHUNK = 5000
_END_NS = 2**62

Own = tuple[float, float]
"""Steps, and the own seconds of these."""


class OwnTimes:
    """Own time of each rank by buckets of equal length, of which there are never many."""

    def __init__(self) -> None:
        self.width = _BUCKET_NS
        self._buckets: dict[int, dict[int, Own]] = {}

    def add(self, row: RankStepRow, own: float, seconds: float) -> None:
        """Add the steps of a row, spread evenly over the time that they took."""
        start = row.t - min(max(1, round(seconds * NS)), _LONGEST_NS)
        first, last = start // self.width, (row.t - 1) // self.width
        for bucket in range(first, last + 1):
            inside = min(row.t, (bucket + 1) * self.width) - max(start, bucket * self.width)
            part = inside / (row.t - start)
            ranks = self._buckets.setdefault(bucket, {})
            steps, total = ranks.get(row.rank, (0.0, 0.0))
            ranks[row.rank] = steps + part * row.count, total + part * own
        most = max(_LEAST_BUCKETS, _MOST_VALUES // len(self._buckets[last]))
        while len(self._buckets) > most:
            self._halve()

    def _halve(self) -> None:
        self.width *= 2
        old, self._buckets = self._buckets, {}
        for bucket, ranks in old.items():
            merged = self._buckets.setdefault(bucket // 2, {})
            for rank, (steps, own) in ranks.items():
                before = merged.get(rank, (0.0, 0.0))
                merged[rank] = before[0] + steps, before[1] + own

    def drop_before(self, t: int) -> None:
        """Forget the buckets that end before session time ``t``."""
        for bucket in [each for each in self._buckets if (each + 1) * self.width < t]:
            del self._buckets[bucket]

    def columns(self, ranks: Sequence[int], view: Window, until: int) -> list[list[float | None]]:
        """For each rank and column the own time over that of the median rank, less 1; ``None``:
        no steps, or after ``until``."""
        columns = []
        for first, end in zip(view.edges()[:-1], view.edges()[1:], strict=True):
            columns.append([None] * len(ranks) if first >= until else self._at(ranks, first, end))
        return [list(row) for row in zip(*columns, strict=True)]

    def _at(self, ranks: Sequence[int], first: float, end: float) -> list[float | None]:
        sums = dict.fromkeys(ranks, (0.0, 0.0))
        buckets = range(int(first // self.width), max(0, int((end - 1) // self.width)) + 1)
        for bucket in buckets:
            for rank, (steps, own) in self._buckets.get(bucket, {}).items():
                before = sums.get(rank, (0.0, 0.0))
                sums[rank] = before[0] + steps, before[1] + own
        known = {rank: own / steps for rank, (steps, own) in sums.items() if steps > 0}
        if not known:
            return [None] * len(ranks)
        median = sorted(known.values())[(len(known) - 1) // 2]
        return [
            known[rank] / median - 1 if rank in known and median > 0 else None for rank in ranks
        ]


@dataclass(frozen=True)
class Sampled:
    """Where metrics and processes are found."""

    devices: Sequence[DeviceRow]
    series: Histories
    processes: Processes


class RankFeed:
    """Reads the steps of the ranks as they come."""

    def __init__(self, reader: SessionReader, current: RankFeed | None = None) -> None:
        """``current``: for an earlier moment, that of the present, whose history it uses."""
        self._reader = reader
        self._rows: list[RankRow] = []
        self._recent: deque[RankStepRow] = deque(maxlen=_MOST_RECENT)
        self._own = OwnTimes()
        """Of the newest minutes."""
        self._history: OwnTimes = current._history if current else OwnTimes()
        self._fills = current is None
        self._after: int | None = None
        self._back = self._first = -1
        """Last row that :meth:`backfill` has read, and the last that it has to read."""
        self._judged: tuple[int | None, Ranks | None] = None, None

    def update(self) -> None:
        """Read new rows; at first those of the newest minutes."""
        self._rows = self._reader.ranks()
        if len(self._rows) < 2:
            return
        if self._after is None:
            last = self._reader.rank_steps(self._reader.row_at("rank_step", _END_NS) - 1, 1)
            newest = last[0].t if last else 0
            self._after = self._first = self._reader.row_at("rank_step", newest - RECENT_NS)
        while rows := self._reader.rank_steps(self._after):
            self._after = rows[-1].n
            for row in rows:
                self._recent.append(row)
                self._add(row, self._own)
                if self._fills:
                    self._add(row, self._history)
        newest = max((row.t for row in self._recent), default=0)
        while self._recent and self._recent[0].t < newest - RECENT_NS:
            self._recent.popleft()
        self._own.drop_before(newest - RECENT_NS)

    def backfill(self) -> bool:
        """Read one chunk of older rows; returns whether there may be more."""
        if not self._fills or self._back >= self._first:
            return False
        rows = self._reader.rank_steps(self._back, _CHUNK)
        for row in rows:
            if row.n <= self._first:
                self._add(row, self._history)
        self._back = rows[-1].n if rows else self._first
        return self._back < self._first

    @staticmethod
    def _add(row: RankStepRow, to: OwnTimes) -> None:
        from gpuwatch.analysis.ranks.own_time import own_seconds, seconds_of

        own, seconds = own_seconds(row), seconds_of(row)
        if not row.warmup and own is not None and seconds is not None and 0 <= own <= 2 * seconds:
            to.add(row, own, seconds)

    def now(self, view: Window, t: int, sampled: Sampled) -> RanksNow | None:
        """What is shown of the ranks; ``None`` for a run of fewer than two."""
        if len(self._rows) < 2:
            return None
        from gpuwatch.analysis.ranks.wording import sentences, short

        ranks = self._ranks(sampled)
        if ranks is None or not self._recent:
            return None
        numbers = [each.rank for each in ranks.figures]
        fine = self._history.width > self._own.width and view.start >= self._recent[0].t
        columns = (self._own if fine else self._history).columns(numbers, view, t)
        ids = {row.uuid: row.id for row in sampled.devices if row.uuid}
        slow = {each.excess.rank: each.excess.relative for each in ranks.stragglers}
        return RanksNow(
            line=short(ranks),
            sentences=tuple(sentences(ranks)),
            ranks=tuple(
                RankNow(
                    rank=each.rank,
                    device=ids.get(each.device, each.device) if each.device else None,
                    step_seconds=each.step_seconds,
                    own_seconds=each.own_seconds,
                    data_share=each.data_share,
                    samples_per_second=each.samples_per_second,
                    tokens_per_second=each.tokens_per_second,
                    slower=slow.get(each.rank),
                    columns=tuple(values),
                )
                for each, values in zip(ranks.figures, columns, strict=True)
            ),
            window=view,
        )

    def _ranks(self, sampled: Sampled) -> Ranks | None:
        """The comparison of the newest rows, made anew if there are new ones."""
        if self._judged[0] != self._after:
            from gpuwatch.analysis.ranks.ranks import ranks_of

            newest = max((row.t for row in self._recent), default=0)
            rows = [row for row in self._recent if row.t > newest - JUDGED_NS]
            telemetry = self._telemetry(sampled, newest)
            self._judged = self._after, ranks_of(self._rows, rows, telemetry)
        return self._judged[1]

    def _telemetry(self, sampled: Sampled, newest: int) -> Callable[[int | None], Telemetry]:
        from gpuwatch.analysis.ranks.ranks import Telemetry
        from gpuwatch.analysis.ranks.stragglers import METRICS

        uuids = {row.id: row.uuid for row in sampled.devices if row.kind == "gpu" and row.uuid}

        def since(start: int | None) -> Telemetry:
            metrics: dict[str, dict[str, float]] = {}
            neighbours: dict[str, tuple[str, ...]] = {}
            begin = max(0, newest - JUDGED_NS) if start is None else start
            for id_, uuid in uuids.items():
                for metric in METRICS:
                    series = sampled.series.get((id_, metric))
                    if series is None:
                        continue
                    mean = series.mean(begin, newest)
                    if mean is not None:
                        metrics.setdefault(uuid, {})[metric] = mean
            for process in sampled.processes.on_gpus:
                gpu = uuids.get(process.device)
                if gpu and process.owned is False and process.running:
                    name = f"{process.name or 'a process'} (PID {process.pid})"
                    neighbours[gpu] = (*neighbours.get(gpu, ()), name)
            cores = {
                each.pid: each.cores for each in sampled.processes.all if each.cores is not None
            }
            return Telemetry(metrics, neighbours, cores)

        return since
