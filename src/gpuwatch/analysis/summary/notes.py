"""What happened to a recording that a reader of its figures must know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpuwatch.analysis.samples.rates import StepLine, intervals, taken
from gpuwatch.analysis.samples.window import Window
from gpuwatch.core import units
from gpuwatch.core.models import JSON, mapping
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.rows import EventRow

_TOLD = {
    "output-lost": "output was lost, and with it perhaps steps: the workload wrote too fast",
    "output-missing": None,
    "interval-missed": None,
    "suspended": None,
    "clock-stepped": None,
    "gpu-lost": None,
    "gpu-back": None,
    "xid": None,
    "ecc": None,
    "throttle": None,
    "nvml-lost": None,
    "nvml-back": None,
    "gpm-lost": None,
    "gpm-back": None,
    "dcgm-lost": None,
    "dcgm-back": None,
    "resumed": "between two recorders nothing was sampled",
    "storage": None,
    "malformed-step": None,
    "left-behind": None,
    "run-lost": None,
    "run-back": None,
    "run-paused": None,
    "run-unpaused": None,
}
"""Kinds of events that matter, with a sentence where the event's own says less."""

_FEW = 3
_MOST_EVENTS = 100_000
_MENDED = ("install ", "NVreg_RestrictProfilingToAdminUsers")
"""Words of reasons that name their hint."""
_MENDS = {
    True: "run it on an NVIDIA GPU (--device cuda), or without --counters",
    False: "`gpuwatch doctor` says what ncu lacks; record it anew with --counters",
}
"""By whether the run was on the CPU."""
COVERED = 0.9
"""Share of the window that the steps' own times must cover, lest a reader be told."""


def out_of_order(facts: Mapping[str, Mapping[str, JSON]]) -> list[str]:
    """Why no GPU was seen, and how to fix it, where the machine should have one."""
    host = mapping(facts.get("host"))
    hint = host.get("gpu.hint", host.get("gpu.mend"))
    return [f"{host.get('gpu.unavailable')}; {hint}"] if hint else []


def notes(reader: SessionReader, window: Window, steps: Sequence[StepLine]) -> tuple[str, ...]:
    """Sentences about gaps, losses and lost devices; and over what the figures are."""
    found = out_of_order(reader.facts())
    if window.kind == "whole run" and steps:
        found.append(
            "the timed steps were over too soon to be sampled: what was sampled is of the whole "
            "run, start-up included"
        )
    found += _denominators(steps)
    found += _no_counters(reader.meta())
    by_kind: dict[str, list[EventRow]] = {}
    others = {device.id for device in reader.devices() if device.used is False}
    events = reader.events(limit=_MOST_EVENTS)
    if len(events) == _MOST_EVENTS:
        reader.leave_out(f"of the events the first {_MOST_EVENTS:,} are read")
    for row in events:
        if row.kind in _TOLD and row.device not in others:
            by_kind.setdefault(row.kind, []).append(row)
    for kind, rows in by_kind.items():
        if kind == "interval-missed":
            rows = rows[-1:]  # each tells of all so far
        sentence = _TOLD[kind]
        told = [sentence] if sentence else [_sentence(row) for row in rows[:_FEW]]
        found += told
        if not sentence and len(rows) > _FEW:
            found.append(f"and {len(rows) - _FEW} more events of kind {kind}")
    return tuple(found)


def _denominators(steps: Sequence[StepLine]) -> list[str]:
    """Where FLOP/s and throughput are over clearly different times."""
    spans = [(start, end, row) for start, end, row in intervals(steps) if not row.warmup]
    times = [taken(row) for _, _, row in spans]
    if not times or None in times:
        return []
    whole = (spans[-1][1] - spans[0][0]) / 1e9
    own = sum(each or 0.0 for each in times)
    if own >= COVERED * whole:
        return []
    return [
        f"the steps' own times are {units.milliseconds(own)} of the {units.milliseconds(whole)} "
        "from the start of the first timed step to the end of the last: step time and throughput "
        "are over the former, FLOP/s and bytes/s over the latter"
    ]


def _no_counters(meta: Mapping[str, JSON]) -> list[str]:
    """Why a run that was asked to read counters has none, and how to fix it."""
    reason = mapping(meta.get("counters")).get("reason")
    asked = mapping(mapping(meta.get("workload")).get("parameters")).get("counters")
    if not reason and asked and "counters" not in meta and "result" in meta:
        reason = "the run ended before it came to them"
    if not reason:
        return []
    hint = _MENDS[mapping(meta.get("run")).get("device") == "cpu"]
    known = any(word in str(reason) for word in _MENDED)
    return [f"--counters gave nothing: {reason}" + ("" if known else f"; {hint}")]


def _sentence(row: EventRow) -> str:
    device = f"{row.device}: " if row.device else ""
    return f"{device}{row.text} (at {row.t / 1e9:.1f} s)"
