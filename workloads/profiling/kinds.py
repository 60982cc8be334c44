"""The kinds of kernels of a step: which are the same, and how often each is launched.

A kind is a kernel with its grid and block: two launches of it do the same work. ncu, which replays
a launch for every group of counters, needs to see one of each; how many there are tells a trace.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from .ncu import Launch
from .traces import Config, Traced


def most_to_see(step: Iterable[Traced]) -> int:
    """How many launches of each grid and block must be seen to see every kernel among them.

    ncu's filter ``per-launch-config`` counts launches of one grid and block, whatever the kernel.
    """
    seen: dict[Config, list[str]] = {}
    most = 1
    for launch in step:
        names = seen.setdefault(launch.config, [])
        if launch.name not in names:
            most = max(most, len(names) + 1)
        names.append(launch.name)
    return most


def of_whole_step(
    seen: Sequence[Launch], step: Sequence[Traced]
) -> tuple[list[Launch], str | None]:
    """What ncu saw of a step, each launch for as many of its kind as the step has, and a note on
    the kinds of which it saw none.

    ncu and torch spell template arguments differently, so that kernels of one function, grid and
    block are told apart by the order in which they first appear.
    """
    measured: dict[tuple[str, Config], dict[str, list[Launch]]] = {}
    for one in seen:
        kinds = measured.setdefault((_function(one.name), one.config), {})
        kinds.setdefault(one.name, []).append(one)
    traced: dict[tuple[str, Config], dict[str, list[int]]] = {}
    for launch in step:
        times = traced.setdefault((_function(launch.name), launch.config), {})
        times.setdefault(launch.name, []).append(launch.duration_ns)
    found: list[Launch] = []
    lacking: dict[str, int] = {}
    for key, kinds_of_step in traced.items():
        samples = list(measured.get(key, {}).values())
        for at, (name, durations) in enumerate(kinds_of_step.items()):
            if at >= len(samples):
                lacking[name] = lacking.get(name, 0) + sum(durations)
                continue
            found += [one.times_more(len(durations) / len(samples[at])) for one in samples[at]]
    if not lacking:
        return found, None
    share = sum(lacking.values()) / max(1, sum(launch.duration_ns for launch in step))
    named = ", ".join(name[:80] for name in sorted(lacking, key=lambda name: -lacking[name])[:3])
    note = f"not counted: kernels with {share:.1%} of the kernels' time ({named})"
    return found, f"{note}; what a step has is unknown, not the sum of the rest"


def _function(name: str) -> str:
    """A kernel's name without its template arguments, as both tools spell it."""
    plain = re.sub(r"\(anonymous namespace\)|<unnamed>", "_", name).removeprefix("void ")
    return re.split(r"[<(]", plain, maxsplit=1)[0]
