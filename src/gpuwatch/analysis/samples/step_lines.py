"""Step times and throughput of step lines; without numpy, so that session lists start fast."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from gpuwatch.analysis.samples.rates import StepLine, full_times, leaps, taken
from gpuwatch.core.models import JSON, mapping, sequence
from gpuwatch.core.text import clean
from gpuwatch.core.units import NS
from gpuwatch.session.rows import StepBucket

_FAR = 0.05
"""Share of a median from which on the mean is far."""
NO_STEPS = "no timed step was reported"
NO_STEPS_YET = "no steps yet"
GIVE_STEPS = f"{NO_STEPS_YET}: torch or step lines give them; --hook loss reads the loss"
NO_FULL_STEP = "no full step was reported"
_NO_LINES = "no line of its output was recognised as a step, as `step 10 loss 0.5` would be"
NEXT = "; next: "
"""Between a reason and what mends it."""
_HOOK_OFF = f"the hook was off (--hook off){NEXT}leave it out"
_LEAVES_OUT = re.compile(r"\bpython[\d.]*(?: -[WX] ?\S+| -[a-zA-VYZ]+)*? -[bBdiOPqRsuvx]*([EIS])")
"""A Python that reads no PYTHONPATH, or runs no sitecustomize."""
UNTIMED = (
    "the step lines tell no time but that of their arrival: print `seconds` or `monotonic_ns` "
    "(`gpuwatch run --help`)"
)
SOME = "the step lines tell only some of the steps: print `count` (`gpuwatch run --help`)"
LEAPS = (
    "the step lines tell only some of the steps, without their times: print `count` or `seconds` "
    "(`gpuwatch run --help`)"
)
TOGETHER = (
    "the workload reports several steps at once without their times: print `seconds` as a list "
    "(`gpuwatch run --help`)"
)
_LONGEST_REASON = 400
_LEAST_ARRIVALS = 10
_OLDER_HOOK = {"data", "forward", "backward", "optimizer", "other"}


def several_writers(meta: Mapping[str, JSON]) -> str | None:
    """Why the step lines are not those of one process; ``None`` where nothing speaks against it.

    Whatever adds up the lines of such a session, or divides by their number, would be wrong.
    """
    told = mapping(meta.get("several_writers")).get("text")
    return clean(told, _LONGEST_REASON) if told else None


def no_steps(meta: Mapping[str, JSON]) -> str:
    """Why a session without a step has none, as far as the hook can tell, and behind :data:`NEXT`
    what mends it, where that is known."""
    hook = mapping(meta.get("hook"))
    if not (told := hook.get("text")):
        return _HOOK_OFF if hook.get("given") is False else "the workload reported no steps"
    if hook.get("processes"):
        return clean(told, _LONGEST_REASON)
    words = sequence(mapping(meta.get("workload")).get("arguments"))
    if option := _LEAVES_OUT.search(" ".join(map(str, words))):
        return f"python -{option[1]} leaves out the hook{NEXT}without -{option[1]}"
    return f"{clean(told, _LONGEST_REASON)}; {_NO_LINES}"


def no_figure(meta: Mapping[str, JSON], key: str, lines: str = "no step line") -> str:
    """Why no step has the loss, or an accuracy; ``lines``: what was looked at."""
    if not mapping(meta.get("hook")).get("processes"):
        return f"{lines} has it"
    if key != "loss":
        return "no line of the program was read as having it"
    trains = "trainable_parameters" in mapping(meta.get("run"))
    told = "; --hook loss reads it" if trains else ""
    return f"no line of the program was read as having it, as `step 10 loss 0.5` would be{told}"


def hooked(meta: Mapping[str, JSON]) -> bool | None:
    """Whether the hook was in a process of the run; ``None``: an older file, or no command."""
    hook = meta.get("hook")
    return bool(hook.get("processes")) if isinstance(hook, dict) else None


def run_of(meta: Mapping[str, JSON], phases: Mapping[str, float]) -> Mapping[str, JSON]:
    """What the workload told of itself, with ``unseen_phases``, also of an older hook: it told all
    of its phases always, and one that it could not see as 0. Any other 0 is a measurement.

    ``phases``: seconds of each."""
    run = mapping(meta.get("run"))
    if "unseen_phases" in run or not hooked(meta) or not phases.keys() >= _OLDER_HOOK:
        return run
    unseen = {name: "could not be told apart from other" for name in phases if not phases[name]}
    return {**run, "unseen_phases": unseen}


def seen(run: Mapping[str, JSON], phases: Mapping[str, float]) -> dict[str, float]:
    """``phases`` without those that the hook never saw: their time is in ``other``, not 0.

    ``run``: as of :func:`run_of`."""
    unseen = mapping(run.get("unseen_phases"))
    return {name: took for name, took in phases.items() if took or name not in unseen}


def other_phase(run: Mapping[str, JSON]) -> str:
    """What the rest of a step is called: with the phases that the hook could not see, whose time is
    in it. ``run``: as of :func:`run_of`."""
    unseen = mapping(run.get("unseen_phases"))
    inside = " and ".join(name for name in ("data", "forward") if name in unseen)
    return f"other (with {inside})" if inside else "other"


def no_rates(meta: Mapping[str, JSON], timed: Iterable[StepLine]) -> str | None:
    """Why no rate follows from the ``timed`` step lines of a session; ``None`` where it does.

    The workload must tell how long its steps took, or when all of them ended.
    """
    lines = list(timed)
    if (writers := several_writers(meta)) is not None:
        return writers
    if arrived(meta, lines[1:]):
        return untimed(meta) or UNTIMED
    return LEAPS if leaps(lines) and any(taken(line) is None for line in lines[1:]) else None


def untimed(meta: Mapping[str, JSON]) -> str:
    """Why the program's progress lines tell no step's time; empty: they do, or it prints none."""
    return clean(meta.get("untimed") or "", _LONGEST_REASON)


def mean_by_arrival(timed: Sequence[StepLine]) -> float | None:
    """Seconds per step from the arrival of the first of these lines to that of the last, without
    evaluations; ``None`` below ten arrivals of lines that tell no time: lines that a program holds
    back come together."""
    if len({row.t for row in timed if not _has_times(row)}) < _LEAST_ARRIVALS:
        return None
    steps = timed[-1].step - timed[0].step
    seconds = (timed[-1].t - timed[0].t) / NS - sum(row.evaluation for row in timed[1:])
    return seconds / steps if steps > 0 and seconds > 0 else None


def arrived(meta: Mapping[str, JSON], lines: Iterable[StepLine]) -> bool:
    """Whether only their arrival says how long some of these step lines took.

    The first line of a run is none of them: it needs no time to be the start of the others.
    """
    return not ends_told(meta) and any(taken(line) is None for line in lines)


def ends_told(meta: Mapping[str, JSON]) -> bool:
    """Whether the workload tells when its steps end."""
    return meta.get("step_ends") == "told"


def far_mean(median: float | None, mean: float | None) -> float | None:
    """The mean step time where it is over a twentieth off the median: it stands beside it then."""
    return mean if median and mean and abs(mean / median - 1) > _FAR else None


def times_of(timed: Sequence[StepLine]) -> tuple[array[float], str | None]:
    """Seconds of each full step, in order.

    The second value is the reason where they are not step times.
    """
    times = array("d")
    for row in timed:
        times.extend(full_times(row))
    if not timed:
        return times, NO_STEPS
    if not all(_has_times(row) or row.count == 1 for row in timed):
        return times, TOGETHER
    if times:
        return times, None
    return times, NO_FULL_STEP if any(map(_has_times, timed)) else UNTIMED


def _has_times(row: StepLine) -> bool:
    return isinstance(row, StepBucket) or row.seconds is not None


def median_step(timed: Sequence[StepLine]) -> float | None:
    """Median step time in seconds; ``None`` where unknown."""
    times, reason = times_of(timed)
    return median(times) if times and reason is None else None
