"""The ranks of a session as a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gpuwatch.analysis.ranks.ranks import RankFigures, Ranks
from gpuwatch.analysis.summary.summary import DeviceSummary
from gpuwatch.core import units
from gpuwatch.report.tables.grid import Grid

_MOST = 64
"""Ranks in a table; JSON has all."""
_LONGEST = 20
_COLUMNS: tuple[tuple[str, Callable[[RankFigures], str]], ...] = (
    ("step", lambda rank: units.milliseconds(rank.step_seconds)),
    ("own time", lambda rank: units.milliseconds(rank.own_seconds)),
    ("data wait", lambda rank: units.percent(rank.data_share)),
    ("samples/s", lambda rank: _rate(rank.samples_per_second)),
    ("tokens/s", lambda rank: _rate(rank.tokens_per_second)),
)


def rank_grid(ranks: Ranks, devices: Sequence[DeviceSummary]) -> Grid:
    """A row for each rank, without columns in which nothing is known."""
    ids = {device.uuid: device.id for device in devices if device.uuid}
    shown = ranks.figures[:_MOST]
    rows = [
        [str(rank.rank), _device(rank, ids)] + [text(rank) for _, text in _COLUMNS]
        for rank in shown
    ]
    if len(ranks.figures) > _MOST:
        rows.append([f"and {len(ranks.figures) - _MOST} more", *[""] * (1 + len(_COLUMNS))])
    head = ["rank", "device", *(name for name, _ in _COLUMNS)]
    known = [
        at for at in range(len(head)) if at < 2 or any(row[at] != units.UNKNOWN for row in rows)
    ]
    return Grid(
        tuple(head[at] for at in known), tuple(tuple(row[at] for at in known) for row in rows)
    )


def _device(rank: RankFigures, ids: Mapping[str, str]) -> str:
    if rank.device is None:
        return units.UNKNOWN
    return ids.get(rank.device, rank.device)[:_LONGEST]


def _rate(value: float | None) -> str:
    return units.UNKNOWN if value is None else units.si(value, "")
