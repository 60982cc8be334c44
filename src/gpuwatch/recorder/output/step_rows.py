"""From step lines to rows of ``step``: a row for each line, and for those of a fast program that
are read at once one row, so that a long session stays quick to read."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from gpuwatch.recorder.output.step_lines import Step, pack
from gpuwatch.session.rows import with_phases
from gpuwatch.session.writing import statements
from gpuwatch.session.writing.statements import Row

FAST_SECONDS = 0.05
"""A line whose steps take less time may share a row with the lines before it."""
_LONGEST_NS = 1_000_000_000
"""The longest time from the first to the last line of a row."""


class StepRows:
    """Takes the lines in order, and holds those of a fast program back until :meth:`flush`."""

    def __init__(self) -> None:
        self._held: list[tuple[int, Step]] = []

    def add(self, t: int, step: Step) -> list[Row]:
        """A line whose last step ended at ``t`` (ns); returns the rows that are done."""
        rows = [] if self._joins(t, step) else self.flush()
        self._held.append((t, step))
        return rows

    def flush(self) -> list[Row]:
        """The row of the lines that are held back."""
        held, self._held = self._held, []
        if not held:
            return []
        t, step = held[-1][0], _together([line for _, line in held])
        return [
            statements.step(
                t,
                step.step,
                step.count,
                int(step.warmup),
                step.samples,
                *map(pack, (step.seconds, step.loss, step.acc1, step.acc5)),
                statements.phases_text(step.phases, step.count, with_phases([step])),
                json.dumps(step.partial) if step.partial else None,
                step.flop,
                step.bytes,
            )
        ]

    def _joins(self, t: int, step: Step) -> bool:
        """Whether a line's steps are fast, follow those that are held, and are told alike."""
        if not self._held or step.seconds is None or "evaluation" in step.phases:
            return False
        (first, _), (end, before) = self._held[0], self._held[-1]
        taken = sum(step.seconds)
        return (
            taken < FAST_SECONDS
            and t - end < (taken + FAST_SECONDS) * 1e9
            and t - first < _LONGEST_NS
            and step.step == before.step + step.count
            and _told(step) == _told(before)
            and all(len(values) == step.count for values in _by_step(step) if values is not None)
        )


def _by_step(step: Step) -> tuple[tuple[float, ...] | None, ...]:
    return step.seconds, step.loss, step.acc1, step.acc5


def _told(step: Step) -> tuple[bool, ...]:
    """What a line tells, and of which kind of step."""
    values = (*_by_step(step), step.samples, step.flop, step.bytes)
    return (step.warmup, *(value is not None for value in values))


def _together(lines: Sequence[Step]) -> Step:
    """One line of the steps of all."""
    last = lines[-1]
    if len(lines) == 1:
        return last

    def listed(name: str) -> tuple[float, ...] | None:
        values = [getattr(line, name) for line in lines]
        return None if values[0] is None else tuple(each for of in values for each in of)

    def total(name: str) -> float | None:
        values = [getattr(line, name) for line in lines]
        return None if values[0] is None else sum(values)

    phases: Counter[str] = Counter()
    for line in lines:
        phases.update(line.phases)
    return replace(
        last,
        count=sum(line.count for line in lines),
        samples=total("samples"),
        seconds=listed("seconds"),
        loss=listed("loss"),
        acc1=listed("acc1"),
        acc5=listed("acc5"),
        phases=dict(phases),
        partial=tuple(number for line in lines for number in line.partial),
        flop=total("flop"),
        bytes=total("bytes"),
        sampled=with_phases(lines),
    )
