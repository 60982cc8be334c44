"""What happened to a recording that a reader of its figures must know."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.analysis.window import Window
from gpuwatch.session.reader import SessionReader
from gpuwatch.session.rows import EventRow, StepRow

_TOLD = {
    "output-lost": "output was lost, and with it perhaps steps: the workload wrote too fast",
    "interval-missed": None,
    "gpu-lost": None,
    "gpu-back": None,
    "xid": None,
    "ecc": None,
    "throttle": None,
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
}
"""Kinds of events that matter, with a sentence where the event's own says less."""

_FEW = 3


def notes(reader: SessionReader, window: Window, steps: Sequence[StepRow]) -> tuple[str, ...]:
    """Sentences about gaps, losses and lost devices; and over what the figures are."""
    found = []
    if window.kind == "whole run" and steps:
        found.append(
            "the timed steps were over too soon to be sampled: what was sampled is of the whole "
            "run, start-up included"
        )
    if steps and not {"started", "startup"} & reader.meta().keys():
        found.append(
            "launch, import and first step are not known: the program prints no `started` and "
            "`startup` lines (docs/step-lines.md)"
        )
    by_kind: dict[str, list[EventRow]] = {}
    for row in reader.events(limit=100_000):
        if row.kind in _TOLD:
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


def _sentence(row: EventRow) -> str:
    device = f"{row.device}: " if row.device else ""
    return f"{device}{row.text} (at {row.t / 1e9:.1f} s)"
