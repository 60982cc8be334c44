"""The Markdown table of benchmarks/RESULTS.md."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from benchmarks import page
from benchmarks.overhead.measure import Case, Measured
from benchmarks.overhead.windows import cpu_share, slowdown, undisturbed
from gpuwatch.analysis.statistics.intervals import Interval

BEGIN, END = page.marks("overhead")
write = partial(page.write, "overhead")
"""Put the table into the page."""
TARGET_HZ, TARGET = 2.0, 0.005
"""At this many samples a second the upper bound of the slowdown is to lie below."""
LOADS = {
    "loop": "Python loop, one core",
    "matmul": "matrix products, all cores",
    "launches": "tiny operations, one core",
}
_HEAD = (
    "workload", "step, ms", "switched", "GPUs", "pairs", "slowdown, %", "95 % interval",
    "pairs by all steps", "slowdown, %", "95 % interval", "CPU, % of a core", "in its windows",
    "at most, %",
)  # fmt: skip


def about(device: str, latency_us: int | None, days: Sequence[str]) -> str:
    """When and where the table was made."""
    when = " and ".join(dict.fromkeys((days[0], days[-1])))
    linux = platform.release().split("-")[0]
    machine = f"{page.processor()}, {os.cpu_count()} cores, Linux {linux}"
    driver = "this machine's driver" if latency_us is None else "stand-in driver, "
    calls = "" if latency_us is None else f"each call sleeps {latency_us} µs"
    load = os.getloadavg()[2]
    return (
        f"{when}, {machine}, Python {platform.python_version()}; {driver}{calls}; workload on "
        f"{device}; load of the last 15 minutes {load:.1f}."
    )


def row(measured: Measured) -> tuple[str, ...]:
    """The cells of one measurement."""
    case = measured.case
    everything = undisturbed(measured.pairs)
    pairs = measured.pairs.ratios.size
    bound = None if case.instead is not None else at_most(measured)
    return (
        LOADS[case.load],
        f"{measured.step_s * 1e3:.2f}",
        _what(case),
        str(case.gpus) if case.gpus else "own",
        f"{measured.moments.size} of {pairs}",
        *_cells(by_moments(measured)),
        f"{everything.size} of {pairs}",
        *_cells(slowdown(everything)),
        f"{measured.cpu_share * 100:.2f}",
        f"{cpu_share(measured.windows) * 100:.2f}",
        "" if bound is None else f"{bound:.2%}"[:-1],
    )


def _what(case: Case) -> str:
    if case.instead is None:
        return f"recorder, {case.hz:g} Hz"
    return f"control: {case.instead:.0%} of a core" if case.instead else "control: nothing"


def _cells(found: Interval | None) -> tuple[str, str]:
    if found is None:
        return "too few pairs", ""
    return f"{found.estimate * 100:+.2f}", f"{found.low * 100:+.2f} to {found.high * 100:+.2f}"


def by_moments(measured: Measured) -> Interval | None:
    """The slowdown by the moments in which the switched process ran; ``None`` where it ran so often
    that most pairs, or so many that too few, tell nothing."""
    if 2 * measured.moments.size < measured.pairs.ratios.size:
        return None
    return slowdown(measured.moments, np.mean)


def found_by(measured: Measured) -> Interval | None:
    """The slowdown that counts: by its moments, by all steps where those tell nothing."""
    return by_moments(measured) or slowdown(undisturbed(measured.pairs))


def at_most(measured: Measured) -> float | None:
    """The upper bound; where the windows hold less of the recorder's work than any other time,
    larger by that ratio."""
    found = found_by(measured)
    if found is None:
        return None
    held = cpu_share(measured.windows)
    usual = measured.cpu_share / held if held else float("inf")
    return max(found.high, found.high * usual)


def verdict(rows: Sequence[Measured]) -> tuple[bool, list[str]]:
    """Whether all is as it should be, and what is to be said of the target and the controls."""
    said = [text for measured in rows for text in _against(measured)]
    return not said, said


def _against(measured: Measured) -> Iterator[str]:
    case = measured.case
    gpus = f"{case.gpus} GPU{'s' * (case.gpus != 1)}" if case.gpus else "own GPUs"
    name = f"{LOADS[case.load]}, {_what(case)}, {gpus}"
    everything, found = slowdown(undisturbed(measured.pairs)), found_by(measured)
    if found is None:
        yield f"{name}: too few pairs for an interval."
    elif case.instead == 0:
        if not found.low <= 0 <= found.high:
            yield f"{name}: it shows a difference."
    elif case.instead:
        if found.low <= 0:
            yield f"{name}: its slowdown is not seen."
    else:
        if everything is not None and everything.low > found.high:
            yield f"{name}: all steps show more than the moments."
        bound = at_most(measured)
        if case.hz == TARGET_HZ and bound is not None and bound >= TARGET:
            more = "for certain" if found.low >= TARGET else "more minutes tell"
            yield f"{name}: upper bound {bound:.2%}, **target {TARGET:.1%} missed**: {more}."


def markdown(rows: Sequence[Measured], head: str) -> str:
    good, said = verdict(rows)
    table = page.table(_HEAD, [row(measured) for measured in rows])
    return "\n".join([head, "", table, "", *([_held(rows)] if good else said)])


def _held(rows: Sequence[Measured]) -> str:
    """Of rows with nothing against them: what they show, and what was not among them."""
    cases = [measured.case for measured in rows]
    controls = {bool(case.instead) for case in cases if case.instead is not None}
    target = f"every upper bound is below {TARGET:.1%}"
    if not any(case.instead is None and case.hz == TARGET_HZ for case in cases):
        target = "nothing was measured"
    hold = "the controls hold" if len(controls) == 2 else "not both kinds of control were measured"
    return f"At {TARGET_HZ:g} Hz {target}, and {hold}."
