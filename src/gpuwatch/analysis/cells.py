"""Runs of one case in one environment: what belongs together, and what it is called."""

from __future__ import annotations

from dataclasses import dataclass

from gpuwatch.analysis.results import Steady
from gpuwatch.analysis.summary import Summary


@dataclass(frozen=True)
class Read:
    """One session, read once: its figures, and the steady part of its steps."""

    summary: Summary
    steady: Steady
