"""The ranks of a run: who is slower now, and own times over the time that is shown.

The analysis and numpy are loaded for a run of several ranks only.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpuwatch.core.units import NS
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.rows import DeviceRow, Processes, RankRow, RankStepRow
from gpuwatch.tui.feed.samples import RECENT_NS, Histories, Window
from gpuwatch.tui.feed.snapshot import RankNow, RanksNow

if TYPE_CHECKING:
    from gpuwatch.analysis.ranks.history import OwnTimes
    from gpuwatch.analysis.ranks.ranks import Ranks, Telemetry

JUDGED_NS = 300 * NS
"""How far back the ranks are compared."""
_MOST_RECENT = 20_000
"""Most rows that are kept one by one, of all ranks."""
_CHUNK = 5000
_END_NS = 2**62


class RankFeed:
    """Reads the steps of the ranks as they come."""

    def __init__(self, reader: SessionReader, current: RankFeed | None = None) -> None:
        """``current``: for an earlier moment, that of the present, whose history it uses."""
        self._reader = reader
        self._rows: list[RankRow] = []
        self._recent: deque[RankStepRow] = deque(maxlen=_MOST_RECENT)
        self._own: OwnTimes | None = current._own if current else None
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
        from gpuwatch.analysis.ranks.history import OwnTimes

        self._own = self._own or OwnTimes()
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
        if self._own is None or not self._fills or self._back >= self._first:
            return False
        rows = self._reader.rank_steps(self._back, _CHUNK)
        self._own.add((row for row in rows if row.n <= self._first), old=True)
        self._back = rows[-1].n if rows else self._first
        return self._back < self._first

    def now(
        self,
        view: Window,
        t: int,
        devices: Sequence[DeviceRow],
        series: Histories,
        processes: Processes,
    ) -> RanksNow | None:
        """What is shown of the ranks; ``None`` for a run of fewer than two."""
        if len(self._rows) < 2:
            return None
        from gpuwatch.analysis.ranks.wording import sentences, short

        ranks = self._ranks(devices, series, processes)
        if ranks is None or self._own is None or not self._recent:
            return None
        numbers = [each.rank for each in ranks.figures]
        columns = self._own.columns(numbers, view.edges(), t)
        ids = {row.uuid: row.id for row in devices if row.uuid}
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
        )

    def _ranks(
        self, devices: Sequence[DeviceRow], series: Histories, processes: Processes
    ) -> Ranks | None:
        """The comparison of the newest rows, made anew if there are new ones."""
        if self._judged[0] == self._after:
            return self._judged[1]
        from gpuwatch.analysis.ranks.ranks import Telemetry, ranks_of
        from gpuwatch.analysis.ranks.stragglers import METRICS

        newest = max((row.t for row in self._recent), default=0)
        uuids = {row.id: row.uuid for row in devices if row.kind == "gpu" and row.uuid}

        def since(start: int | None) -> Telemetry:
            begin = max(0, newest - JUDGED_NS) if start is None else start
            metrics: dict[str, dict[str, float]] = {}
            neighbours: dict[str, tuple[str, ...]] = {}
            for (id_, metric), history in series.items():
                if id_ in uuids and metric in METRICS:
                    mean = history.mean(begin, newest)
                    if mean is not None:
                        metrics.setdefault(uuids[id_], {})[metric] = mean
            for process in processes.on_gpus:
                gpu = uuids.get(process.device)
                if gpu and process.owned is False and process.running:
                    name = f"{process.name or 'a process'} (PID {process.pid})"
                    neighbours[gpu] = (*neighbours.get(gpu, ()), name)
            cores = {each.pid: each.cores for each in processes.all if each.cores is not None}
            return Telemetry(metrics, neighbours, cores)

        rows = [row for row in self._recent if row.t > newest - JUDGED_NS]
        self._judged = self._after, ranks_of(self._rows, rows, since)
        return self._judged[1]
