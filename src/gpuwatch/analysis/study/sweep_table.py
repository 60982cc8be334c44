"""The points of a sweep as texts for every screen and report."""

from __future__ import annotations

from gpuwatch.analysis.comparison.wording import change_text
from gpuwatch.analysis.results import Sweep
from gpuwatch.analysis.summary.training import NAMES, unit_of
from gpuwatch.core import units
from gpuwatch.core.lazy_dataclass import dataclass


@dataclass(frozen=True)
class SweepRow:
    """One value of the parameter; an unknown figure is a dash."""

    value: str
    throughput: str
    step_time: str
    change: str
    """Of the throughput against the best; empty for the best, and if unknown."""
    rank: str
    """``best``, ``tied`` with it, or empty."""
    training: tuple[str, ...]
    """Loss and accuracies, as :func:`training_names` names them."""
    why: str | None
    """Why there is no figure, or why it cannot be the best."""


def sweep_table(sweep: Sweep) -> tuple[SweepRow, ...]:
    """One row per point, in the order requested."""
    return tuple(
        SweepRow(
            value="default" if point.value is None else units.fact(sweep.parameter, point.value),
            throughput=units.quantity(point.samples_per_second, "{sample}/s"),
            step_time=units.quantity(point.step_seconds, "s"),
            change="" if point.throughput is None else change_text(point.throughput),
            rank="best" if at == sweep.best else "tied" if point.tied else "",
            training=tuple(
                units.quantity(getattr(point, key), unit_of(key)) for key in _trained(sweep)
            ),
            why=point.why,
        )
        for at, point in enumerate(sweep.points)
    )


def training_names(sweep: Sweep) -> tuple[str, ...]:
    """The loss and accuracies that at least one point has."""
    return tuple(NAMES[key] for key in _trained(sweep))


def _trained(sweep: Sweep) -> list[str]:
    return [key for key in NAMES if any(getattr(e, key) is not None for e in sweep.points)]
