"""Where in the step a change lies: kernels, copies and host wait, or the phases."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from gpuwatch.analysis.explain.sides import LEAST_POINTS, Part, Sides, Split, Value
from gpuwatch.analysis.hardware.kernels import times_of
from gpuwatch.analysis.results import Evidence, Run
from gpuwatch.core import units
from gpuwatch.core.metrics import Method
from gpuwatch.core.models import mapping
from gpuwatch.core.text import clean

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
    profile = run.session.profile
    return _a_step(run, None if profile is None else times_of(profile).kernels)


def copy_seconds(run: Run) -> float | None:
    """Seconds per step of all copies from host to device under the profiler."""
    profile = run.session.profile
    return _a_step(run, None if profile is None else times_of(profile).copies_to_device)


def _a_step(run: Run, seconds: float | None) -> float | None:
    steps = None if run.session.profile is None else run.session.profile.steps
    return seconds / steps if steps and seconds is not None else None


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
    evidence = [
        _evidence("kernel time", name, _KERNELS, parts[_KERNELS], split.change, profiled, sides)
    ]
    less = "kernels"
    if _COPIES in parts:
        less += " and copies"
        name, more = f"{_COPIES} (under the profiler)", _copy_phase(sides, phases)
        evidence.append(
            _evidence("copies", name, _COPIES, parts[_COPIES], split.change, profiled, sides, more)
        )
    part, name = _REST, f"{_REST} (step time less {less})"
    if min(parts[_REST].seconds) < 0:
        part, name = "", f"what is left of the step without {less}, which overlap,"
    source = "steady step time less what the profiler saw"
    more = _most_changed(phases)
    evidence.append(_evidence("host", name, part, parts[_REST], split.change, source, sides, more))
    return [*evidence, *_left_over(split, f"{less} and host wait", "", source)]


def _rest(step: Value) -> Value:
    """Rest of the step in seconds; negative where copies or kernels overlap."""

    def rest(run: Run) -> float | None:
        seconds, kernels = step(run), kernel_seconds(run)
        if seconds is None or kernels is None:
            return None
        return seconds - kernels - (copy_seconds(run) or 0.0)

    return rest


def _phases(sides: Sides) -> Split | None:
    """The split by the phases that any judged run reports, the longest of many.

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
    return sides.split(values) if values else None


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
    changed = [part for part in split.parts if part.points.changed]
    evidence = [
        _evidence(
            "copies" if part.name == _COPY else "host",
            f"phase {_name(part)}",
            f"the phase {_name(part)}",
            part,
            split.change,
            _PHASES_SOURCE,
            sides,
        )
        for part in changed
    ]
    same = [part for part in split.parts if part.points.same(sides.margin)]
    unclear = [part for part in split.parts if part not in changed and part not in same]
    for parts, result in ((same, "unchanged"), (unclear, "can't be told apart")):
        if parts:
            noun = "phase" if len(parts) == 1 else "phases"
            text = f"{noun} {', '.join(map(_name, parts))} {result}: {_widest(parts)}"
            evidence.append((0.0, Evidence("host", text, None, Method.MEASURED, _PHASES_SOURCE)))
    cause = (
        ": the step time is a median of steady steps, phases are means over all timed steps, or "
        "over those that were sampled"
    )
    return [*evidence, *_left_over(split, "the phases", cause, _PHASES_SOURCE)]


def _evidence(
    rung: str,
    name: str,
    of: str,
    part: Part,
    change: float,
    source: str,
    sides: Sides,
    more: str | None = None,
) -> Weighed:
    """Evidence on a part of the step; ``change`` is that of the whole step."""
    points, both = part.points, _both(sides, part)
    if points.changed:
        text = f"{name} {both}: accounts for {points.of(change)}"
    elif points.same(sides.margin):
        text = f"{name} unchanged: {both}, {points}"
    else:
        text = f"{name} can't be told apart: {both}, {points}"
    text += f"; {more}" if more else ""
    judged = points.judged
    return abs(points.estimate), Evidence(
        rung, text, judged, Method.MEASURED, source, of if judged else ""
    )


def _left_over(split: Split, parts: str, cause: str, source: str) -> Iterator[Weighed]:
    """Evidence on the change outside of all parts, if it is not negligible."""
    points = split.remainder
    if points.changed:
        text = f"in none of {parts}: {points}{cause}"
        yield abs(points.estimate), Evidence("host", text, points.judged, Method.MEASURED, source)


def _copy_phase(sides: Sides, phases: Split | None) -> str | None:
    part = next((each for each in phases.parts if each.name == _COPY), None) if phases else None
    if part is None:
        return None
    return f"the steps' phase copy {_both(sides, part)}"


def _most_changed(phases: Split | None) -> str | None:
    """The phase with the largest part of the change: another view of the same time."""
    changed = [part for part in (phases.parts if phases else ()) if part.points.changed]
    if not changed:
        return None
    most = max(changed, key=lambda part: abs(part.points.estimate))
    return f"of the steps' phases {_name(most)} took most, {most.points}"


def _widest(parts: Sequence[Part]) -> str:
    """The largest distance from zero that the intervals allow, in words."""
    known = [part.points.interval for part in parts if part.points.interval is not None]
    if not known:
        return f"under {LEAST_POINTS * 100:.1f} points"
    reach = max(abs(end) for each in known for end in (each.low, each.high)) * 100
    return f"within {max(reach, 0.1):.1f} points{' each' if len(parts) > 1 else ''}"


def _both(sides: Sides, part: Part) -> str:
    first, second = map(_time, part.seconds)
    return sides.both(f"{first} a step", second)


def _name(part: Part) -> str:
    return clean(part.name, _LONGEST_NAME)


def _time(seconds: float) -> str:
    return f"-{units.milliseconds(-seconds)}" if seconds < 0 else units.milliseconds(seconds)
