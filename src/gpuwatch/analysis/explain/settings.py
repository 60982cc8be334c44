"""Versions and limits that are not the same in two environments."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gpuwatch.analysis.comparison.side_by_side import differences
from gpuwatch.analysis.explain.sides import Sides
from gpuwatch.analysis.results import Difference, Evidence
from gpuwatch.core import units
from gpuwatch.core.models import JSON
from gpuwatch.core.text import clean

_MOST_NAMED = 4
_LONGEST_VALUE = 40

# What picks kernels first; patterns of whole keys within a scope of facts.
_VERSIONS = (
    ("host", r"gpu\d+\.driver\.version", "driver"),
    ("workload", "cuda", "CUDA"),
    ("workload", "hip", "HIP"),
    ("workload", "cudnn", "cuDNN"),
    ("workload", "torch", "torch"),
    ("workload", "blas", "BLAS"),
    ("workload", "blas_version", "BLAS version"),
    ("workload", "mkldnn", "oneDNN"),
    ("workload", "cpu_capability", "CPU kernels for"),
    ("workload", "python", "Python"),
    ("workload", "torchvision", "torchvision"),
    ("workload", "libc", "libc"),
    ("host", "os.kernel", "Linux"),
)
# What can hold a step back first.
_LIMITS = (
    ("process", r"process\.cgroup\.cpu\.limit", "CPU quota"),
    ("process", r"process\.cpu\.affinity", "usable CPUs"),
    ("workload", "threads", "threads"),
    ("process", r"process\.env\.(OMP|MKL|OPENBLAS)_NUM_THREADS", r"\1_NUM_THREADS"),
    ("process", r"process\.shm\.size", "/dev/shm"),  # noqa: S108 - a label
    ("process", r"process\.cgroup\.memory\.limit", "memory limit"),
    ("environment", "memory_limit_bytes", "memory of the container"),
    ("process", r"process\.memory\.nodes", "memory nodes"),
    ("process", r"process\.nice", "nice"),
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
    ("process", r"process\.env\.(\w+)", r"\1"),
)
_Names = Sequence[tuple[str, str, str]]


def fingerprint(sides: Sides) -> tuple[Difference, ...]:
    """Facts that are the same in all judged runs of a cell, and not in the other's: values in the
    order baseline, other."""
    first, second = sides.sessions
    if not first or not second:
        return ()
    between = []
    for found in differences([*first, *second]):
        of_first, of_second = found.values[: len(first)], found.values[len(first) :]
        if all(each == of_first[0] for each in of_first) and all(
            each == of_second[0] for each in of_second
        ):
            between.append(Difference(found.scope, found.key, (of_first[0], of_second[0])))
    return tuple(between)


def versions(sides: Sides, found: Sequence[Difference]) -> Evidence | None:
    """Versions that differ, with both values, what picks kernels first."""
    return _evidence("versions", sides, found, _VERSIONS, "step line `versions`, host's facts")


def limits(sides: Sides, found: Sequence[Difference]) -> Evidence | None:
    """Limits and isolation that differ, with both values, what holds a step back first."""
    return _evidence("limits", sides, found, _LIMITS, "the kernel's account of the process")


def _evidence(
    rung: str, sides: Sides, found: Sequence[Difference], names: _Names, source: str
) -> Evidence | None:
    told: dict[str, str] = {}
    for scope, pattern, name in names:
        for each in found:
            match = re.fullmatch(pattern, each.key) if each.scope == scope else None
            if match is None or None in each.values:
                continue
            key = clean(match.expand(name), _LONGEST_VALUE)
            first, second = (_shown(each.key, value) for value in each.values)
            if first != second:
                told.setdefault(key, f"{key} {sides.both(first, second)}")
    if not told:
        return None
    named = list(told.values())
    more = [f"{len(named) - _MOST_NAMED} more"] if len(named) > _MOST_NAMED else []
    return Evidence(rung, "; ".join([*named[:_MOST_NAMED], *more]), None, None, source)


def _shown(key: str, value: JSON) -> str:
    text = units.fact(key, value)
    if key == "process.cgroup.cpu.limit" and value != "unlimited":
        text += " cores"
    elif key == "process.cpu.affinity":
        count = _cpus(str(value))
        text = text if count is None else f"{count} ({text})"
    return clean(text, _LONGEST_VALUE)


def _cpus(text: str) -> int | None:
    """CPUs in the kernel's list format (``0-3,8``); ``None`` for anything else."""
    if not re.fullmatch(r"\d{1,6}(-\d{1,6})?(,\d{1,6}(-\d{1,6})?)*", text):
        return None
    ends = [[int(end) for end in part.split("-")] for part in text.split(",")]
    return sum(max(0, each[-1] - each[0] + 1) for each in ends)
