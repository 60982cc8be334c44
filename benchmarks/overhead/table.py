"""The Markdown table of docs/performance.md."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from pathlib import Path

from benchmarks.overhead.measure import Measured
from benchmarks.overhead.windows import cpu_share, slowdown, undisturbed
from gpuwatch.analysis.results import Interval

PAGE = Path(__file__).resolve().parents[2] / "docs" / "performance.md"
BEGIN, END = "<!-- overhead: begin -->", "<!-- overhead: end -->"
TARGET_HZ, TARGET = 2.0, 0.005
"""At this many samples a second the upper bound of the slowdown is to lie below."""
LOADS = {
    "loop": "Python loop, one core",
    "matmul": "matrix products, all cores",
    "launches": "tiny operations, one core",
}
_HEAD = (
    "workload", "step, ms", "switched", "GPUs", "pairs kept", "slowdown, %", "95 % interval",
    "CPU, % of a core", "in its windows", "at most, %",
)  # fmt: skip


def about(device: str, latency_us: int | None, days: Sequence[str]) -> str:
    """When and where the table was made."""
    when = " and ".join(dict.fromkeys((days[0], days[-1])))
    machine = f"{processor()}, {os.cpu_count()} cores, Linux {platform.release().split('-')[0]}"
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
    found = slowdown(undisturbed(measured.pairs))
    if case.instead is None:
        what = f"recorder, {case.hz:g} Hz"
    else:
        what = f"control: {case.instead:.0%} of a core" if case.instead else "control: nothing"
    return (
        LOADS[case.load],
        f"{measured.step_s * 1e3:.2f}",
        what,
        str(case.gpus) if case.gpus else "own",
        f"{undisturbed(measured.pairs).size} of {measured.pairs.ratios.size}",
        "too few pairs" if found is None else f"{found.estimate:+.2%}".removesuffix("%"),
        "" if found is None else f"{found.low * 100:+.2f} to {found.high * 100:+.2f}",
        f"{measured.cpu_share * 100:.2f}",
        f"{cpu_share(measured.windows) * 100:.2f}",
        "" if case.instead is not None or found is None else f"{at_most(measured, found):.2%}"[:-1],
    )


def at_most(measured: Measured, found: Interval) -> float:
    """The upper bound; where the windows hold less of the recorder's work than any other time,
    larger by that ratio."""
    held = cpu_share(measured.windows)
    usual = measured.cpu_share / held if held else float("inf")
    return max(found.high, found.high * usual)


def verdict(rows: Sequence[Measured]) -> tuple[bool, list[str]]:
    """Whether all is as it should be, and what is to be said of the target and the controls."""
    said = []
    good = True
    for measured in rows:
        found, case = slowdown(undisturbed(measured.pairs)), measured.case
        if found is None:
            good = False
            said.append(f"{LOADS[case.load]}: too few pairs for an interval.")
        elif case.instead == 0 and not found.low <= 0 <= found.high:
            good = False
            said.append(f"{LOADS[case.load]}: the control without a difference shows one.")
        elif case.instead and found.low <= 0:
            good = False
            said.append(f"{LOADS[case.load]}: the slowdown of the control is not seen.")
        elif (
            case.instead is None
            and case.hz == TARGET_HZ
            and (bound := at_most(measured, found)) >= TARGET
        ):
            good = False
            said.append(
                f"{LOADS[case.load]}, {case.gpus} GPUs: upper bound {bound:.2%}, "
                f"**target {TARGET:.1%} missed**"
                + (" for certain." if found.low >= TARGET else ": more minutes or less noise tell.")
            )
    return good, said


def markdown(rows: Sequence[Measured], head: str) -> str:
    lines = [head, ""]
    cells = [_HEAD, ("---",) * len(_HEAD), *map(row, rows)]
    lines += ["| " + " | ".join(each) + " |" for each in cells]
    good, said = verdict(rows)
    return "\n".join([*lines, "", *([_held(rows)] if good else said)])


def _held(rows: Sequence[Measured]) -> str:
    """Of rows with nothing against them: what they show, and what was not among them."""
    cases = [measured.case for measured in rows]
    controls = {bool(case.instead) for case in cases if case.instead is not None}
    target = f"every upper bound is below {TARGET:.1%}"
    if not any(case.instead is None and case.hz == TARGET_HZ for case in cases):
        target = "nothing was measured"
    hold = "the controls hold" if len(controls) == 2 else "not both kinds of control were measured"
    return f"At {TARGET_HZ:g} Hz {target}, and {hold}."


def write(text: str, page: Path = PAGE) -> None:
    """Put the table into the page."""
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    page.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")


def processor() -> str:
    """The name that this machine's processor gives itself."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
