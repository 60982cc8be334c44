"""Rows of a comparison: executed FLOP, profiles, shares of ceilings, energy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from gpuwatch.analysis.comparison.comparison_row import ComparisonRow, Value, row_of
from gpuwatch.analysis.hardware.ceilings import BANDWIDTH, MEASURED, PEAK, SHEET, Ceiling
from gpuwatch.analysis.hardware.efficiency import Efficiency, Share
from gpuwatch.analysis.hardware.kernels import times_of
from gpuwatch.analysis.hardware.mfu import HFU, MFU, MFU_AT_MAXIMUM_CLOCK, MODEL_FLOP
from gpuwatch.analysis.hardware.points import KINDS
from gpuwatch.analysis.hardware.profile import Counters
from gpuwatch.analysis.measured_value import MeasuredValue
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.core.metrics import Method
from gpuwatch.core.models import number

_EXECUTED = (
    ("executed FLOP", "FLOP", "flop_per_step"),
    ("DRAM bytes read", "By", "dram_read_bytes_per_step"),
    ("DRAM bytes written", "By", "dram_write_bytes_per_step"),
)
_EXECUTED_IN_ALL = (
    ("executed FLOP", "FLOP", "flop"),
    ("DRAM bytes read", "By", "dram_read_bytes"),
    ("DRAM bytes written", "By", "dram_write_bytes"),
)
_PROFILED = (
    ("kernels", "kernels"),
    ("copies from host to device", "copies_to_device"),
    ("memset", "memset"),
)
_EFFICIENCY: tuple[tuple[str, str, Callable[[Efficiency], MeasuredValue]], ...] = (
    ("energy per step", "J", lambda of: of.energy.gpu_per_step),
    ("energy per sample", "J", lambda of: of.energy.gpu_per_sample),
    ("CPU energy per step", "J", lambda of: of.energy.cpu_per_step),
    ("device memory traffic per step", "By", lambda of: of.traffic.per_step),
)


def kernel_rows(sessions: Sequence[Summary]) -> list[ComparisonRow]:
    """Executed FLOP, DRAM bytes, and time in kernels, copies and memset.

    Per step; in a separate group for the whole profile where its number of steps is unknown.
    """
    return [
        *_executed("work per step", _EXECUTED, sessions),
        *_times("profile, per step", sessions, per_step=True),
        *_executed("profile, all of it", _EXECUTED_IN_ALL, sessions),
        *_times("profile, all of it", sessions, per_step=False),
    ]


def _executed(
    group: str, quantities: Sequence[tuple[str, str, str]], sessions: Sequence[Summary]
) -> list[ComparisonRow]:
    return [
        row_of(group, name, unit, sessions, _from_counters(key)) for name, unit, key in quantities
    ]


def _times(group: str, sessions: Sequence[Summary], *, per_step: bool) -> list[ComparisonRow]:
    return [
        _with_time_methods(
            row_of(group, name, "s", sessions, _profiled(key, per_step=per_step)), sessions
        )
        for name, key in _PROFILED
    ]


def _with_time_methods(row: ComparisonRow, sessions: Sequence[Summary]) -> ComparisonRow:
    """The row, with the methods of times that a profile derives."""
    profiles = [session.profile for session in sessions]
    methods = tuple(
        method if profile is None or method is Method.UNAVAILABLE else profile.time_method
        for method, profile in zip(row.methods, profiles, strict=True)
    )
    return replace(row, methods=methods)


def efficiency_rows(sessions: Sequence[Summary]) -> list[ComparisonRow]:
    """MFU, intensity, energy, traffic, and shares of the same kind of ceiling."""
    return [
        _intensity_row(sessions),
        _mfu_row(MFU, 0, sessions, lambda of: of.mfu),
        _mfu_row(MFU_AT_MAXIMUM_CLOCK, 1, sessions, lambda of: of.mfu_at_maximum_clock),
        _mfu_row(HFU, 0, sessions, lambda of: of.hfu),
        *(_figure_row(name, unit, sessions, figure) for name, unit, figure in _EFFICIENCY),
        _share_row("FLOP/s", sessions, lambda of: of.flop_shares),
        _share_row("algorithmic bytes/s", sessions, lambda of: of.bytes_shares),
        _share_row("memory bandwidth", sessions, lambda of: of.bandwidth_shares),
    ]


def mfu_notes(sessions: Sequence[Summary]) -> list[str]:
    """Which FLOP, type and peak MFUs of several sessions are of."""
    peaks = [
        f"the dense {session.efficiency.mfu_peaks[0].ceiling.text}"
        for session in sessions
        if session.efficiency.mfu.value is not None and session.efficiency.mfu_peaks[0].ceiling
    ]
    if len(sessions) < 2 or not peaks:
        return []
    return [f"MFU: {MODEL_FLOP}, over {' and '.join(dict.fromkeys(peaks))}"]


def energy_notes(sessions: Sequence[Summary]) -> list[str]:
    """A note where the energies were measured in different ways."""
    sources = [session.efficiency.energy.gpu.source for session in sessions]
    ways = dict.fromkeys(source.partition(" (")[0] for source in sources if source)
    if len(ways) < 2:
        return []
    methods = " and by ".join(ways)
    return [f"energy was measured in different ways, by {methods}: small differences mean little"]


def _from_counters(key: str) -> Value:
    return lambda session: _counter(session.counters, key)


def _counter(counters: Counters | None, key: str) -> float | None:
    return None if counters is None else number(getattr(counters, key))


def _profiled(key: str, *, per_step: bool) -> Value:
    """Mean per step of a gpuwatch profile; the total of an import, whose steps are unknown."""

    def value(session: Summary) -> float | None:
        steps = None if session.profile is None else session.profile.steps
        total = number(getattr(times_of(session.profile), key))
        if total is None or bool(steps) is not per_step:
            return None
        return total / steps if steps else total

    return value


def _figure_row(
    name: str, unit: str, sessions: Sequence[Summary], figure: Callable[[Efficiency], MeasuredValue]
) -> ComparisonRow:
    found = [figure(session.efficiency) for session in sessions]
    return ComparisonRow(
        "efficiency", name, unit, tuple(e.value for e in found), tuple(e.method for e in found)
    )


def _mfu_row(
    name: str,
    at: int,
    sessions: Sequence[Summary],
    mfu: Callable[[Efficiency], MeasuredValue],
) -> ComparisonRow:
    """MFU with the peaks behind it: each session's ``at``-th."""
    row = _figure_row(name, "1", sessions, mfu)
    peaks = [session.efficiency.mfu_peaks[at].ceiling for session in sessions]
    known = zip(peaks, row.values, strict=True)
    return replace(row, ceilings=tuple(None if value is None else peak for peak, value in known))


def _intensity_row(sessions: Sequence[Summary]) -> ComparisonRow:
    """Intensity by the most trustworthy bytes known for every session with a point."""
    points = [
        {
            point.bytes_kind: point
            for point in session.efficiency.roofline.points
            if point.method is not Method.BOUND
        }
        for session in sessions
    ]
    kinds = [each for each in points if each]
    kind = next((kind for kind in KINDS if kinds and all(kind in each for each in kinds)), None)
    chosen = [each.get(kind or "") for each in points]
    return ComparisonRow(
        "efficiency",
        f"FLOP per byte, {kind}" if kind else "FLOP per byte",
        "FLOP/By",
        tuple(None if each is None else each.intensity for each in chosen),
        tuple(Method.UNAVAILABLE if each is None else each.method for each in chosen),
    )


def _share_row(
    name: str, sessions: Sequence[Summary], shares: Callable[[Efficiency], Sequence[Share]]
) -> ComparisonRow:
    """Shares of the first kind of ceiling known to every session that has ceilings."""
    found = [shares(session.efficiency) for session in sessions]
    kinds = [{each.ceiling.kind for each in of} for of in found if of]
    common = set.intersection(*kinds) if kinds else set()
    kind = next((each for each in (MEASURED, PEAK, SHEET) if each in common), None)
    chosen = [next((e for e in of if e.ceiling.kind == kind), None) for of in found]
    known = [None if each is None else each.ceiling for each in chosen]
    row_name = f"{name}, % of {_kind(known)}" if kind else name
    values = tuple(None if each is None else each.value for each in chosen)
    methods = tuple(
        Method.UNAVAILABLE if value is None else _share_method(name, session)
        for value, session in zip(values, sessions, strict=True)
    )
    return ComparisonRow("efficiency", row_name, "1", values, methods, ceilings=tuple(known))


def _kind(ceilings: Sequence[Ceiling | None]) -> str:
    """The kind of ceiling in a few words for the row's name."""
    first = next(each for each in ceilings if each is not None)
    if first.kind == MEASURED:
        return "measured copy" if first.name == BANDWIDTH else "measured product"
    return {PEAK: "peak", SHEET: "data-sheet peak"}[first.kind]


def _share_method(name: str, session: Summary) -> Method:
    measured = name.startswith("memory")
    return session.efficiency.bandwidth.method if measured else Method.COUNTED
