"""Why two environments differ: what goes with the change, down the ladder of explanation.

Versions, kernels, clocks, load, GPU kernel time, copies, the host, limits, start-up. It says what
goes with a change and never what caused it: ``docs/explanation.md``.
"""

from __future__ import annotations

from gpuwatch.analysis.explain.conditions import conditions, load
from gpuwatch.analysis.explain.kernels import differing, executed
from gpuwatch.analysis.explain.settings import fingerprint, limits, versions
from gpuwatch.analysis.explain.sides import Sides
from gpuwatch.analysis.explain.startup import start_up
from gpuwatch.analysis.explain.time import where
from gpuwatch.analysis.results import Cell, Explanation


def explain(baseline: Cell, other: Cell, margin: float) -> Explanation:
    """What goes with the change from ``baseline`` to ``other``, by the judged runs of both.

    Parts of the step first, the largest change first; then versions, kernels, clocks and limits
    that differ, and the load of other programs; start-up last. What is not known is left out.
    ``margin`` is relative: a part that is within it is unchanged. Extra start-up is told with the
    steps after which it is below that share of the whole time, or made up for by faster ones.
    """
    sides = Sides(baseline, other, margin)
    found = fingerprint(sides)
    kernels, ran = differing(sides)
    start, started = start_up(sides)
    parts = sorted(where(sides), key=lambda each: -each[0])
    rungs = (
        *(evidence for _, evidence in parts),
        versions(sides, found),
        ran,
        executed(sides),
        conditions(sides),
        load(sides),
        limits(sides, found),
        started,
    )
    return Explanation(tuple(each for each in rungs if each is not None), found, kernels, start)
