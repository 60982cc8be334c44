"""What is asked of the feed: which part of a session a screen looks at."""

from __future__ import annotations

from gpuwatch.core.lazy_dataclass import dataclass


@dataclass(frozen=True)
class View:
    """What the screen wants drawn: asked of the feed, which answers with a snapshot."""

    device: str | None = None
    """The GPU of the gauges; ``None`` for the first one that the run uses."""
    seconds: int | None = 60
    """Length of the history; ``None`` for all of it."""
    columns: int = 50
    roofline: bool = False
    """Whether the roofline is looked at: it is computed only then."""
    at: int | None = None
    """Session time in nanoseconds that is looked at; ``None``: the newest."""
    playing: bool = False
    """``at`` moves on by itself."""
    speed: float | None = 1.0
    """Session seconds a second while playing; ``None``: as fast as it draws."""
    metric: str | None = None
    """What the picked graph shows, one of ``Snapshot.metrics``; ``None``: there is none."""
    grid: bool = False
    """Whether all GPUs are looked at: their histories are made only then."""
    gauges: bool = True
    """Whether gauges are drawn; who looks at the devices' numbers alone needs none."""


@dataclass(frozen=True)
class Replay:
    """Which moment of a session is looked at, where that is not its end."""

    position_ns: int
    length_ns: int
    """Session time of the newest record, whatever is looked at."""
    playing: bool
    speed: float | None
    """Session seconds a second; ``None``: as fast as it draws."""
    live: bool
    """The run goes on meanwhile."""
