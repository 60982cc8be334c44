"""A screen's request to its feed: the part of a session to show."""

from __future__ import annotations

from gpuwatch.core.lazy_dataclass import dataclass


@dataclass(frozen=True)
class View:
    """What the feed's next snapshots contain."""

    device: str | None = None
    """Id of the device of the gauges; ``None``: the first one of the run."""
    seconds: int | None = 60
    """Length of the history; ``None``: the whole session."""
    columns: int = 50
    """Columns of the history."""
    roofline: bool = False
    """Whether to compute the roofline."""
    at: int | None = None
    """Session time in nanoseconds; ``None``: the newest."""
    playing: bool = False
    """Whether the screen advances ``at``."""
    speed: float | None = 1.0
    """Session seconds per second while playing; ``None``: as fast as possible."""
    metric: str | None = None
    """The picked metric, one of ``Snapshot.metrics``; ``None``: none."""
    grid: bool = False
    """Whether to make the panels of all GPUs."""
    gauges: bool = True
    """Whether to make the gauges."""


@dataclass(frozen=True)
class Replay:
    """The position of an earlier moment in its session."""

    position_ns: int
    length_ns: int
    """Session time of the newest record."""
    playing: bool
    speed: float | None
    """Session seconds per second; ``None``: as fast as possible."""
    live: bool
    """Whether the run is live now."""
