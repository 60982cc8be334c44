"""One table per device: how well each case of a study uses it, and what a sample costs."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence

from gpuwatch.analysis.comparison.same_work import device_kind
from gpuwatch.analysis.hardware.bound import UNKNOWN
from gpuwatch.analysis.hardware.efficiency import Share
from gpuwatch.analysis.hardware.kernels import family_seconds
from gpuwatch.analysis.results import Cell, Cost, Question, StudyResult
from gpuwatch.analysis.statistics.intervals import LEAST, difference, middle
from gpuwatch.analysis.study.cost import cost_text
from gpuwatch.analysis.summary.identity import device_names, sound, used_gpus
from gpuwatch.analysis.summary.summary import DeviceSummary, Summary
from gpuwatch.core import units
from gpuwatch.core.aggregate import grouped
from gpuwatch.core.models import JSON, number
from gpuwatch.core.peaks import peaks, sheet_peaks
from gpuwatch.core.text import clean
from gpuwatch.report.document.blocks import Heading, Item, Section, Sentence, Table
from gpuwatch.report.document.quantities import breakable

_HEAD = ("case", "median step", "throughput", "FLOP/s", "MFU", "bandwidth", "J/sample", "bound by")
_COST = "EUR/million"
_SPECIFIED = ("device", "memory", "peak FLOP/s", "bandwidth", "compute capability", "driver")
_AT_CLOCK = "(m)"
_SPECIFIED_BY = (
    "memory of one GPU, compute capability, driver: NVML. Peak FLOP/s of the run's data type, of "
    "all its GPUs, and bandwidth of one: the data sheet's, or "
    f"{_AT_CLOCK} at the maximum clocks by NVML."
)
_ALGORITHMIC, _CPU, _PRODUCT = "(a)", "(c)", "(p)"
_LEGEND = (
    "of all timed steps of the judged runs, as `show` has them: their geometric mean, of "
    f"{LEAST} or more over its 95 % interval. Median step, energy: measured; throughput, "
    "FLOP/s, MFU (model FLOP, without recomputation, of the data sheet's dense peak of the run's "
    f"data type, or {_PRODUCT} of the measured product): counted. Bandwidth: share of the "
    f"device's, by hardware counters, or {_ALGORITHMIC} of algorithmic bytes, which caches may "
    f"serve. J/sample: of the GPUs, or {_CPU} of the CPU's packages. "
)
_PRICED = "EUR/million: the price of an hour by the steady throughput. "
_UNKNOWN = f"{units.UNKNOWN}: unknown, for the reasons above. "

_PROFILED = (
    "of a profiled step of the first judged run that has a profile, with its share of the time in "
    "kernels: measured; -: none ran."
)
_MOST_FAMILIES = 12

Value = Callable[[Summary], float | None]
_Of = tuple[Question, Cell, list[Summary]]
"""A case on a device, and its sound runs."""


def devices(result: StudyResult) -> Section:
    """The tables of what reports steps, of several cases or on several devices, else nothing; of a
    study without its own commands, which its other sections compare."""
    cases = [
        each
        for each in result.questions
        if result.plan is None or each.workload.get("kind") == "workload"
    ]
    rows: dict[str, list[_Of]] = {}
    for question in cases:
        for cell in question.cells:
            sessions = [run.session for run in cell.judged if sound(run.session)]
            if sessions and any(each.steps.count for each in sessions):
                name = ", ".join(device_names(sessions[0])) or "device not known"
                rows.setdefault(name, []).append((question, cell, sessions))
    if len(cases) < 2 and len(rows) < 2:
        return Section("devices", ())
    items: list[Item] = []
    if len(rows) > 1:
        specified = tuple(
            _specified(device, [session for _, _, sessions in of for session in sessions])
            for device, of in rows.items()
        )
        if any(set(row[1:]) != {units.UNKNOWN} for row in specified):
            items += [Table(_SPECIFIED, specified), Sentence("", _SPECIFIED_BY)]
        items += _kernel_times(rows, several=len(cases) > 1)
    for device, of in rows.items():
        priced = any(cell.cost is not None for _, cell, _ in of)
        head = (*_HEAD, _COST) if priced else _HEAD
        several = len({cell.label for _, cell, _ in of}) > 1
        items += [Heading(device)]
        grid = Table(head, tuple(_row(*each, several=several, priced=priced) for each in of))
        items += [grid, *_reasons(grid, [(cell.cost, sessions) for _, cell, sessions in of])]
    if items:
        grids = [item for item in items if isinstance(item, Table) and item.head[0] == _HEAD[0]]
        legend = _LEGEND + (_PRICED if any(_COST in grid.head for grid in grids) else "")
        unknown = any(units.UNKNOWN in row for grid in grids for row in grid.rows)
        items += [Sentence("", (legend + (_UNKNOWN if unknown else "")).strip())]
    return Section("devices", tuple(items), folded=False)


def _specified(name: str, sessions: Sequence[Summary]) -> tuple[str, ...]:
    """What the GPUs of a device are, by all its sessions: two hosts may have other drivers."""
    gpus = [(gpu, session) for session in sessions for gpu in used_gpus(session)]

    def told(key: str, shown: Callable[[JSON], str]) -> str:
        known = [gpu.attributes.get(key) for gpu, _ in gpus]
        return _each(shown(value) for value in known if value is not None)

    def bandwidth(gpu: DeviceSummary) -> str:
        sheet, at_clock = (of(gpu.attributes, gpu.name)["bandwidth"] for of in (sheet_peaks, peaks))
        return _peak(sheet.value, at_clock.value, "By/s")

    def flop(session: Summary) -> str:
        of = (each.ceiling for each in session.efficiency.mfu_peaks)
        sheet, at_clock = (None if each is None else each.value for each in of)
        text = _peak(sheet, at_clock, "FLOP/s")
        return text if text == units.UNKNOWN else f"{text} {session.efficiency.data_type}"

    return (
        name,
        told("memory.total", lambda value: units.binary(number(value))),
        _each(flop(session) for _, session in gpus),
        _each(bandwidth(gpu) for gpu, _ in gpus),
        told("compute.capability", lambda value: clean(str(value), 20)),
        told("driver.version", lambda value: clean(str(value), 20)),
    )


def _kernel_times(rows: Mapping[str, Sequence[_Of]], *, several: bool) -> list[Item]:
    """Time in each family of kernels, a column for each device; ``several``: cases."""
    times: dict[tuple[str, str], dict[str, float]] = {}
    for device, of in rows.items():
        for question, _, sessions in of:
            known = next(filter(None, (family_seconds(each.profile) for each in sessions)), None)
            if known is not None:
                times.setdefault((question.label, device), known)
    if len({device for _, device in times}) < 2:
        return []
    longest: dict[tuple[str, str], float] = {}
    for (case, _), known in times.items():
        for family, seconds in known.items():
            longest[case, family] = max(seconds, longest.get((case, family), 0.0))
    shown = sorted(longest, key=lambda row: -longest[row])[:_MOST_FAMILIES]
    table = [
        (
            f"{case}: {family}" if several else family,
            *(_kernel_time(times.get((case, device)), family) for device in rows),
        )
        for case, family in shown
    ]
    return [Table(("time in kernels", *rows), tuple(table)), Sentence("", _PROFILED)]


def _kernel_time(times: Mapping[str, float] | None, family: str) -> str:
    if times is None:
        return units.UNKNOWN
    if family not in times:
        return "-"
    share = times[family] / (sum(times.values()) or 1.0)
    return f"{units.quantity(times[family], 's')},\t{units.percent(share)}"


def _peak(sheet: float | None, at_clock: float | None, unit: str) -> str:
    if sheet is None and at_clock is not None:
        return f"{units.quantity(at_clock, unit)} {_AT_CLOCK}"
    return units.UNKNOWN if sheet is None else units.quantity(sheet, unit)


def _each(texts: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(texts)) or units.UNKNOWN


def _row(
    question: Question, cell: Cell, sessions: Sequence[Summary], *, several: bool, priced: bool
) -> tuple[str, ...]:
    case = f"{question.label} in {cell.label}" if several else question.label
    bounds = [each.efficiency.roofline.verdict.bound for each in sessions]
    known = (
        case,
        _shown(sessions, lambda of: of.steps.median_seconds, "s"),
        _shown(sessions, lambda of: of.steps.samples_per_second, "{sample}/s"),
        _shown(sessions, lambda of: of.efficiency.flop_rate.value, "FLOP/s"),
        _first_known(
            (_shown(sessions, lambda of: of.efficiency.mfu.value, "1"), ""),
            (_shown(sessions, lambda of: _first(of.efficiency.flop_shares), "1"), _PRODUCT),
        ),
        _first_known(
            (_shown(sessions, lambda of: _first(of.efficiency.bandwidth_shares), "1"), ""),
            (_shown(sessions, lambda of: _first(of.efficiency.bytes_shares), "1"), _ALGORITHMIC),
        ),
        _first_known(
            (_shown(sessions, lambda of: of.efficiency.energy.gpu_per_sample.value, "J"), ""),
            (_shown(sessions, _cpu_energy, "J"), _CPU),
        ),
        statistics.mode(bounds),
    )
    return (*known, _cost(cell.cost)) if priced else known


def _reasons(
    grid: Table, of_rows: Sequence[tuple[Cost | None, Sequence[Summary]]]
) -> list[Sentence]:
    """Why figures of the rows are unknown: of each its first run's reason, once, behind the columns
    that it holds for, with the rows where it does not hold for all."""
    found: dict[tuple[_Reason, str], list[str]] = {}
    for row, (cost, sessions) in zip(grid.rows, of_rows, strict=True):
        known = dict(zip(grid.head, row, strict=True))
        if cost is not None and cost.per_million is None:
            found.setdefault(((cost_text(cost), None), _COST), []).append(row[0])
        why = [_why(session) for session in sessions]
        for column in why[0]:
            reasons = [each[column] for each in why if each[column][0]]
            if reasons and known[column] in (units.UNKNOWN, UNKNOWN):
                found.setdefault((reasons[0], column), []).append(row[0])
    columns = grouped(((why, tuple(rows)), column) for (why, column), rows in found.items())
    return [
        Sentence(
            ", ".join(of),
            text or "" if len(rows) == len(grid.rows) else f"{', '.join(rows)}: {text}",
            hint,
        )
        for ((text, hint), rows), of in columns.items()
    ]


_Reason = tuple[str | None, str | None]
"""Why a figure is unknown, and what would tell it."""


def _why(session: Summary) -> dict[str, _Reason]:
    """Why each column that may be unknown is so."""
    of = session.efficiency
    verdict = of.roofline.verdict
    bound: _Reason = (verdict.text, verdict.hint) if verdict.bound == UNKNOWN else (None, None)
    rate = session.metrics.get("gpuwatch.throughput")
    untold = None if rate is None else rate.reason
    mfu: _Reason = (of.mfu.reason, None)
    bandwidth: _Reason = (of.bandwidth.reason, None)
    joules = of.energy.gpu_per_sample.reason
    # What a CPU reaches is known from its measured ceilings alone.
    if device_kind(session) != "GPU":
        mfu, bandwidth = bound if bound[0] else mfu, bound
        joules = of.energy.cpu_per_sample.reason
    return {
        "median step": (session.steps.reason, None),
        "throughput": (untold, None),
        "FLOP/s": (of.flop_rate.reason, None),
        "MFU": mfu,
        "bandwidth": bandwidth,
        "J/sample": (untold or joules, None),
        "bound by": bound,
    }


def _shown(sessions: Sequence[Summary], value: Value, unit: str) -> str:
    """Mean, and its interval if there are at least three runs and all values are positive."""
    values = [found for each in sessions if (found := value(each)) is not None]
    if not values:
        return units.UNKNOWN
    logs = difference([math.log(v) for v in values]) if min(values) > 0 else None
    if logs is None:
        return units.quantity(middle(values), unit)
    mean, low, high = (math.exp(each) for each in (logs.estimate, logs.low, logs.high))
    return f"{units.quantity(mean, unit)}\n{breakable(units.span(low, high, unit))}"


def _first_known(*ways: tuple[str, str]) -> str:
    """The value of the first way in which it is known, with the way's mark."""
    for text, mark in ways:
        if text != units.UNKNOWN:
            value, *below = text.split("\n")
            return "\n".join((f"{value} {mark}".rstrip(), *below))
    return units.UNKNOWN


def _cost(cost: Cost | None) -> str:
    if cost is None or cost.per_million is None:
        return units.UNKNOWN
    mean = units.three_figures(cost.per_million)
    if cost.low is None or cost.high is None:
        return mean
    return f"{mean}\n{units.three_figures(cost.low)}\tto {units.three_figures(cost.high)}"


def _first(shares: Sequence[Share]) -> float | None:
    return shares[0].value if shares else None


def _cpu_energy(session: Summary) -> float | None:
    """Joules of the CPU's packages per sample, of a run that used no GPU."""
    return None if device_kind(session) == "GPU" else session.efficiency.energy.cpu_per_sample.value
