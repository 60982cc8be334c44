"""What other programs used of a machine while runs were recorded on it."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.core import units
from gpuwatch.core.metrics import Method
from gpuwatch.core.models import mapping, number

BUSY = 0.2
"""Share of the cores' time from which on other programs are told of."""
_WHOLE_RUN = "whole run"
"""A session's window that is of no part of it."""


def load_notes(sessions: Sequence[Summary]) -> tuple[str, ...]:
    """That other programs used a fifth of the CPU's time or more, and in how many of these runs;
    empty: in none of which it is known."""
    shares = [share for each in sessions if (share := others_share(each)) is not None]
    busy = sorted(share for share in shares if share >= BUSY)
    if not busy:
        return ()
    low, high = (units.percent(share) for share in (busy[0], busy[-1]))
    told = high if low == high else f"{low.removesuffix(' %')} to {high}"
    where = "" if len(sessions) == 1 else f" in {len(busy)} of {len(sessions)} runs"
    return (f"other programs used {told} of the CPU's time{where}",)


def others_share(session: Summary) -> float | None:
    """Share of all cores' time that was not idle and not the workload's, 0 to 1; time that the
    hypervisor took away is in it. ``None`` where the workload's own is not measured."""
    busy, own = mean_of(session, "hw.cpu.utilization"), _own_cores(session)
    cores = number(mapping(session.facts.get("host")).get("cpu.core.logical.count"))
    if busy is None or own is None or not cores or cores < 1:
        return None
    return max(0.0, busy - own / cores)


def _own_cores(session: Summary) -> float | None:
    """Cores that the workload's processes used on average: by samples; of a whole run that was too
    short for two by its account at the end."""
    sampled, seconds = session.metrics.get("process.cpu.time"), session.window.seconds
    if sampled is not None and sampled.method is Method.MEASURED and sampled.max is not None:
        return sampled.max / seconds if seconds > 0 else None
    timing = session.timing
    user, system, real = timing.user_seconds, timing.sys_seconds, timing.real_seconds
    if session.window.kind != _WHOLE_RUN or timing.cpu_is_bound:
        return None
    if user is None or system is None or real is None or real <= 0:
        return None
    return (user + system) / real


def mean_of(session: Summary, name: str) -> float | None:
    """The mean of a metric over the session's window; ``None`` where it is not known."""
    found = session.metrics.get(name)
    return None if found is None else found.mean
