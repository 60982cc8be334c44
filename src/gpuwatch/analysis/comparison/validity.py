"""Whether two cells may be compared at all: what differs besides the environment, or disturbed one.

Each reason is a clause that names both values, the baseline's first.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.analysis.comparison.cells import valued
from gpuwatch.analysis.comparison.same_work import device_kind, told_by_one, work_differences
from gpuwatch.analysis.comparison.value_differences import Value, against, differ
from gpuwatch.analysis.hardware.crosscheck import Finding
from gpuwatch.analysis.results import Cell, Run
from gpuwatch.analysis.summary.identity import at_once, unknown_gpus, used_gpus
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.core import units
from gpuwatch.core.models import mapping, number

CLEARLY_HELD = 0.05
"""Difference of the shares of time with clocks held down from which on two are not comparable."""
BARELY_HELD = 0.01
"""Difference under which clocks that were held down on one side alone do not matter: the finding
starts at a share of its own, which two equal runs may fall on both sides of."""

_SHARING, _CLOCKS = "sharing", "clocks"
_THROTTLES = ("hw.gpu.throttle.power", "hw.gpu.throttle.thermal")
_PROCESSES = "{process}"
_SHORT = 16
"""Characters of a GPU's UUID that tell it from its neighbours."""


def invalid_reasons(baseline: Cell, other: Cell, *, across_devices: bool) -> tuple[str, ...]:
    """Why no verdict on ``other`` against ``baseline`` means anything; empty where one does."""
    one, two = _sessions(baseline), _sessions(other)
    reasons = work_differences(one, two)
    if not across_devices:
        reasons += device_differences(baseline, other) or _given_differently(baseline, other)
    if valued(baseline) and valued(other):
        reasons += [*_sharing(baseline, other), *_clocks(baseline, other)]
    return (*reasons, *_overlap(baseline, other))


def device_differences(baseline: Cell, other: Cell) -> list[str]:
    """Other GPUs; without a GPU another processor or host."""
    one, two = _sessions(baseline), _sessions(other)
    kinds = against("device", one, two, device_kind)
    if kinds:
        return kinds
    if any(used_gpus(session) for session in [*one, *two]):
        if not differ(one, two, _gpus):
            return _within_blocks(baseline, other)
        models = against("accelerators", one, two, _models)
        return models or against("GPU", one, two, _named_gpus, another=True)
    return against("processor", one, two, _processor, another=True) or against(
        "host", one, two, _host, another=True
    )


def remarks(baseline: Cell, other: Cell) -> list[str]:
    """What disturbed both sides, or is told by one alone: no reason against comparing them."""
    sides = (baseline, other)
    found = []
    if all(valued(cell) for cell in sides):
        found = told_by_one(_sessions(baseline), _sessions(other), (baseline.label, other.label))
    if all(any(_has(run, _SHARING) for run in valued(cell)) for cell in sides):
        found.append(
            f"other processes were on the GPU in runs of {baseline.label} and {other.label}"
        )
    return found


def _within_blocks(baseline: Cell, other: Cell) -> list[str]:
    """Runs that were paired although they ran on GPUs of their own."""
    first = {run.block: run.session for run in valued(baseline)}
    for run in valued(other):
        found = None if run.block is None else first.get(run.block)
        if found is not None and differ([found], [run.session], _gpus):
            return [
                f"another GPU in block {run.block}: {_named_gpus(found)} against "
                f"{_named_gpus(run.session)}"
            ]
    return []


def _given_differently(baseline: Cell, other: Cell) -> list[str]:
    """What the runs of one side might use of the machine, and those of the other might not; of a
    resumed study also within a block alone."""
    one, two = _sessions(baseline), _sessions(other)
    found = [reason for what, value in _GIVEN for reason in against(what, one, two, value)]
    if found:
        return found
    first = {run.block: run.session for run in valued(baseline) if run.block is not None}
    return [
        f"{reason} in block {run.block}"
        for run in valued(other)
        if run.block in first
        for what, value in _GIVEN
        for reason in against(what, [first[run.block]], [run.session], value)
    ][:1]


def _of_process(key: str) -> Value:
    return lambda session: mapping(session.facts.get("process")).get(key)


def _processor_time(session: Summary) -> str | None:
    found = _of_process("process.cgroup.cpu.limit")(session)
    cores = number(found)
    return found if cores is None else f"{cores:.2f} cores"


def _memory(session: Summary) -> str | None:
    """``None`` where ``memory=`` limits it: that is the environment's, asked for by name."""
    if session.environment.get("memory_limit_bytes") is not None:
        return None
    found = _of_process("process.cgroup.memory.limit")(session)
    size = number(found)
    return found if size is None else units.binary(size)


def _given_gpus(session: Summary) -> str | None:
    uuids = session.environment.get("gpus")
    return None if not isinstance(uuids, list) else " + ".join(map(str, uuids)) or "none"


_GIVEN: tuple[tuple[str, Value], ...] = (
    ("GPUs given", _given_gpus),
    ("usable CPUs", _of_process("process.cpu.affinity")),
    ("memory nodes", _of_process("process.memory.nodes")),
    ("CPU quota", _processor_time),
    ("memory limit", _memory),
)
"""What a caller may be given less of than the machine has."""


def _sessions(cell: Cell) -> list[Summary]:
    """What the cell's value is of; of a cell without a value what there is."""
    return [run.session for run in valued(cell) or cell.judged]


def _gpus(session: Summary) -> tuple[str, ...] | None:
    """Their UUIDs; ``None``: they are not known."""
    if unknown_gpus(session):
        return None
    return tuple(sorted(str(gpu.uuid or gpu.name) for gpu in used_gpus(session)))


def _models(session: Summary) -> str | None:
    if unknown_gpus(session):
        return None
    return " + ".join(sorted(gpu.name for gpu in used_gpus(session))) or "none"


def _named_gpus(session: Summary) -> str | None:
    gpus = _gpus(session)
    return None if gpus is None else " + ".join(each[:_SHORT] for each in gpus) or "none"


def _processor(session: Summary) -> str | None:
    return next((each.name for each in session.devices if each.kind == "cpu"), None)


def _host(session: Summary) -> str | None:
    name = mapping(session.facts.get("host")).get("host.name")
    return None if name is None else str(name)


def _sharing(baseline: Cell, other: Cell) -> list[str]:
    hit = [[run for run in valued(cell) if _has(run, _SHARING)] for cell in (baseline, other)]
    if bool(hit[0]) is bool(hit[1]):
        return []
    where, runs = (baseline, hit[0]) if hit[0] else (other, hit[1])
    spared = other if hit[0] else baseline
    finding = _finding(runs[0], _SHARING)
    was = (
        "another process was on the GPU"
        if finding is not None and finding.unit == _PROCESSES
        else "others may have been on the GPU"
    )
    return [
        f"{was} in {len(runs)} of {len(valued(where))} runs of {where.label}, "
        f"in none of {spared.label}"
    ]


def _clocks(baseline: Cell, other: Cell) -> list[str]:
    sides = [valued(cell) for cell in (baseline, other)]
    hit = [any(_has(run, _CLOCKS) for run in side) for side in sides]
    if not any(hit):
        return []
    shares = [_held(side) for side in sides]
    apart = abs(shares[0] - shares[1])
    if apart < (CLEARLY_HELD if all(hit) else BARELY_HELD):
        return []
    told_shares = [units.percent(share) for share in shares]
    return [
        f"clocks were held down {told_shares[0]} of the time in {baseline.label} against "
        f"{told_shares[1]} in {other.label}"
    ]


def _held(runs: Sequence[Run]) -> float:
    """Mean share of time in which power or temperature held clocks down, below the finding's
    threshold too."""
    shares = []
    for run in runs:
        finding = _finding(run, _CLOCKS)
        known = [
            statistic.mean
            for gpu in used_gpus(run.session)
            for name in _THROTTLES
            if (statistic := gpu.metrics.get(name)) is not None and statistic.mean is not None
        ]
        told_share = None if finding is None else finding.other
        shares.append(max(known, default=0.0) if told_share is None else told_share)
    return sum(shares) / len(shares) if shares else 0.0


def _overlap(baseline: Cell, other: Cell) -> list[str]:
    sessions = [run.session for cell in (baseline, other) for run in cell.runs]
    if not at_once(sessions):
        return []
    return [
        f"runs of {baseline.label} and {other.label} overlapped in time on one machine: "
        "they disturbed each other"
    ]


def _has(run: Run, kind: str) -> bool:
    return _finding(run, kind) is not None


def _finding(run: Run, kind: str) -> Finding | None:
    return next((each for each in run.session.efficiency.findings if each.kind == kind), None)
