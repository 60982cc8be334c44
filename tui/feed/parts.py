"""What a run does when: in words while it is waited for, and as parts of the time axis."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gpuwatch.core.models import mapping, number
from gpuwatch.core.units import NS
from gpuwatch.session.reading.status import Status
from gpuwatch.tui.feed.steps import FIGURES_SOON, Steps

_LONGEST_START_NS = 60 * NS
"""After this a program that has not imported torch is not expected to."""

Part = tuple[str, float, float]
"""Name, start and end of a part of a run, in nanoseconds of session time."""


def parts_of(meta: Mapping[str, Any], steps: Steps, t: int) -> Iterator[Part]:
    """The parts of the run up to session time ``t`` that are known, a later one over earlier ones:
    start-up or import and set-up, the first step, steps, evaluations, profile."""

    def told(report: str, key: str = "t") -> float | None:
        return number(mapping(meta.get(report)).get(key))

    launch, first = told("launch"), steps.first
    if launch is None:
        return
    begun = float(first.t if first is not None else t)
    if first is not None and first.count == 1 and first.seconds:
        begun = first.t - (told("startup", "first_step_seconds") or first.seconds[0]) * NS
    # By the program's own clock: its line may be read only after the steps.
    started, base = told("started", "monotonic_ns"), told("clock", "monotonic_ns")
    imported = told("startup", "import_seconds")
    if started is None or base is None or imported is None:
        yield "start-up", launch, begun
    else:
        yield "import", started - base, started - base + imported * NS
        yield "set-up", started - base + imported * NS, begun
    if first is not None:
        yield "first step", begun, first.t
        yield "steps", first.t, steps.newest
    for start, end in steps.evaluations:
        yield "evaluation", start, end
    for report in _FURTHER:
        ended, took = told(report), told(report, "real_seconds")
        if ended is not None and took is not None and 0 <= took * NS <= ended:
            yield _FURTHER[report][0], ended - took * NS, ended
    if "end" in meta and "result" not in meta and (goes_on := _further(meta)) is not None:
        report, since = goes_on
        yield _FURTHER[report][0], since, t


def startup_phase(
    meta: Mapping[str, Any], state: Status, t: int, *, stepped: bool, cuda: bool
) -> str:
    """What a live run does at session time ``t`` (ns) before its first step and after the timed
    ones, and what one was stopped in after these; else empty. ``stepped``: it has a step; ``cuda``:
    there is a GPU, of which it is not known to use any."""
    kind = text(meta, "workload", "kind")
    for report, (part, _) in _FURTHER.items():
        if "stopped while" in text(meta, report, "reason"):
            return f"timed steps done; stopped during {part}"
    if not state.live or kind == "machine":
        return ""
    if "end" in meta and kind == "workload":
        goes_on = _further(meta)
        if goes_on is None:
            return "timed steps done"
        return f"timed steps done, {_FURTHER[goes_on[0]][1]}{_seconds(t, goes_on[1])}"
    if stepped or "startup" in meta:
        return ""
    if "launch" in meta and kind == "command":
        return _of_command(meta, t, cuda=cuda)
    run, waiting = mapping(meta.get("run")), mapping(meta.get("waiting"))
    for what, since in (
        ("preparing the first step", run.get("t")),
        ("making the model and its data", waiting.get("t")),
        ("importing torch", mapping(meta.get("started")).get("t")),
        ("starting", mapping(meta.get("launch")).get("t")),
    ):
        if (begun := number(since)) is not None:
            return f"{what}{_seconds(t, begun)}"
    return "preparing the environment"


def _of_command(meta: Mapping[str, Any], t: int, *, cuda: bool) -> str:
    """What the hook tells, if anything; for a program that imports no torch nobody waits long."""
    waiting = mapping(meta.get("waiting"))
    since = number(waiting.get("t"))
    if since is None:
        launched, hook = number(mapping(meta.get("launch")).get("t")), mapping(meta.get("hook"))
        hooked = hook.get("given") is True and launched is not None
        early = hooked and t - (launched or 0) < _LONGEST_START_NS
        return f"no steps yet{_seconds(t, launched or 0)}" if early else ""
    if waiting.get("for") == "import":
        return f"importing torch{_seconds(t, since)}"
    if waiting.get("for") == "own lines":
        return FIGURES_SOON
    if waiting.get("for") == "evaluation":
        return "counting the first calls of a model"
    before = "CUDA or the first step" if cuda else "the first step"
    return f"waiting for {before}{_seconds(t, since)}"


_FURTHER = {
    "profile": ("profile", "profiling kernels"),
    "counters": ("ncu", "ncu counts FLOP and bytes"),
}
"""What a built-in workload does with further steps, once the timed ones are done: the name of the
part, and words."""
FURTHER = tuple(name for name, _ in _FURTHER.values())


def _further(meta: Mapping[str, Any]) -> tuple[str, float] | None:
    """Which of these goes on, and since when (ns)."""
    given = mapping(mapping(meta.get("workload")).get("parameters"))
    since = number(mapping(meta["end"]).get("t"))
    for report, asked in (
        ("profile", given.get("profile") != 0),
        ("counters", given.get("counters")),
    ):
        done = number(mapping(meta.get(report)).get("t"))
        if asked and done is None and since is not None:
            return report, since
        since = done or since
    return None


def _seconds(t: int, since: float) -> str:
    """Nothing of what has only begun: nobody waits yet."""
    passed = (t - since) // NS  # as clocks do, which stand beside it
    return f", {passed:.0f} s" if passed > 1 else ""


def text(meta: Mapping[str, Any], *keys: str) -> str:
    """The value at the nested ``keys`` as text; empty: there is none."""
    value: Any = meta
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return "" if value is None else str(value)
