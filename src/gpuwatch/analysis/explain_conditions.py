"""Clocks and power, where they were not the same in two environments, and other programs' load."""

from __future__ import annotations

from collections.abc import Callable

from gpuwatch import units
from gpuwatch.analysis.explain_sides import Sides
from gpuwatch.analysis.results import Evidence
from gpuwatch.analysis.summary import Summary
from gpuwatch.metrics import Method
from gpuwatch.models import mapping, number

RELATIVE = 0.02
"""Clocks and power differ from here on."""
SHARES = 0.05
"""Shares of the time or of the cores differ from here on."""
BUSY = 0.2
"""Share of the cores' time from which on other programs are told of, though on both sides alike."""
_WHOLE_RUN = "whole run"
"""A session's window that is of no part of it."""

_RATES = (
    ("hw.gpu.clock.sm", "SM clock", "Hz"),
    ("hw.gpu.clock.memory", "memory clock", "Hz"),
    ("hw.gpu.power", "GPU power", "W"),
    ("hw.cpu.frequency", "CPU frequency", "Hz"),
)
_HELD = (
    ("hw.gpu.throttle.power", "clocks held down by power"),
    ("hw.gpu.throttle.thermal", "clocks held down by temperature"),
)


def conditions(sides: Sides) -> Evidence | None:
    """Clocks and power that differ by 2 % or more, and by five points or more how long clocks were
    held down.

    Means over the window, medians over the runs. ``None`` too where the windows are of different
    parts of the runs, so that their means say nothing.
    """
    kinds = {session.window.kind for of in sides.sessions for session in of}
    if len(kinds) != 1:
        return None
    told = [text for name, label, unit in _RATES if (text := _rate(sides, name, label, unit))]
    for name, label in _HELD:
        share = _share(sides, " of the time", _of(name))
        told += [f"{label} {share}"] if share else []
    if not told:
        return None
    source = f"means over the {kinds.pop()}, median over the runs"
    return Evidence("clocks", "; ".join(told), None, Method.MEASURED, source)


def load(sides: Sides) -> Evidence | None:
    """What other programs used of the cores' time: five points or more apart, or a fifth or more on
    either side. Means over the windows, medians over the runs."""
    shares = sides.medians(others_share)
    first, second = shares
    most = max((share for share in shares if share is not None), default=0.0)
    apart = first is not None and second is not None and abs(second - first) >= SHARES
    if not apart and most < BUSY:
        return None
    one, two = ("an unknown share" if each is None else units.percent(each) for each in shares)
    both = sides.both(f"{one} of the CPU's time", two)
    text = f"other programs used {both}"
    if not apart and None not in shares:
        text += ": both were disturbed"
    kinds = sorted({session.window.kind for of in sides.sessions for session in of})
    source = f"means over the {' or the '.join(kinds)}, median over the runs"
    return Evidence("load", text, None, Method.MEASURED, source)


def others_share(session: Summary) -> float | None:
    """Share of all cores' time that was not idle and not the workload's, 0 to 1; time that the
    hypervisor took away is in it. ``None`` where the workload's own is not measured."""
    busy, own = _mean(session, "hw.cpu.utilization"), _own_cores(session)
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


def _of(name: str) -> Callable[[Summary], float | None]:
    return lambda session: _mean(session, name)


def _mean(session: Summary, name: str) -> float | None:
    found = session.metrics.get(name)
    return None if found is None else found.mean


def _rate(sides: Sides, name: str, label: str, unit: str) -> str | None:
    first, second = sides.medians(_of(name))
    if not first or second is None or abs(second / first - 1) < RELATIVE:
        return None
    return f"{label} {sides.both(units.si(first, unit), units.si(second, unit))}"


def _share(sides: Sides, of: str, value: Callable[[Summary], float | None]) -> str | None:
    first, second = sides.medians(value)
    if first is None or second is None or abs(second - first) < SHARES:
        return None
    return sides.both(units.percent(first) + of, units.percent(second))
