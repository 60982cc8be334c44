"""The rows of a comparison: one quantity of several sessions each, and when it has a ratio."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gpuwatch.analysis.hardware.ceilings import BANDWIDTH, MEASURED, PEAK, SHEET
from gpuwatch.analysis.hardware.ceilings import KINDS as CEILINGS
from gpuwatch.analysis.hardware.efficiency import Efficiency, Share
from gpuwatch.analysis.hardware.kernels import times_of
from gpuwatch.analysis.hardware.mfu import HFU, MFU, MFU_AT_MAXIMUM_CLOCK
from gpuwatch.analysis.hardware.points import KINDS
from gpuwatch.analysis.measured_value import MeasuredValue
from gpuwatch.analysis.results import ComparisonRow
from gpuwatch.analysis.summary.identity import baseline, sound
from gpuwatch.analysis.summary.identity import training as settings_of
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.analysis.summary.training import NAMES, unit_of
from gpuwatch.core import units
from gpuwatch.core.metrics import Method
from gpuwatch.core.models import number

Value = Callable[[Summary], float | None]

STEADY = "step time, typical"
"""Name of the row of the typical step, the primary metric."""
ALL_STEPS = "step time, steady mean"
"""Name of the row of what users pay: slow steps, and what happens between steps, included."""
_AS_LONG = 0.05
"""Difference of the numbers of steps up to which totals have a ratio: the hook times one more or
less."""
DEGREES = "Cel"
"""A unit whose zero is a convention: values have a difference, and no ratio."""


def row_of(
    group: str,
    name: str,
    unit: str,
    sessions: Sequence[Summary],
    value: Value,
    method: Method | Callable[[Summary], Method] = Method.MEASURED,
) -> ComparisonRow:
    """The row of ``value`` for each session, known by ``method``, or by that of the session."""
    values = tuple(value(session) for session in sessions)
    known = [method if isinstance(method, Method) else method(session) for session in sessions]
    methods = (
        Method.UNAVAILABLE if each is None else how for each, how in zip(values, known, strict=True)
    )
    return ComparisonRow(group, name, unit, values, tuple(methods))


def found_row(
    group: str,
    name: str,
    unit: str,
    found: Sequence[Any],
    value: Callable[[Any], float | None] = lambda each: each.value,
    *,
    at_most: bool = False,
) -> ComparisonRow:
    """The row of what was ``found`` in each session, ``None`` or with its method; ``at_most``: a
    bound is an upper one."""
    values = tuple(None if each is None else value(each) for each in found)
    methods = tuple(Method.UNAVAILABLE if each is None else each.method for each in found)
    return ComparisonRow(group, name, unit, values, methods, at_most=at_most)


def at(where: str) -> Value:
    """What is at ``where`` in a summary, such as ``steps.count``."""

    def value(session: Summary) -> float | None:
        found: Any = session
        for key in where.split("."):
            found = found.get(key) if isinstance(found, Mapping) else getattr(found, key, None)
        return number(found)

    return value


def same_ceiling(row: ComparisonRow, one: int, other: int) -> bool:
    """Whether two values of a row are shares of the same ceiling, or of none."""
    if not row.ceilings:
        return True
    first, second = row.ceilings[one], row.ceilings[other]
    return (
        first is None or second is None or (first.name, first.value) == (second.name, second.value)
    )


def ceiling_notes(rows: Sequence[ComparisonRow]) -> list[str]:
    """Notes on shares without a ratio because their ceilings differ."""
    notes = []
    for row in rows:
        known = [each for each in row.ceilings if each is not None]
        if len({(each.name, each.value) for each in known}) > 1:
            names = {each.name for each in known}
            ceilings = " against ".join(
                units.si(each.value, "B/s" if each.name == BANDWIDTH else each.unit)
                + ("" if len(names) == 1 else f" {each.name}")
                for each in known
            )
            notes.append(f"different ceilings, so no ratio of {row.name}: {ceilings}")
    return notes


TRAINING = "training"
STEP, EPOCH = "step", "epoch"


def name_of(key: str, kind: str) -> str:
    """Name of a row: ``last loss``, of a program that prints it now and then of an earlier step,
    or ``loss, last epoch``."""
    return f"last {NAMES[key]}" if kind == STEP else f"{NAMES[key]}, last {kind}"


_PLACES = {name_of(key, kind): (key, kind) for kind in (STEP, EPOCH) for key in NAMES}


def training_rows(sessions: Sequence[Summary]) -> list[ComparisonRow]:
    """The last figures of the steps and of the epochs, and the numbers of these."""
    rows = []
    for kind in (STEP, EPOCH):
        for key in NAMES:
            value = at(f"training.{kind}.{key}.figure.value")
            rows.append(row_of(TRAINING, name_of(key, kind), unit_of(key), sessions, value))
        name, unit, place = f"read at {kind}", f"{{{kind}}}", at(f"training.{kind}.at")
        rows.append(row_of(TRAINING, name, unit, sessions, place, Method.COUNTED))
    return rows


def trained_alike(row: ComparisonRow, one: Summary, other: Summary) -> bool:
    """Whether two values of a row have the same seed and number of steps or epochs: only then is a
    difference one of arithmetic."""
    if row.name not in _PLACES:
        return False
    key, kind = _PLACES[row.name]
    seeds = [settings_of(session).get("seed") for session in (one, other)]
    place = at(f"training.{kind}.{key}.at")
    places = [place(session) for session in (one, other)]
    return None not in (*seeds, *places) and seeds[0] == seeds[1] and places[0] == places[1]


_SAMPLED = frozenset({"mean", "over the window", "maximum"})
"""Groups of rows that depend on the session's window."""


THROUGHPUT = "throughput"
"""Name of the row of the rate over all timed steps."""
PAID = "throughput, steady mean"
"""Name of the row in its place where verdicts judge: of the steady part, as ``ALL_STEPS``."""


def paid(session: Summary, total: float | None) -> float | None:
    """Samples/s of a run whose steps take ``total`` seconds each, all that happens included; none
    where not all of its steps tell their samples."""
    samples, rate = session.steps.samples_per_step, session.steps.samples_per_second
    return None if samples is None or rate is None or not total else samples / total


def with_ratios(row: ComparisonRow, sessions: Sequence[Summary]) -> ComparisonRow:
    """``row`` with ratios to the first session that did not fail."""
    base = baseline(sessions)
    if base is None:
        return replace(row, ratios=(None,) * len(row.values))
    ratios = tuple(clear_ratio(row, sessions, base, at) for at in range(len(sessions)))
    return replace(row, ratios=ratios)


def ratio(row: ComparisonRow, sessions: Sequence[Summary], base: int, at: int) -> float | None:
    """The value of ``at`` over that of ``base``; ``None`` where they are not comparable, such as
    losses of runs with different seeds or numbers of steps, totals of runs with different numbers
    of steps, and :data:`DEGREES`."""
    value, first = row.values[at], row.values[base]
    sampled = row.group in _SAMPLED and not row.name.startswith("gpuwatch.")
    if (
        value is None
        or first is None
        or (not first and (not value or row.unit != "1"))
        or row.unit == DEGREES
        or (row.is_total and not as_long(sessions[base], sessions[at]))
        or not (sound(sessions[base]) and sound(sessions[at]))
        or (sampled and sessions[at].window.kind != sessions[base].window.kind)
        or Method.BOUND in (*row.methods[at : at + 1], *row.methods[base : base + 1])
        or not same_ceiling(row, base, at)
        or (row.group == TRAINING and not trained_alike(row, sessions[base], sessions[at]))
    ):
        return None
    return value / first if first else math.inf


def clear_ratio(
    row: ComparisonRow, sessions: Sequence[Summary], base: int, at: int
) -> float | None:
    """The :func:`ratio` of single values; ``None`` too where they differ by less than their
    errors."""
    of, error = ratio(row, sessions, base, at), row.error(base, at)
    within = of is not None and at != base and error and abs(of - 1) <= error
    return None if within else of


def as_long(one: Summary, other: Summary) -> bool:
    first, second = one.steps.count or 0, other.steps.count or 0
    return abs(first - second) <= _AS_LONG * max(first, second)


_GENERATION = "generation"


def generation_rows(sessions: Sequence[Summary]) -> list[ComparisonRow]:
    """Time to first token, tokens per second and cache; no rows where no session generates."""
    listed = [{} if each.generation is None else each.generation.figures for each in sessions]
    units = {name: figure.unit for figures in listed for name, figure in figures.items()}
    rows = []
    for name, unit in units.items():
        rows.append(found_row(_GENERATION, name, unit, [figures.get(name) for figures in listed]))
    return rows


_EXECUTED = (
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
    rows = []
    for executed, times, of in (
        ("work per step", "profile, per step", "_per_step"),
        ("profile, all of it", "profile, all of it", ""),
    ):
        for name, unit, key in _EXECUTED:
            rows.append(row_of(executed, name, unit, sessions, at(f"counters.{key}{of}")))
        for name, key in _PROFILED:
            value = _profiled(key, per_step=bool(of))
            rows.append(row_of(times, name, "s", sessions, value, _time_method))
    return rows


def _time_method(session: Summary) -> Method:
    return Method.UNAVAILABLE if session.profile is None else session.profile.time_method


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


def energy_notes(sessions: Sequence[Summary]) -> list[str]:
    """A note where the energies were measured in different ways."""
    sources = [session.efficiency.energy.gpu.source for session in sessions]
    ways = dict.fromkeys(source.partition(" (")[0] for source in sources if source)
    if len(ways) < 2:
        return []
    methods = " and by ".join(ways)
    return [f"energy was measured in different ways, by {methods}: small differences mean little"]


def _profiled(key: str, *, per_step: bool) -> Value:
    return lambda session: number(getattr(times_of(session.profile, per_step=per_step), key))


def _figure_row(
    name: str, unit: str, sessions: Sequence[Summary], figure: Callable[[Efficiency], MeasuredValue]
) -> ComparisonRow:
    found = [figure(session.efficiency) for session in sessions]
    errors = tuple(each.error for each in found)
    return replace(found_row("efficiency", name, unit, found), errors=errors)


def _mfu_row(
    name: str, at: int, sessions: Sequence[Summary], mfu: Callable[[Efficiency], MeasuredValue]
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
    name = f"FLOP per {kind} byte" if kind else "FLOP per byte"
    return found_row("efficiency", name, "FLOP/By", chosen, lambda each: each.intensity)


def _share_row(
    name: str, sessions: Sequence[Summary], shares: Callable[[Efficiency], Sequence[Share]]
) -> ComparisonRow:
    """Shares of the first kind of ceiling known to every session that has ceilings."""
    found = [{each.ceiling.kind: each for each in shares(of.efficiency)} for of in sessions]
    having = [of_kind for of_kind in found if of_kind]
    kind = next((k for k in CEILINGS if having and all(k in of_kind for of_kind in having)), None)
    words = {PEAK: "peak at maximum clock", SHEET: "data-sheet peak"}
    words[MEASURED] = "measured copy" if name != "FLOP/s" else "measured product"
    row_name = f"{name}, % of {words[kind]}" if kind else name
    chosen = [of_kind.get(kind or "") for of_kind in found]
    measured = name.startswith("memory")
    methods = (of.efficiency.bandwidth.method if measured else Method.COUNTED for of in sessions)
    return ComparisonRow(
        *("efficiency", row_name, "1"),
        tuple(None if share is None else share.value for share in chosen),
        tuple(
            Method.UNAVAILABLE if share is None else method
            for share, method in zip(chosen, methods, strict=True)
        ),
        ceilings=tuple(None if share is None else share.ceiling for share in chosen),
    )
