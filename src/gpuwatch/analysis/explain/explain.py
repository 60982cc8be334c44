"""Explain a difference between two environments, down the ladder of explanation.

Settings, GPU kernel time, copies, the host, versions, kernels, clocks, load, limits, start-up.
Evidence goes with a change and never claims to be its cause: ``docs/explanation.md``.
"""

from __future__ import annotations

from gpuwatch.analysis.explain.conditions import conditions, load
from gpuwatch.analysis.explain.kernels import differing, executed
from gpuwatch.analysis.explain.settings import fingerprint, limits, settings, versions
from gpuwatch.analysis.explain.sides import Sides
from gpuwatch.analysis.explain.startup import start_up
from gpuwatch.analysis.explain.time import where
from gpuwatch.analysis.results import Cell, Explanation


def explain(baseline: Cell, other: Cell, margin: float, *, by_total: bool = False) -> Explanation:
    """Evidence on the change from ``baseline`` to ``other``, from the judged runs of both.

    Differing settings first, since somebody chose them; parts of the step, the largest change
    first; then differing versions, kernels, clocks and limits, and the load of other programs;
    start-up last. Unknowns are left out. ``margin`` is relative: a part within it is unchanged.
    Extra start-up comes with the number of steps after which it is below that share of the whole
    time, or faster steps have made up for it. ``by_total``: the change is that of all steps.
    """
    sides = Sides(baseline, other, margin, by_total)
    facts = fingerprint(sides)
    kernels, families, ran = differing(sides)
    start, started = start_up(sides)
    parts = sorted(where(sides), key=lambda each: -each[0])
    rungs = (
        settings(sides, facts),
        *(evidence for _, evidence in parts),
        versions(sides, facts),
        ran,
        executed(sides),
        conditions(sides),
        load(sides),
        limits(sides, facts),
        started,
    )
    evidence = tuple(each for each in rungs if each is not None)
    return Explanation(evidence, facts, kernels, start, families)
