"""Whether a value of a comparison is better or worse than the baseline's."""

from __future__ import annotations

from gpuwatch.analysis.comparison.comparison_row import ALL_STEPS, PAID, STEADY
from gpuwatch.analysis.results import OF_THE_RUN, ComparisonRow, Kind, Verdict
from gpuwatch.analysis.statistics.intervals import lower_end

BETTER, WORSE = "better", "worse"
_TIMED = ("image", "start-up and time", "steps", "phases, mean", "generation", "ranks")
_LESS = {(group, "s") for group in (*_TIMED, "profile, per step")} | {
    *(("ranks", "1"), ("efficiency", "J"), ("training", ""))
}
"""Groups and units of the quantities of which less is better."""
_RATES = {("steps", "{sample}/s"), ("steps", "{token}/s"), ("mean", "FLOP/s")}
_MORE = {*_RATES, ("generation", "{token}/s"), ("training", "{accuracy}")}
_MORE_OF = ("MFU", "FLOP/s, % of")
"""Beginnings of the names of shares of which more is better."""
_JUDGED = {STEADY, ALL_STEPS, PAID, "step time, median", "step time, mean"}


def effect(row: ComparisonRow, at: int, baseline: int, verdict: Verdict) -> str:
    """``better`` or ``worse`` if the value of ``at`` is so by more than the margin.

    Empty where the runs do not show it, the two are not comparable, or it is not known which is
    better: of a GPU's power, memory or use nobody can say. ``verdict``: of ``at``.
    """
    share = row.group == "efficiency" and row.name.startswith(_MORE_OF)
    more = share or (row.group, row.unit) in _MORE
    ratio, change = row.ratios[at], row.change(at)
    judged = change is not None and change is verdict.change  # also of whole runs
    if at == baseline or not ratio or not shows(row, at, baseline):
        return ""
    if row.name in OF_THE_RUN and not judged:
        return ""
    if verdict.kind in (Kind.INVALID, Kind.DESCRIBED):  # two blocks show noise as often
        return ""
    if not more and (row.group, row.unit) not in _LESS:
        return ""
    judged = judged or share or (row.group, row.unit) in _RATES or row.name in _JUDGED
    if verdict.kind is Kind.CANT_TELL and judged:
        return ""
    margin = verdict.margin
    low, high = (ratio - 1, ratio - 1) if change is None else (change.low, change.high)
    if low > margin:
        return BETTER if more else WORSE
    if high < lower_end(margin):
        return WORSE if more else BETTER
    return ""


def shows(row: ComparisonRow, at: int, baseline: int) -> bool:
    """Whether the runs show a difference; single ones cannot contradict it."""
    if not row.of_cells:
        return True
    change = row.change(at)
    if change is not None:
        return not change.low <= 0 <= change.high
    ends = (row.lows[at], row.highs[at], row.lows[baseline], row.highs[baseline])
    low, high, base_low, base_high = ends
    if low is None or high is None or base_low is None or base_high is None:
        return False
    return low > base_high or high < base_low
