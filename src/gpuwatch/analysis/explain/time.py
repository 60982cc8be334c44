"""Where a change lies: in the step's kernels, copies and host wait, or its phases; in the start."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from operator import attrgetter

from gpuwatch.analysis.explain.sides import (
    LEAST_POINTS,
    Part,
    Sides,
    Split,
    Value,
    plausible,
    signed,
    step_seconds,
)
from gpuwatch.analysis.hardware.kernels import times_of
from gpuwatch.analysis.results import Cell, Evidence, Run, StartUp
from gpuwatch.analysis.statistics.intervals import Interval, difference, lower_end, middle
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.core import units
from gpuwatch.core.aggregate import total_of
from gpuwatch.core.metrics import Method
from gpuwatch.core.models import mapping
from gpuwatch.core.text import clean

_STAGES = (
    ("launch", "launch_seconds"),
    ("import", "import_seconds"),
    ("model and data", "model_seconds"),
    ("first step", "first_step_seconds"),
)


def start_up(sides: Sides) -> tuple[StartUp | None, Evidence | None]:
    """Start-up time of the other environment, and the sentence about it, if it differs.

    ``None`` where a stage of the start is unknown.
    """
    first, second = sides.middles(seconds_of)
    if second is None:
        return None, None
    if first is None:
        return StartUp(second, None, None), None
    extra = second - first
    interval = _interval(sides)
    differs = interval is None or not interval.low <= 0 <= interval.high
    steps = even = None
    if differs and extra > 0:
        step, even = _step(sides.baseline), _break_even(sides, extra)
        steps = _steps(extra, sides.margin * step) if step and sides.margin > 0 else None
    found = StartUp(second, extra, steps, even)
    if not differs or not extra:
        return found, None
    text = f"start-up {sides.both(_start_time(first), _start_time(second))}"
    text += f": {_start_time(abs(extra))} {'more' if extra > 0 else 'less'}{_stage(sides, extra)}"
    if even is not None:
        text += f"; its faster steps make up for that after {even:,} steps (break-even)"
    elif steps is not None:
        text += f"; under {units.percent(sides.margin)} of the time after {steps:,} steps"
    source = "launch, import, model and data, first step; no part of the step time"
    return found, Evidence("start-up", text, None, Method.MEASURED, source)


def seconds_of(session: Summary) -> float | None:
    """Seconds of launch, import, model and first step of one run; ``None`` unless all are known."""
    return plausible(total_of([getattr(session.timing, key) for _, key in _STAGES]))


def _break_even(sides: Sides, extra: float) -> int | None:
    """Number of steps that save ``extra`` seconds, if they are faster by more than the margin."""
    whole = sides.split({})
    first, second = map(_step, sides.cells)
    if whole is None or first is None or second is None:
        return None
    change = whole.remainder
    highest = change.estimate if change.interval is None else change.interval.high
    if highest > lower_end(sides.margin) or second >= first:
        return None
    return _steps(extra, first - second)


def _step(cell: Cell) -> float | None:
    return middle([known for run in cell.judged if (known := step_seconds(run)) is not None])


def _steps(extra: float, each: float) -> int:
    """Number of steps that make up ``extra`` seconds at ``each`` seconds per step."""
    return math.ceil(round(extra / each, 6))


def _interval(sides: Sides) -> Interval | None:
    """Interval of the difference in seconds, paired by block; ``None`` under three pairs."""
    first, second = (
        {
            run.block: known
            for run in cell.judged
            if run.block is not None and (known := seconds_of(run.session)) is not None
        }
        for cell in sides.cells
    )
    return difference([second[block] - first[block] for block in first.keys() & second.keys()])


def _stage(sides: Sides, extra: float) -> str:
    """The stage with the largest part of the difference, in words."""
    added = []
    for name, key in _STAGES:
        first, second = sides.middles(attrgetter(f"timing.{key}"))
        if first is not None and second is not None:
            added.append(((second - first) * math.copysign(1.0, extra), name))
    most, name = max(added)
    return f", {_start_time(most)} of it {name}"


def _start_time(seconds: float) -> str:
    return units.milliseconds(seconds) if seconds < 1 else f"{seconds:.2f} s"


_KERNELS, _COPIES, _REST = "GPU kernel time", "copies to the GPU", "host wait"
_COPY, _OTHER = "copy", "other"
_MOST_PHASES = 12
_LONGEST_NAME = 30
_PHASES_SOURCE = "step lines: phases of the timed steps, without a profiler"

Weighed = tuple[float, Evidence]
"""Evidence and the size of its points, 0 where it has none."""


def where(sides: Sides) -> list[Weighed]:
    """Contribution of each part of the step to the change of its time.

    With profiles on both sides: GPU kernels, copies from the host, and the rest of the step. Else
    the phases that the workload reports.
    """
    by_kernels = _by_kernels(sides)
    return _by_phases(sides) if by_kernels is None else by_kernels


def kernel_seconds(run: Run) -> float | None:
    """Seconds per step of all GPU kernels under the profiler; unknown for an import."""
    return times_of(run.session.profile).kernels


def copy_seconds(run: Run) -> float | None:
    """Seconds per step of all copies from host to device under the profiler."""
    return times_of(run.session.profile).copies_to_device


def _by_kernels(sides: Sides) -> list[Weighed] | None:
    """Parts by kernels, copies and rest; ``None`` where a cell has no profile."""
    values: dict[str, Value] = {
        _KERNELS: kernel_seconds,
        _COPIES: copy_seconds,
        _REST: _rest(sides.step_seconds),
    }
    split = sides.split(values)
    if split is None:
        del values[_COPIES]
        split = sides.split(values)
    if split is None:
        return None
    parts = {part.name: part for part in split.parts}
    profiled = "the profile of a few steps after the timed ones of each run"
    phases = _phases(sides)
    name = f"{_KERNELS} (under the profiler)"
    evidence = [_evidence("kernel time", name, _KERNELS, parts[_KERNELS], split, profiled, sides)]
    less = "kernels"
    if _COPIES in parts:
        less += " and copies"
        name, more = f"{_COPIES} (under the profiler)", None
        for phase in phases.parts if phases else ():
            if phase.name == _COPY:
                more = f"the steps' phase copy {_both(sides, phase)}"
        evidence.append(
            _evidence("copies", name, _COPIES, parts[_COPIES], split, profiled, sides, more)
        )
    part, name = _REST, f"{_REST} (step time minus {less})"
    if min(parts[_REST].seconds) < 0:
        part, name = "", f"what is left of the step without {less}, which overlap,"
    source = "steady step time minus what the profiler saw"
    more = _most_changed(phases)
    evidence.append(_evidence("host", name, part, parts[_REST], split, source, sides, more))
    return [*evidence, *_left_over("host", split, f"{less} and host wait", "", source)]


def _rest(step: Value) -> Value:
    """Rest of the step in seconds; negative where copies or kernels overlap."""

    def rest(run: Run) -> float | None:
        seconds, kernels = step(run), kernel_seconds(run)
        if seconds is None or kernels is None:
            return None
        return seconds - kernels - (copy_seconds(run) or 0.0)

    return rest


def _phases(sides: Sides, step: Value | None = None) -> Split | None:
    """The split by the phases that any judged run reports, the longest of many; ``step``: as of
    :meth:`Sides.split`.

    One that some run could not see is in ``other`` for all, as its time is in that run.
    """
    judged = [run.session for cell in sides.cells for run in cell.judged]
    unseen = {name for session in judged for name in mapping(session.run.get("unseen_phases"))}
    longest: dict[str, float] = {}
    for session in judged:
        for name, seconds in session.steps.phases.items():
            if name not in unseen:
                longest[name] = max(seconds, longest.get(name, 0.0))
    most = sorted(longest, key=lambda name: -longest[name])[:_MOST_PHASES]
    values = {name: _phase(name, unseen) for name in longest if name in most}
    return sides.split(values, step) if values else None


def _phase(name: str, unseen: Collection[str]) -> Value:
    """Seconds of a phase per step: 0 in a run that reports others alone, unknown without any."""

    def seconds(run: Run) -> float | None:
        phases = run.session.steps.phases
        more = sum(phases.get(each, 0.0) for each in unseen) if name == _OTHER else 0.0
        return phases.get(name, 0.0) + more if phases else None

    return seconds


def _by_phases(sides: Sides) -> list[Weighed]:
    split = _phases(sides)
    if split is None:
        return []
    cause = (
        ": the step time is a median of steady steps, phases are means over all timed steps, slow "
        "ones too, or over those that were sampled"
    )
    changed = [part for part in split.parts if part.points.changed]
    if changed and split.known and _too_much(split, sides.margin):
        return [_of_the_mean(sides, split)]
    evidence = [
        _evidence(
            "copies" if part.name == _COPY else "phases",
            f"phase {_name(part)}",
            f"the phase {_name(part)}",
            part,
            split,
            _PHASES_SOURCE,
            sides,
        )
        for part in changed
    ]
    same = [part for part in split.parts if part.points.same(sides.margin)]
    unclear = [part for part in split.parts if part not in changed and part not in same]
    told = unclear if changed or same else ()  # of all together the verdict says it
    for parts, result in ((same, "unchanged"), (told, "can't be told apart")):
        if parts:
            noun = "phase" if len(parts) == 1 else "phases"
            text = f"{noun} {', '.join(map(_name, parts))} {result}: {_widest(parts)}"
            evidence.append((0.0, Evidence("phases", text, None, Method.MEASURED, _PHASES_SOURCE)))
    return [*evidence, *_left_over("phases", split, "the phases", cause, _PHASES_SOURCE)]


def _too_much(split: Split, margin: float) -> bool:
    """Whether the parts come to clearly more than the change."""
    beyond = split.remainder.estimate * (-1 if split.change > 0 else 1)
    return beyond > max(abs(split.change) / 10, margin)


def _of_the_mean(sides: Sides, judged: Split) -> Weighed:
    """Evidence on the mean of all timed steps, slow ones too, which phases add up to, where they
    are more than what is judged; that none accounts for it where they are more than that, too."""
    split = _phases(sides, lambda run: run.session.steps.mean_seconds)
    changed = [part for part in (split.parts if split else ()) if part.points.changed]
    if split is None or not changed or _too_much(split, sides.margin):
        together = signed(judged.change - judged.remainder.estimate)
        text = f"no phase accounts for the {signed(judged.change)} points: together {together}"
    else:
        parts = sorted(changed, key=lambda part: -abs(part.points.estimate))
        named = ", ".join(f"{_name(part)} {_added(part.seconds)}" for part in parts)
        text = f"of {_added(split.seconds)} in the mean of all timed steps: {named}; the "
        text += f"{'steady mean' if sides.by_total else 'typical step'} {_added(judged.seconds)}"
    return 0.0, Evidence("phases", text, None, Method.MEASURED, _PHASES_SOURCE)


def _added(seconds: tuple[float, float]) -> str:
    """What the other took more or less: ``+36.1 ms``."""
    first, second = seconds
    return f"{'-' if second < first else '+'}{units.milliseconds(abs(second - first))}"


def _evidence(
    rung: str,
    name: str,
    of: str,
    part: Part,
    split: Split,
    source: str,
    sides: Sides,
    more: str | None = None,
) -> Weighed:
    """Evidence on a part of the step."""
    points, both = part.points, _both(sides, part)
    if points.changed and split.known and points.estimate * split.change >= 0:
        text = f"{name} {both}: accounts for {points.text(split.change)}"
    elif points.changed:
        text = f"{name} {both}: {points.text()}{', against the change' * split.known}"
    elif points.same(sides.margin):
        text = f"{name} unchanged: {both}, {points.text()}"
    else:
        text = f"{name} can't be told apart: {both}, {points.text()}"
    text += f"; {more}" if more else ""
    judged, of = points.judged, of if points.judged else ""
    return abs(points.estimate), Evidence(rung, text, judged, Method.MEASURED, source, of)


def _left_over(rung: str, split: Split, parts: str, cause: str, source: str) -> Iterator[Weighed]:
    """Evidence on a known change outside of all parts, if it is not negligible."""
    points = split.remainder
    if points.changed and split.known:
        text = f"in none of {parts}: {points.text()}{cause}"
        yield abs(points.estimate), Evidence(rung, text, points.judged, Method.MEASURED, source)


def _most_changed(phases: Split | None) -> str | None:
    """The phase with the largest part of the change: another view of the same time."""
    changed = [part for part in (phases.parts if phases else ()) if part.points.changed]
    if not changed:
        return None
    most = max(changed, key=lambda part: abs(part.points.estimate))
    return f"of the steps' phases {_name(most)} took most, {most.points.text()}"


def _widest(parts: Sequence[Part]) -> str:
    """The largest distance from zero that the intervals allow, in words."""
    known = [part.points.interval for part in parts if part.points.interval is not None]
    if not known:
        return f"under {LEAST_POINTS * 100:.1f} points"
    reach = max(abs(end) for each in known for end in (each.low, each.high)) * 100
    return f"within {max(reach, 0.1):.1f} points{' each' if len(parts) > 1 else ''}"


def _both(sides: Sides, part: Part) -> str:
    first, second = (
        f"{'-' if seconds < 0 else ''}{units.milliseconds(abs(seconds))}"
        for seconds in part.seconds
    )
    return sides.both(f"{first} a step", second)


def _name(part: Part) -> str:
    return clean(part.name, _LONGEST_NAME)
