"""The ranks of a run: who is slower now, and own times over the time that is shown.

The analysis and numpy are loaded for a run of several ranks only.
"""

from __future__ import annotations

from array import array
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.units import NS
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.rows import DeviceRow, Processes, RankRow, RankStepRow
from gpuwatch.tui.feed.samples import RECENT_NS, Histories
from gpuwatch.tui.feed.snapshot import RankNow, RanksNow
from gpuwatch.tui.widgets.graph import Window

if TYPE_CHECKING:
    import numpy as np

    from gpuwatch.analysis.ranks.ranks import Ranks, Telemetry

JUDGED_NS = 300 * NS
"""How far back the ranks are compared."""
_MOST_RECENT = 20_000
"""Most rows that are kept one by one, of all ranks."""
_MOST_ROWS = 16_384
"""Most rows of a rank in the history; beyond it two of the older half become one."""
_LONGEST_NS = 3600 * NS
"""Longest stretch of one row; a file from elsewhere may hold any number."""
_CHUNK = 5000
_END_NS = 2**62


class OwnTime:
    """Steps and own seconds of one rank over time."""

    def __init__(self) -> None:
        self.starts, self.ends = array("d"), array("d")
        """Of each row, in nanoseconds."""
        self._steps, self._own = array("d"), array("d")
        """Sums up to the end of each row."""

    def add(self, row: RankStepRow, own: float, seconds: float) -> None:
        """Add the steps of a row behind all others, spread evenly over the time they took."""
        before = self.ends[-1] if self.ends else 0.0
        if row.t <= before:
            return
        taken = min(max(1, round(seconds * NS)), _LONGEST_NS)
        self.starts.append(max(before, row.t - taken))
        self.ends.append(row.t)
        self._steps.append(row.count + (self._steps[-1] if self._steps else 0.0))
        self._own.append(own + (self._own[-1] if self._own else 0.0))
        if len(self.ends) > _MOST_ROWS:
            half = _MOST_ROWS // 2
            self.starts = self.starts[:half:2] + self.starts[half:]
            for name in ("ends", "_steps", "_own"):
                values = getattr(self, name)
                setattr(self, name, values[1:half:2] + values[half:])

    def between(self, edges: np.ndarray) -> np.ndarray:
        """Steps and own seconds between neighbouring edges, shape (2, edges - 1)."""
        import numpy as np

        found = np.zeros((2, len(edges) - 1))
        times = np.ravel(np.column_stack([self.starts, self.ends]))
        for at, sums in enumerate((self._steps, self._own) if self.ends else ()):
            known = np.ravel(np.column_stack([np.append(0.0, sums[:-1]), sums]))
            found[at] = np.diff(np.interp(edges, times, known))
        return found


class OwnTimes:
    """Own times of all ranks: those read as they come, and those that were there before."""

    def __init__(self) -> None:
        self._new: defaultdict[int, OwnTime] = defaultdict(OwnTime)
        self._old: defaultdict[int, OwnTime] = defaultdict(OwnTime)

    def add(self, rows: Iterable[RankStepRow], *, old: bool = False) -> None:
        """Add rows in order; ``old``: they are from before the first one that is not."""
        from gpuwatch.analysis.ranks.own_time import own_seconds, seconds_of

        to = self._old if old else self._new
        for row in rows:
            own, seconds = own_seconds(row), seconds_of(row)
            plausible = own is not None and seconds is not None and 0 <= own <= 2 * seconds
            if not row.warmup and plausible and own is not None and seconds is not None:
                to[row.rank].add(row, own, seconds)

    def columns(self, ranks: Sequence[int], view: Window, until: int) -> list[list[float | None]]:
        """For each rank and column the own time over that of the median rank, less 1; ``None``:
        no steps, or after ``until``."""
        import numpy as np

        edges = np.array(view.edges(), dtype=float)
        found = [self._old[rank].between(edges) + self._new[rank].between(edges) for rank in ranks]
        steps, own = np.stack(found, axis=1)
        known = (steps > 1e-6) & (edges[:-1] < until)
        per_step = np.divide(own, steps, out=np.full_like(own, np.nan), where=known)
        middle = np.maximum(0, (known.sum(axis=0) - 1) // 2)
        median = np.sort(per_step, axis=0)[middle, np.arange(len(middle))]
        known &= median > 0
        relative = np.divide(per_step, median, out=np.zeros_like(own), where=known) - 1
        return [
            [value if shown else None for value, shown in zip(*row, strict=True)]
            for row in zip(relative.tolist(), known, strict=True)
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
        self._own: OwnTimes = current._own if current else OwnTimes()
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
            self._recent.extend(rows)
            if self._fills:
                self._own.add(rows)
        newest = max((row.t for row in self._recent), default=0)
        while self._recent and self._recent[0].t < newest - RECENT_NS:
            self._recent.popleft()

    def backfill(self) -> bool:
        """Read one chunk of older rows; returns whether there may be more."""
        if not self._fills or self._back >= self._first:
            return False
        rows = self._reader.rank_steps(self._back, _CHUNK)
        self._own.add((row for row in rows if row.n <= self._first), old=True)
        self._back = rows[-1].n if rows else self._first
        return self._back < self._first

    def now(self, view: Window, t: int, sampled: Sampled) -> RanksNow | None:
        """What is shown of the ranks; ``None`` for a run of fewer than two."""
        if len(self._rows) < 2:
            return None
        from gpuwatch.analysis.ranks.wording import sentences, short

        ranks = self._ranks(sampled)
        if ranks is None or not self._recent:
            return None
        numbers = [each.rank for each in ranks.figures]
        columns = self._own.columns(numbers, view, t)
        ids = {row.uuid: row.id for row in sampled.devices if row.uuid}
        slow = {each.excess.rank: each.excess.relative for each in ranks.stragglers}
        return RanksNow(
            line=short(ranks),
            sentences=tuple(sentences(ranks)),
            ranks=tuple(
                RankNow(
                    figures=each,
                    device=ids.get(each.device, each.device) if each.device else None,
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
