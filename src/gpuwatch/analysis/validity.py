"""Whether two cells may be compared at all: what differs besides the environment, or disturbed one.

Each reason is a clause that names both values, the baseline's first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence

from gpuwatch import units
from gpuwatch.analysis.cells import valued
from gpuwatch.analysis.crosscheck import Finding
from gpuwatch.analysis.identity import at_once, told, training, used_gpus
from gpuwatch.analysis.results import Cell, Run
from gpuwatch.analysis.summary import Summary
from gpuwatch.models import JSON, mapping, number
from gpuwatch.text import clean

CLEARLY_HELD = 0.05
"""Difference of the shares of time with clocks held down from which on two are not comparable."""
BARELY_HELD = 0.01
"""Difference under which clocks that were held down on one side alone do not matter: the finding
starts at a share of its own, which two equal runs may fall on both sides of."""
SAME_WORK = 0.01
"""Relative difference of counted FLOP that ways of counting explain."""

_SHARING, _CLOCKS = "sharing", "clocks"
_THROTTLES = ("hw.gpu.throttle.power", "hw.gpu.throttle.thermal")
_PROCESSES = "{process}"
_MOST = 3
_LONGEST = 40
_SHORT = 16
"""Characters of a GPU's UUID that tell it from its neighbours."""

Value = Callable[[Summary], JSON]


def invalid_reasons(baseline: Cell, other: Cell, *, across_devices: bool) -> tuple[str, ...]:
    """Why no verdict on ``other`` against ``baseline`` means anything; empty where one does."""
    one, two = _sessions(baseline), _sessions(other)
    reasons = [*_workload(one, two), *_work(one, two)]
    if not across_devices:
        reasons += device_differences(baseline, other)
    if valued(baseline) and valued(other):
        reasons += [*_sharing(baseline, other), *_clocks(baseline, other)]
    return (*reasons, *_overlap(baseline, other))


def device_differences(baseline: Cell, other: Cell) -> list[str]:
    """Other GPUs; without a GPU another processor or host."""
    one, two = _sessions(baseline), _sessions(other)
    kinds = _against("device", one, two, _device_kind)
    if kinds:
        return kinds
    if any(used_gpus(session) for session in [*one, *two]):
        if not _differ(one, two, _gpus):
            return _within_blocks(baseline, other)
        models = _against("accelerators", one, two, _models)
        return models or _against("GPU", one, two, _named_gpus, another=True)
    return _against("processor", one, two, _processor, another=True) or _against(
        "host", one, two, _host, another=True
    )


def disturbed_alike(baseline: Cell, other: Cell) -> list[str]:
    """What disturbed both sides, so that it is no reason against comparing them."""
    sides = (baseline, other)
    if all(any(_has(run, _SHARING) for run in valued(cell)) for cell in sides):
        return [f"other processes were on the GPU in runs of {baseline.label} and {other.label}"]
    return []


def _within_blocks(baseline: Cell, other: Cell) -> list[str]:
    """Runs that were paired although they ran on GPUs of their own."""
    first = {run.block: run.session for run in valued(baseline)}
    for run in valued(other):
        found = None if run.block is None else first.get(run.block)
        if found is not None and _gpus(found) != _gpus(run.session):
            return [
                f"another GPU in block {run.block}: {_named_gpus(found)} against "
                f"{_named_gpus(run.session)}"
            ]
    return []


def _sessions(cell: Cell) -> list[Summary]:
    """What the cell's value is of; of a cell without a value what there is."""
    return [run.session for run in valued(cell) or cell.judged]


def _workload(one: Sequence[Summary], two: Sequence[Summary]) -> list[str]:
    names = _against("workloads", one, two, lambda session: session.workload.get("name"))
    if names:
        return names
    keys = sorted({key for session in [*one, *two] for key in training(session)})
    settings = [_against(key.replace("_", " "), one, two, _setting(key)) for key in keys]
    return [
        *_against("command", one, two, _command),
        *(reason for found in settings for reason in found),
        *_against("data", one, two, _data),
        *([] if "dtype" in keys else _against("data type", one, two, _of_run("dtype"))),
        *([] if "batch_size" in keys else _against("batch size", one, two, _of_run("batch_size"))),
        *_against("gpuwatch workloads (SHA-256)", one, two, _archive),
    ]


def _setting(key: str) -> Value:
    """A setting as text; unknown where the run did not live to tell what it ran with."""

    def value(session: Summary) -> str | None:
        settings = training(session)
        if key not in settings and not session.run.get("parameters"):
            return None
        return told(settings.get(key))

    return value


def _command(session: Summary) -> str | None:
    if session.workload.get("kind") != "command":
        return None
    arguments = session.workload.get("arguments")
    return " ".join(map(str, arguments)) if isinstance(arguments, list) else None


def _data(session: Summary) -> str | None:
    data = mapping(session.run.get("data"))
    known = [data.get("kind"), data.get("samples")]
    if known[0] is None:
        return None
    return f"{known[0]}" if known[1] is None else f"{known[0]}, {known[1]} samples"


def _of_run(key: str) -> Value:
    return lambda session: session.run.get(key)


def _archive(session: Summary) -> str | None:
    digest = mapping(session.facts.get("host")).get("gpuwatch.workloads.sha256")
    return None if digest is None else str(digest)[:12]


def _device_kind(session: Summary) -> str | None:
    if used_gpus(session):
        return "GPU"
    told_device = session.run.get("device")
    if told_device is None:
        return None
    return "CPU" if str(told_device).startswith("cpu") else "GPU"


def _gpus(session: Summary) -> tuple[str, ...]:
    return tuple(sorted(str(gpu.uuid or gpu.name) for gpu in used_gpus(session)))


def _models(session: Summary) -> str:
    return " + ".join(sorted(gpu.name for gpu in used_gpus(session))) or "none"


def _named_gpus(session: Summary) -> str:
    return " + ".join(each[:_SHORT] for each in _gpus(session)) or "none"


def _processor(session: Summary) -> str | None:
    return next((each.name for each in session.devices if each.kind == "cpu"), None)


def _host(session: Summary) -> str | None:
    name = mapping(session.facts.get("host")).get("host.name")
    return None if name is None else str(name)


def _work(one: Sequence[Summary], two: Sequence[Summary]) -> list[str]:
    """FLOP of one step, where they were counted on both sides."""
    known = [
        [value for session in side if (value := number(session.count.get("flop_per_step")))]
        for side in (one, two)
    ]
    if not all(known):
        return []
    low, high = (min(known[0]), max(known[0])), (min(known[1]), max(known[1]))
    if low[1] * (1 + SAME_WORK) >= high[0] and high[1] * (1 + SAME_WORK) >= low[0]:
        return []
    return [
        f"different work per step: {units.si(low[0], 'FLOP')} against {units.si(high[0], 'FLOP')}"
    ]


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


def _against(
    what: str,
    one: Sequence[Summary],
    two: Sequence[Summary],
    value: Value,
    *,
    another: bool = False,
) -> list[str]:
    """The clause that names both values, if they differ; an unknown one does not."""
    if not _differ(one, two, value):
        return []
    first, second = (_listed(_known(side, value)) for side in (one, two))
    return [f"{'another' if another else 'different'} {what}: {first} against {second}"]


def _differ(one: Sequence[Summary], two: Sequence[Summary], value: Value) -> bool:
    first, second = (_keys(_known(side, value)) for side in (one, two))
    return bool(first and second) and first != second


def _known(sessions: Iterable[Summary], value: Value) -> list[JSON]:
    return [found for session in sessions if (found := value(session)) is not None]


def _keys(values: Iterable[JSON]) -> set[str]:
    return {json.dumps(each, sort_keys=True, default=str) for each in values}


def _listed(values: Sequence[JSON]) -> str:
    names = list(dict.fromkeys(clean(each, _LONGEST) for each in values))
    return " and ".join(names[:_MOST]) + (" and others" if len(names) > _MOST else "")
