"""Explain a difference between two environments, down the ladder of explanation.

Settings, GPU kernel time, copies, the host, versions, kernels, clocks, load, limits, start-up.
Evidence goes with a change and never claims to be its cause: ``docs/explanation.md``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from statistics import fmean

from gpuwatch.analysis.comparison.side_by_side import differences
from gpuwatch.analysis.explain.kernels import differing, executed
from gpuwatch.analysis.explain.sides import Sides
from gpuwatch.analysis.explain.time import start_up, where
from gpuwatch.analysis.results import Cell, Difference, Evidence, Explanation
from gpuwatch.analysis.samples.cpu_time import cpus_in
from gpuwatch.analysis.summary.identity import sound
from gpuwatch.analysis.summary.load import mean_of, others_share
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.core import units
from gpuwatch.core.metrics import CATALOGUE, THROTTLES, Method, label
from gpuwatch.core.models import JSON, mapping
from gpuwatch.core.text import clean

RELATIVE = 0.02
"""Relative difference from which on clocks and power differ."""
SHARES = 0.05
"""Difference from which on shares of the time or of the cores differ (5 points)."""

_RATES = ("hw.gpu.clock.sm", "hw.gpu.clock.memory", "hw.gpu.power", "hw.cpu.frequency")
THROTTLING = "throttling"


def explain(
    baseline: Cell,
    other: Cell,
    margin: float,
    *,
    by_total: bool = False,
    parts: bool = True,
    places: Mapping[str, int] | None = None,
) -> Explanation:
    """Evidence on the change from ``baseline`` to ``other``, from the judged runs of both.

    Differing settings first, since somebody chose them; parts of the step, the largest change
    first; then differing versions, kernels, clocks and limits, and the load of other programs;
    start-up last. Unknowns are left out. ``margin`` is relative: a part within it is unchanged.
    Extra start-up comes with the number of steps after which it is below that share of the whole
    time, or faster steps have made up for it. ``by_total``: the change is that of all steps.
    ``parts``: with the parts of the step. ``places``: of each run in its block, by the path of its
    session, where they are known.
    """
    sides = Sides(baseline, other, margin, by_total, places or {})
    facts = fingerprint(sides)
    settings, versions, limits = of_facts = [_told(sides, facts, *each) for each in _OF_FACTS]
    if not all(any(map(sound, of)) for of in sides.sessions):  # what was measured is of a failure
        return Explanation(tuple(filter(None, of_facts)), facts, (), None)
    kernels, families, ran = differing(sides)
    start, started = start_up(sides)
    points = sorted(where(sides) if parts else (), key=lambda each: -each[0])
    rungs = (
        settings,
        *(evidence for _, evidence in points),
        versions,
        ran,
        executed(sides),
        *conditions(sides),
        load(sides),
        limits,
        started,
    )
    evidence = tuple(each for each in rungs if each is not None)
    return Explanation(evidence, facts, kernels, start, families)


def conditions(sides: Sides) -> list[Evidence]:
    """Clocks and power that differ by 2 % or more, and times of held-down clocks by five points.

    Values are means over the window, then over the runs. Empty also where the windows
    cover different parts of the runs and cannot be compared.
    """
    kinds = {session.window.kind for sessions in sides.sessions for session in sessions}
    if len(kinds) != 1:
        return []
    rates, held = [], []
    for name in _RATES:
        first, second = sides.middles(partial(mean_of, name=name))
        if first and second is not None and abs(second / first - 1) >= RELATIVE:
            both = sides.both(*(units.si(value, CATALOGUE[name].unit) for value in (first, second)))
            rates.append(f"{label(name)} {both}")
    for name in THROTTLES:
        shares = sides.known(partial(mean_of, name=name))
        if all(shares) and abs(fmean(shares[1]) - fmean(shares[0])) >= SHARES:
            one, two = (units.percent(fmean(of)) for of in shares)
            both = sides.both(f"{one} of the time", two)
            held.append(f"{label(name)} {both}")
    source = f"means over the {kinds.pop()}, then over the runs"
    return [
        Evidence(rung, "; ".join(texts), None, Method.MEASURED, source)
        for rung, texts in (("clocks", rates), (THROTTLING, held))
        if texts
    ]


def load(sides: Sides) -> Evidence | None:
    """Other programs' share of the cores' time, if it is known of all runs, those of the cells do
    not overlap, and it differs by five points. Means over the windows, then over the runs."""
    shares = sides.known(others_share)
    if not all(shares) or list(map(len, shares)) != list(map(len, sides.sessions)):
        return None
    low, high = sorted(shares, key=fmean)
    if max(low) >= min(high) or fmean(high) - fmean(low) < SHARES:
        return None
    first, second = (units.percent(fmean(of)) for of in shares)
    both = sides.both(f"{first} of the CPU's time", second)
    text = f"other programs used {both}"
    kinds = sorted({session.window.kind for of in sides.sessions for session in of})
    source = f"means over the {' or the '.join(kinds)}, then over the runs"
    return Evidence("load", text, None, Method.MEASURED, source)


_MOST_NAMED = 4
_NOT_SET = "not set"
_LONGEST_VALUE = 40

# Most influential on kernel selection first: scope, pattern of the whole key, label.
_VERSIONS = (
    ("host", r"gpu\d+\.driver\.version", "driver"),
    ("workload", "cuda", "CUDA"),
    ("workload", "hip", "HIP"),
    ("workload", "cudnn", "cuDNN"),
    ("workload", "torch", "torch"),
    ("workload", "blas", "BLAS"),
    ("workload", "blas_version", "BLAS version"),
    ("workload", "mkldnn", "oneDNN"),
    ("workload", "python", "Python"),
    ("workload", "torchvision", "torchvision"),
    ("workload", "libc", "libc"),
    ("host", "os.kernel", "Linux"),
)
_VARIABLE = "process.env."
_PROCESSOR = r"OMP|GOMP|KMP|MKL|OPENBLAS|ONEDNN|DNNL|ATEN|MALLOC|GLIBC"
_OF_IMAGES = "(?:CUDA|NVIDIA)_VISIBLE_DEVICES|CUDA_VERSION|TORCH_CUDA_ARCH_LIST"
# What somebody chose and a step follows: variables, then what they and the launch led to.
_SETTINGS = (
    ("process", r"process\.env\.((ONEDNN|DNNL)_MAX_CPU_ISA)", r"\1"),
    ("process", r"process\.env\.((OMP|MKL|OPENBLAS)_NUM_THREADS)", r"\1"),
    ("process", rf"process\.env\.(({_PROCESSOR})_\w+)", r"\1"),
    ("process", rf"process\.env\.(?!{_OF_IMAGES})((CUDA|NCCL|PYTORCH|TORCH)_\w+)", r"\1"),
    ("process", r"process\.env\.(LD_PRELOAD)", r"\1"),
    ("process", r"process\.cgroup\.cpu\.limit", "CPU quota"),
    ("process", r"process\.cpu\.affinity", "usable CPUs"),
    ("workload", "threads", "threads"),
    ("workload", "onednn_isa", "oneDNN uses"),
    ("workload", "cpu_capability", "CPU kernels for"),
    ("process", r"process\.nice", "nice"),
    ("process", r"process\.scheduling\.policy", "scheduling policy"),
    ("process", r"process\.scheduling\.priority", "real-time priority"),
)
# Most likely to slow a step down first.
_LIMITS = (
    ("process", r"process\.shm\.size", "/dev/shm"),  # noqa: S108 - a label
    ("process", r"process\.cgroup\.memory\.limit", "memory limit"),
    ("environment", "memory_limit_bytes", "memory of the container"),
    ("process", r"process\.memory\.nodes", "memory nodes"),
    ("process", r"process\.limit\.memlock", "locked memory"),
    ("process", r"process\.seccomp", "seccomp"),
    ("process", r"process\.no\.new\.privileges", "no new privileges"),
    ("process", r"process\.capabilities", "capabilities"),
    ("process", r"process\.root\.filesystem", "root file system"),
    ("environment", "network", "network"),
    ("process", r"process\.namespace\.(\w+)", r"namespace \1"),
    ("process", r"process\.limit\.nofile", "open files"),
    ("host", r"cpu\.governor", "CPU governor"),
    ("host", r"memory\.transparent\.hugepages", "huge pages"),
    ("process", rf"process\.env\.({_OF_IMAGES})", r"\1"),
)
_Names = Sequence[tuple[str, str, str]]


def fingerprint(sides: Sides) -> tuple[Difference, ...]:
    """Facts that are constant within each cell's judged runs but differ between the cells; values
    in the order baseline, other."""
    first, second = sides.sessions
    between = []
    for fact in differences([*first, *second]):
        values = fact.values[0], fact.values[-1]
        expected = (*[values[0]] * len(first), *[values[1]] * len(second))
        if fact.values == expected:
            between.append(Difference(fact.scope, fact.key, values))
    return tuple(between)


_OF_FACTS = (
    ("settings", _SETTINGS, "the kernel's account of the process, step line `versions`"),
    ("versions", _VERSIONS, "step line `versions`, host's facts"),
    ("limits", _LIMITS, "the kernel's account of the process"),
)
"""Rungs of the ladder, the facts that each is made of, and where they are from."""


def _told(
    sides: Sides, changed: Sequence[Difference], rung: str, names: _Names, source: str
) -> Evidence | None:
    """The facts of a rung that differ, with both values."""
    by_label: dict[str, str] = {}
    for scope, pattern, name in names:
        for fact in changed:
            match = re.fullmatch(pattern, fact.key) if fact.scope == scope else None
            values = _values(sides, fact)
            if match is None or None in values:
                continue
            key = clean(match.expand(name), _LONGEST_VALUE)
            first, second = (_shown(fact.key, value) for value in values)
            if first != second:
                by_label.setdefault(key, f"{key} {sides.both(first, second)}")
    if not by_label:
        return None
    named = list(by_label.values())
    more = [f"{len(named) - _MOST_NAMED} more"] if len(named) > _MOST_NAMED else []
    return Evidence(rung, "; ".join([*named[:_MOST_NAMED], *more]), None, None, source)


def _values(sides: Sides, fact: Difference) -> tuple[JSON, ...]:
    """Both values; of a variable that one side has and the other surely has not, ``not set``."""
    if not fact.key.startswith(_VARIABLE):
        return fact.values
    return tuple(
        _NOT_SET if value is None and all(map(_every_variable, sessions)) else value
        for value, sessions in zip(fact.values, sides.sessions, strict=True)
    )


def _every_variable(session: Summary) -> bool:
    """Whether a session has every listed variable that was set: a recorder that kept fewer wrote
    no scheduling policy."""
    process = mapping(session.facts.get("process"))
    read = process.get(f"{_VARIABLE}LD_PRELOAD") is not None
    return read and "process.scheduling.policy" in process


def _shown(key: str, value: JSON) -> str:
    text = units.fact(key, value)
    if key == "process.cgroup.cpu.limit" and value != "unlimited":
        text += " cores"
    elif key == "process.cpu.affinity":
        count = cpus_in(str(value))
        text = text if count is None else f"{count} ({text})"
    return clean(text, _LONGEST_VALUE)
