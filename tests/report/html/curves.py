"""Curves of a study's runs, every value of which is known."""

from __future__ import annotations

from gpuwatch.analysis.results import StudyResult
from gpuwatch.analysis.samples.gauges import POINTS, SHOWN, Gauge, RunSeries
from gpuwatch.core.metrics import Method, reading_of

LEVELS = {"1": 0.4, "By/s": 8e11, "FLOP/s": 4e12, "W": 300.0, "By": 6e9, "Hz": 1.7e9}
LEVELS |= {"Cel": 60.0, "{sample}/s": 128.0, "": 2.0}
TIMED, BEFORE = 30.0, 6.0
"""Seconds of the timed steps, and before them."""
STEPS = 500


def curves_of(result: StudyResult, points: int = POINTS) -> list[RunSeries]:
    """Every metric rises evenly from 0 to twice its level, the same in every run."""
    step = (TIMED + BEFORE) / (points - 1)
    seconds = tuple(at * step - BEFORE for at in range(points))
    rising = tuple(2 * at / (points - 1) for at in range(points))
    metrics = {
        name: Gauge(
            reading_of(name)[1],
            Method.COUNTED if name.startswith("gpuwatch.") else Method.MEASURED,
            "a ramp",
            1,
            tuple(LEVELS[reading_of(name)[1]] * share for share in rising),
        )
        for name in SHOWN
    }
    steps = tuple(None if t < 0 else STEPS * t / TIMED for t in seconds)
    return [
        RunSeries(each.id, each.path, seconds, "first timed step", steps, metrics, 4)
        for each in result.sessions
    ]
