"""Makes the steps of several ranks into those of one run.

A step of the run is over when every rank has told it. It takes from when the last rank began it to
when the last one ended it: the maximum of the ranks' times would add up to more than the time that
went by, for one rank is late in this step and another in the next. Its phases are the means over
the ranks, as shares of that time; an evaluation takes as long as the longest of the ranks', for
which the others wait; samples, tokens, FLOP and bytes are those of all.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from gpuwatch.core.models import number
from gpuwatch.recorder.output.step_lines import Report, Step
from gpuwatch.session.rows import SAMPLED, with_phases
from gpuwatch.session.writing import statements
from gpuwatch.session.writing.statements import Row

MOST_WAITING = 100_000
"""Most steps that wait for a rank that does not tell them."""
_EVALUATION = "evaluation"
"""The phase that is in no step."""
_SUMS = (
    *("flop_forward_per_step", "flop_backward_per_step", "flop_per_step"),
    *("flop_recomputed_per_step", "bytes_per_step", "samples"),
)
"""Keys of ``count`` that add up over ranks."""


class Combined:
    """The steps of all ranks of this machine, until each was told by all."""

    def __init__(self, ranks: int) -> None:
        """``ranks``: how many ranks of the run are on this machine."""
        self.ranks = ranks
        self._waiting: dict[int, deque[Step]] = {}
        self._taken: dict[bool, dict[int, dict[str, float]]] = {True: {}, False: {}}
        """In the warm-up and after it: seconds by phase of each rank and of how many steps, since
        all ranks had drawn some."""
        self._total_steps: int | None = None

    def add(self, rank: int, line: Step) -> None:
        """The steps of a line, each with an even share of the line's sums."""
        self._total_steps = line.total_steps or self._total_steps
        waiting = self._waiting.setdefault(rank, deque(maxlen=MOST_WAITING))
        count, losses = line.count, line.loss
        if losses is not None and len(losses) != count:
            losses = losses * count
        even = replace(
            line,
            count=1,
            samples=_share(line.samples, count),
            tokens=_share(line.tokens, count),
            flop=_share(line.flop, count),
            bytes=_share(line.bytes, count),
            phases={name: total / count for name, total in line.phases.items()},
            sampled=with_phases([line]) / count,
        )
        end = line.monotonic_ns
        ones: list[Step] = []
        for at in reversed(range(count)):
            seconds = line.seconds and line.seconds[at : at + 1]
            loss = losses and losses[at : at + 1]
            step = line.step - len(ones)
            ones.append(replace(even, step=step, seconds=seconds, loss=loss, monotonic_ns=end))
            end = None if end is None or seconds is None else end - round(seconds[0] * 1e9)
        waiting.extend(reversed(ones))

    def take(self, after: Mapping[bool, int]) -> list[Step]:
        """The steps of the run that all ranks have told, as lines of one kind each.

        ``after``: the steps that are known, of the warm-up and after it.
        """
        if len(self._waiting) < self.ranks:
            return []
        told = iter(self._next, None)
        new = (steps for steps in told if steps[0].step > after.get(steps[0].warmup, 0))
        return [self._line([*steps]) for _, steps in groupby(new, _kind)]

    def _line(self, steps: Sequence[tuple[Step, ...]]) -> Step:
        """Consecutive steps of all ranks as one line of the run."""
        last = steps[-1]
        warmup, _, timed = _kind(last)
        seconds = tuple(map(_seconds, steps)) if timed else None
        taken, evaluation = self._taken[warmup], 0.0
        for at, ranks in enumerate(steps):
            mean = math.fsum(one.seconds[0] for one in ranks if one.seconds) / len(ranks)
            scale = seconds[at] / mean if seconds and mean else 1.0
            evaluation += max(one.phases.get(_EVALUATION, 0.0) for one in ranks)
            for rank, one in enumerate(ranks):
                own = taken.setdefault(rank, {SAMPLED: 0.0})
                own[SAMPLED] += with_phases([one])
                _add(own, {k: each for k, each in one.phases.items() if k != _EVALUATION}, scale)
        phases, sampled = dict[str, float](), 0.0
        # A rank that drew more steps than another counts no more than that.
        if all(own[SAMPLED] for own in taken.values()):
            drawn = math.fsum(own[SAMPLED] for own in taken.values()) / len(taken)
            sampled = min(round(drawn, 6), len(steps))
            for own in taken.values():
                _add(phases, own, sampled / own.pop(SAMPLED) / len(taken))
            taken.clear()
        if evaluation:
            phases[_EVALUATION] = evaluation
        losses = [
            math.fsum(one.loss[0] for one in ranks if one.loss) / len(ranks)
            for ranks in steps
            if all(one.loss for one in ranks)
        ]
        ends = [one.monotonic_ns for one in last if one.monotonic_ns is not None]
        return Step(
            step=last[0].step,
            count=len(steps),
            warmup=warmup,
            samples=_total(steps, "samples"),
            tokens=_total(steps, "tokens"),
            seconds=seconds,
            loss=tuple(losses) if len(losses) == len(steps) else None,
            phases=phases,
            flop=_total(steps, "flop"),
            bytes=_total(steps, "bytes"),
            total_steps=self._total_steps,
            monotonic_ns=max(ends) if len(ends) == len(last) else None,
            sampled=sampled,
        )

    def _next(self) -> tuple[Step, ...] | None:
        """The next step that every rank has, without the steps that some rank never told."""
        queues = list(self._waiting.values())
        while all(queues):
            newest = max(queue[0].step for queue in queues)
            if all(queue[0].step == newest for queue in queues):
                return tuple(queue.popleft() for queue in queues)
            for queue in queues:
                while queue and queue[0].step < newest:
                    queue.popleft()
        return None

    def give_up(self) -> None:
        """Wait no longer for ranks that have told no step."""
        self.ranks = max(1, len(self._waiting))

    @property
    def missing(self) -> int:
        """How many ranks have told no step."""
        return max(0, self.ranks - len(self._waiting))


def count_of_all(counts: Sequence[Report], ranks: int) -> Report:
    """The work of one step of ``ranks`` ranks, from the ``count`` of each.

    Where one rank could not count, the sums are unknown, and its reason stands.
    """
    bodies = [count.body for count in counts]
    first = bodies[0]
    sums = {
        key: _sum([number(body.get(key)) for body in bodies])
        for key in _SUMS
        if any(key in body for body in bodies)
    }
    uncounted = next((body for body in bodies if number(body.get("flop_per_step")) is None), first)
    method = str(uncounted.get("method", ""))
    if uncounted is first:
        method += f"; the sum of {ranks} ranks; operators are those of one"
    whole = {key: value for key, value in first.items() if key != "counted_flop"}  # of one rank
    least = any(body.get("at_least") is True for body in bodies)
    return Report("count", {**whole, **sums, "method": method, "at_least": least})


def _share(total: float | None, count: int) -> float | None:
    return None if total is None else total / count


def _kind(steps: tuple[Step, ...]) -> tuple[bool, bool, bool]:
    """Steps of one line are all in the warm-up or all after it, and have the same figures."""
    flop = all(one.flop is not None for one in steps)
    return steps[0].warmup, flop, all(one.seconds is not None for one in steps)


def _seconds(ranks: Sequence[Step]) -> float:
    """How long the step took on all ranks, whose clock is that of the machine."""
    ends = [one.monotonic_ns for one in ranks if one.monotonic_ns is not None]
    times = [one.seconds[0] for one in ranks if one.seconds]
    if len(ends) < len(ranks):
        return max(times)
    begins = [end - round(took * 1e9) for end, took in zip(ends, times, strict=True)]
    return (max(ends) - max(begins)) / 1e9


def _add(to: dict[str, float], phases: Mapping[str, float], scale: float = 1.0) -> None:
    for name, seconds in phases.items():
        to[name] = to.get(name, 0.0) + scale * seconds


def _total(steps: Sequence[tuple[Step, ...]], key: str) -> float | None:
    return _sum([getattr(one, key) for ranks in steps for one in ranks])


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
            _add(phases, step.phases)
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
