"""The steps of each rank, summed up over about two seconds."""

from __future__ import annotations

import math

from gpuwatch.recorder.output.step_lines import Step
from gpuwatch.session.rows import with_phases
from gpuwatch.session.writing import statements
from gpuwatch.session.writing.statements import Row

SECONDS = 2.0


class RankTier:
    """Collects the lines of one rank and returns a row when two seconds of steps are together."""

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self._lines: list[tuple[int, Step]] = []

    def add(self, t: int, step: Step) -> list[Row]:
        """Add a line whose last step ended at session time ``t`` (ns); the row now finished."""
        done: list[Row] = []
        if self._lines and self._lines[0][1].warmup is not step.warmup:
            done = self.flush()
        self._lines.append((t, step))
        if t - self._lines[0][0] >= SECONDS * 1e9:
            done += self.flush()
        return done

    def flush(self) -> list[Row]:
        """The row of what is left."""
        lines, self._lines = self._lines, []
        if not lines:
            return []
        steps = [step for _, step in lines]
        count = sum(step.count for step in steps)
        phases: dict[str, float] = {}
        for step in steps:
            for name, seconds in step.phases.items():
                phases[name] = phases.get(name, 0.0) + seconds
        row = statements.rank_step(
            lines[-1][0],
            self._rank,
            steps[-1].step,
            count,
            int(steps[-1].warmup),
            _sum([step.samples for step in steps]),
            _sum([step.tokens for step in steps]),
            _sum([None if step.seconds is None else math.fsum(step.seconds) for step in steps]),
            statements.phases_text(phases, count, with_phases(steps)),
            _sum([step.flop for step in steps]),
        )
        return [row]


def _sum(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) if len(known) == len(values) else None
