"""One parameter gone through: the throughput of each value, the best, and what cannot be told
from it."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.analysis.results import Cell, Sweep
from gpuwatch.models import JSON


def sweep_of(
    label: str,
    parameter: str,
    environment: str,
    points: Sequence[tuple[JSON, Cell | None, str | None]],
    margin: float,
) -> Sweep:
    """The sweep of ``points``: value of the parameter, its cell, and why there is none."""
    raise NotImplementedError
