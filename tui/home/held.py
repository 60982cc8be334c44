"""GPUs whose memory is held without work: by whom, and since when."""

from __future__ import annotations

import time
from collections.abc import Mapping

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.text import clean
from gpuwatch.core.units import NS, binary
from gpuwatch.tui.feed.snapshot import DeviceNow, Snapshot

_LEAST_SECONDS = 60.0
"""For so long no kernel ran: a program that saves or validates is no news."""


@dataclass(frozen=True)
class Idle:
    """A GPU on which no kernel runs."""

    since: int
    """Session time in nanoseconds at which that was seen first."""
    before: bool
    """Whether it may have been so before: nobody looked."""


def idle_gpus(before: Mapping[str, Idle] | None, now: Snapshot) -> dict[str, Idle]:
    """By id; ``before``: what this was for the snapshot before, ``None`` for the first one."""
    found = {}
    for gpu in now.gpus:
        use = gpu.value("hw.gpu.utilization")
        if use is None:  # what it does is not seen
            found[gpu.row.id] = Idle(now.t, True)
        elif use == 0:
            known = (before or {}).get(gpu.row.id)
            found[gpu.row.id] = known or Idle(now.t, before is None)
    return found


def held_texts(idle: Mapping[str, Idle], now: Snapshot) -> list[str]:
    """A sentence for each owner of such GPUs: ``GPU 2: 60.0 GiB held without work since at least
    14:02 by ann (python train.py)``."""
    held: dict[tuple[str, str, str], list[tuple[DeviceNow, int]]] = {}
    for gpu in now.gpus:
        rest = idle.get(gpu.row.id)
        on = [
            (each, use.bytes)
            for each in now.processes
            for use in each.gpus
            if each.running and use.device == gpu.row.id and use.bytes
        ]
        if rest is None or not on:
            continue
        # Nothing was held before the first of them came; one of unknown age may have been there.
        since = max(rest.since, min(each.started or 0 for each, _ in on))
        seconds = (now.t - since) / NS
        if seconds < _LEAST_SECONDS:
            continue
        at_least = "at least " if rest.before and since == rest.since else ""
        then, today = time.localtime(time.time() - seconds), time.localtime()
        clock = time.strftime("%H:%M" if then[:3] == today[:3] else "%m-%d %H:%M", then)
        users = dict.fromkeys(clean(each.user or f"PID {each.pid}") for each, _ in on)
        names = dict.fromkeys(clean(each.name) for each, _ in on if each.name)
        owner = ", ".join(users), ", ".join(names), f"{at_least}{clock}"
        held.setdefault(owner, []).append((gpu, sum(size for _, size in on)))
    texts = []
    for (users_, names_, since_), gpus in held.items():
        numbers = ", ".join(gpu.number for gpu, _ in gpus)
        size = binary(sum(size for _, size in gpus))
        what = f"GPU{'s' * (len(gpus) > 1)} {numbers}: {size} held without work"
        by = f" by {users_}" + (f" ({names_})" if names_ else "")
        texts.append(f"{what} since {since_}{by}")
    return texts
