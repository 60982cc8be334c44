"""The gauges of a run over time, thinned to what a picture can show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpuwatch.metrics import Method
from gpuwatch.session.reader import SessionReader

POINTS = 300
"""Points of a curve that a picture of a page's width can show."""


@dataclass(frozen=True)
class Gauge:
    """One metric of a run, one value for each of the run's points."""

    unit: str
    method: Method
    source: str
    devices: int
    """How many devices it is the mean of."""
    values: tuple[float | None, ...]


@dataclass(frozen=True)
class RunSeries:
    """What the gauges of one session showed, its points in the order of time."""

    session: str
    """Id of the session."""
    path: str
    """Its file, as in ``Summary.path``."""
    seconds: tuple[float, ...]
    """Since ``zero``; negative before it."""
    zero: str
    """``first timed step`` (its start), or ``start of the recording`` where no step is timed."""
    steps: tuple[float | None, ...]
    """Timed steps done by then, with fractions; ``None`` outside the timed steps."""
    metrics: Mapping[str, Gauge]
    """By name, those of which some value is known, in the order in which people read them."""
    merged: int
    """The most samples that one point is the mean of; 1: the points are the samples."""


def points_for(runs: int) -> int:
    """Points of each run's curves so that a page of so many ``runs`` stays under a megabyte."""
    raise NotImplementedError


def run_series(reader: SessionReader, points: int = POINTS) -> RunSeries:
    """Read the gauges of a session, at most ``points`` values of each.

    Where there are more samples, equal stretches of time are averaged. Of several devices that the
    run used, a gauge is their mean. A long session is read from its ten-second tier.

    Raises:
        NotASession: the file is damaged.
    """
    raise NotImplementedError
