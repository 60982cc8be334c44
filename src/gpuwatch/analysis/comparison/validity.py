"""Whether two cells are comparable: differences besides the environment, and disturbances.

Each reason is a clause with both values, the baseline's first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from gpuwatch.analysis.comparison.cells import runs_of, valued
from gpuwatch.analysis.comparison.same_work import (
    Value,
    against,
    by_design,
    device_kind,
    differ,
    gpu_models,
    listed,
    told_by_one,
    work_differences,
)
from gpuwatch.analysis.hardware.crosscheck import CLOCKS, Finding
from gpuwatch.analysis.results import Cell, Run
from gpuwatch.analysis.summary import gpu_sharing
from gpuwatch.analysis.summary.identity import at_once, unknown_gpus, used_gpus
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.core import units
from gpuwatch.core.metrics import THROTTLES
from gpuwatch.core.models import mapping, number

CLEARLY_HELD = 0.05
"""Difference of the shares of time with clocks held down from which on cells are not comparable."""
BARELY_HELD = 0.01
"""The same where only one side has the finding: below it, two nearly equal runs just fall on
different sides of the finding's threshold."""

_SHARING = "sharing"
_PROCESSES = "{process}"
_SHORT = 16
"""Characters of a GPU's UUID that are shown."""


def invalid_reasons(
    baseline: Cell, other: Cell, *, across_devices: bool, across_commands: bool = False
) -> tuple[str, ...]:
    """Why ``other`` is not comparable with ``baseline``, whatever the change; empty if it is."""
    one, two = _sessions(baseline), _sessions(other)
    if any(each.workload.get("kind") == "machine" for each in (*one, *two)):
        return ("recordings of the machine alone have no steps to compare",)
    reasons = [
        *_several_writers(baseline),
        *_several_writers(other),
        *work_differences(one, two, across_commands=across_commands),
    ]
    if not across_devices:
        if devices := device_differences(baseline, other):
            reasons += [f"{devices[0]} (--across-devices compares them)", *devices[1:]]
        else:
            reasons += _given_differently(baseline, other)
    if valued(baseline) and valued(other):
        reasons += _sharing(baseline, other)
    if at_once([run.session for cell in (baseline, other) for run in cell.runs]):
        reasons.append(
            f"runs of {baseline.label} and {other.label} overlapped in time on one machine: "
            "they disturbed each other"
        )
    return tuple(reasons)


def _several_writers(cell: Cell) -> list[str]:
    """A clause if step lines of several processes are mixed in a run."""
    told = [text for run in cell.judged if (text := run.session.several_writers)]
    return [f"the steps of {cell.label} are not those of one process: {told[0]}"] if told else []


def chosen_differences(baseline: Cell, other: Cell) -> tuple[str, ...]:
    """What differs between two cells by design: no reason against a comparison."""
    return tuple(by_design(_sessions(baseline), _sessions(other)))


def device_differences(baseline: Cell, other: Cell) -> list[str]:
    """Clauses on different GPUs; without GPUs, on a different processor or host."""
    one, two = _sessions(baseline), _sessions(other)
    kinds = against("device", one, two, device_kind)
    if kinds:
        return kinds
    if any(used_gpus(session) for session in [*one, *two]):
        models = against("accelerators", one, two, gpu_models)
        within = models or _within_blocks(baseline, other)
        return within or against("GPU of the same model", one, two, _named_gpus, another=True)
    # A pod has a host name of its own, a job on a node that of the node.
    hosts = against("host", one, two, _host, another=True)
    return against("processor", one, two, _processor, another=True) or (
        hosts and against("host", one, two, _machine, another=True)
    )


def _within_blocks(baseline: Cell, other: Cell) -> list[str]:
    """Clauses on paired runs that used different GPUs, so that their ratio is also that of the two,
    even of one model in one machine."""
    found, hint, first = [], "", {run.block: run.session for run in valued(baseline)}
    for run in valued(other):
        one, two = None if run.block is None else first.get(run.block), run.session
        if one is not None and differ([one], [two], _gpus):
            gpus = f"{_named_gpus(one)} against {_named_gpus(two)}"
            found.append(f"another GPU of the same model in block {run.block}: {gpus}")
            hint = _same_gpu(one, two)
    many = f"so in {len(found)} blocks" if len(found) > 1 else ""
    return [text for text in (*found[:1], many, hint) if text]


def _same_gpu(one: Summary, two: Summary) -> str:
    """What gives two runs in a cluster the same GPU; empty: they were not in one."""
    jobs = [mapping(session.facts.get("host")) for session in (one, two)]
    if any(job.get("job.scheduler") != "kubernetes" for job in jobs):
        return ""
    apart = jobs[0].get("job.id") != jobs[1].get("job.id")
    pod = "one pod for both (without jobs=image) or " if apart else ""
    return f"{pod}a node with one GPU (node=LABEL:VALUE) gives both the same"


def remarks(baseline: Cell, other: Cell) -> list[str]:
    """Disturbances, and facts known of one side only: by themselves no reasons against a
    comparison."""
    sides = (baseline, other)
    found = []
    if all(valued(cell) for cell in sides):
        found = told_by_one(_sessions(baseline), _sessions(other), (baseline.label, other.label))
        found += [text for text in clocks_apart(baseline, other)[:1] if text]
    if all(any(_finding(run, _SHARING) for run in valued(cell)) for cell in sides):
        found.append(
            f"other processes were on the GPU in runs of {baseline.label} and {other.label}"
        )
    return found + _shared_alike(baseline, other)


def _shared_alike(baseline: Cell, other: Cell) -> list[str]:
    """Of both sides: that pods share their GPU, that it is a part of one."""
    both, named = [_sessions(baseline), _sessions(other)], f"{baseline.label} and {other.label}"
    how = [[text for each in side if (text := _by_pods(each))] for side in both]
    found = []
    if all(any(text != gpu_sharing.NOT_SHARED for text in side) for side in how):
        found.append(
            f"pods share the GPUs of {named} ({listed([*how[0], *how[1]])}): their time is other "
            "pods' too"
        )
    if all(any(gpu_sharing.parts(each.facts, _ids(each)) for each in side) for side in both):
        found.append(
            f"{named} ran on a MIG device, a part of a GPU whose other parts share its clocks and "
            "power"
        )
    return found


def _ids(session: Summary) -> list[str]:
    return [gpu.id for gpu in used_gpus(session)]


def _by_pods(session: Summary) -> str | None:
    return gpu_sharing.by_pods(session.facts, _ids(session))


def _given_differently(baseline: Cell, other: Cell) -> list[str]:
    """Clauses on what was given that differs; in a resumed study also within single blocks."""
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
    """The memory limit; ``None`` where ``memory=`` sets it, as part of the environment."""
    if session.environment.get("memory_limit_bytes") is not None:
        return None
    found = _of_process("process.cgroup.memory.limit")(session)
    size = number(found)
    return found if size is None else units.binary(size)


def _given_gpus(session: Summary) -> str | None:
    uuids = session.environment.get("gpus")
    return None if not isinstance(uuids, list) else " + ".join(map(str, uuids)) or "none"


def _power_cap(session: Summary) -> str | None:
    """The enforced power limits of the used GPUs; ``None``: one is not known."""
    if unknown_gpus(session) or not used_gpus(session):
        return None
    host = mapping(session.facts.get("host"))
    caps = [number(host.get(f"{gpu.id}.power.limit")) for gpu in used_gpus(session)]
    return " + ".join(f"{cap:.0f} W" for cap in caps if cap is not None) if all(caps) else None


_GIVEN: tuple[tuple[str, Value], ...] = (
    ("GPUs given", _given_gpus),
    ("usable CPUs", _of_process("process.cpu.affinity")),
    ("memory nodes", _of_process("process.memory.nodes")),
    ("CPU quota", _processor_time),
    ("memory limit", _memory),
    ("power cap", _power_cap),
    ("sharing of the GPU by pods", _by_pods),
)
"""Resources that may be limited to less than the machine has."""


def _sessions(cell: Cell) -> list[Summary]:
    """Sessions of the runs with a value, else of all judged runs."""
    return [run.session for run in valued(cell) or cell.judged]


def _gpus(session: Summary) -> tuple[str, ...] | None:
    """UUIDs of the used GPUs; ``None``: unknown."""
    if unknown_gpus(session):
        return None
    return tuple(sorted(str(gpu.uuid or gpu.name) for gpu in used_gpus(session)))


def _named_gpus(session: Summary) -> str | None:
    gpus = _gpus(session)
    return None if gpus is None else " + ".join(each[:_SHORT] for each in gpus) or "none"


def _processor(session: Summary) -> str | None:
    return next((each.name for each in session.devices if each.kind == "cpu"), None)


def _machine(session: Summary) -> str | None:
    """The node of a scheduler's job, else the host: a pod has a host name of its own."""
    node = mapping(session.facts.get("host")).get("job.node")
    return _host(session) if node is None else str(node)


def _host(session: Summary) -> str | None:
    name = mapping(session.facts.get("host")).get("host.name")
    return None if name is None else str(name)


def _sharing(baseline: Cell, other: Cell) -> list[str]:
    """A clause if other processes were on the GPU of one side alone."""
    ours, theirs = (
        [found for run in valued(cell) if (found := _finding(run, _SHARING))]
        for cell in (baseline, other)
    )
    if bool(ours) is bool(theirs):
        return []
    hit, where, spared = (ours, baseline, other) if ours else (theirs, other, baseline)
    was = "others may have been on the GPU"
    if hit[0].unit == _PROCESSES:
        was = "another process was on the GPU"
    runs = runs_of(len(hit), len(valued(where)), where.label)
    return [f"{was} in {runs}, in none of {spared.label}"]


def clocks_apart(baseline: Cell, other: Cell) -> tuple[str, float]:
    """A clause if the clocks of one side were held down for more of the time, else empty; and the
    logarithm of the ratio of times that this explains at most, below zero where it makes ``other``
    faster, infinite where it is not known.

    A card at its power limit all of the time is the usual state of training: what counts is how
    fast it ran, and a step takes at most as much longer as its clock is lower.
    """
    sides = [valued(cell) for cell in (baseline, other)]
    hit = [any(_finding(run, CLOCKS) for run in side) for side in sides]
    shares = [_held(side) for side in sides] if any(hit) else [0.0, 0.0]
    if abs(shares[0] - shares[1]) < (CLEARLY_HELD if all(hit) else BARELY_HELD):
        return "", 0.0
    one, two = (_clock(side) for side in sides)
    of = [f"{units.percent(share)} of the time" if share else "never" for share in shares]
    text = f"clocks were held down: {of[0]} in {baseline.label}, {of[1]} in {other.label}"
    if one is None or two is None:
        return text, math.inf
    explained, way = math.log(one / two), "longer" if two < one else "shorter"
    size = units.percent(abs(math.expm1(explained)))
    means = f"mean {units.si(one, 'Hz')} against {units.si(two, 'Hz')}"
    return f"{text} ({means}: steps of {other.label} may be up to {size} {way} by it)", explained


def _clock(runs: Sequence[Run]) -> float | None:
    """Mean SM clock of the GPUs of all ``runs`` in hertz; ``None``: not known of all."""
    found = [
        None if clock is None else clock.mean
        for run in runs
        for clock in (gpu.metrics.get("hw.gpu.clock.sm") for gpu in used_gpus(run.session))
    ]
    known = [mean for mean in found if mean is not None and mean > 0]
    return sum(known) / len(known) if known and len(known) == len(found) else None


def _held(runs: Sequence[Run]) -> float:
    """Mean share of time with clocks held down by power or temperature, also below the finding's
    threshold."""
    shares = []
    for run in runs:
        finding = _finding(run, CLOCKS)
        known = [
            statistic.mean
            for gpu in used_gpus(run.session)
            for name in THROTTLES
            if (statistic := gpu.metrics.get(name)) is not None and statistic.mean is not None
        ]
        reported = None if finding is None else finding.other
        shares.append(max(known, default=0.0) if reported is None else reported)
    return sum(shares) / len(shares) if shares else 0.0


def _finding(run: Run, kind: str) -> Finding | None:
    return next((each for each in run.session.efficiency.findings if each.kind == kind), None)
