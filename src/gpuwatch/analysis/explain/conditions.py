"""Clocks and power that differ between two environments, and the load of other programs."""

from __future__ import annotations

from collections.abc import Callable

from gpuwatch.analysis.explain.sides import Sides
from gpuwatch.analysis.results import Evidence
from gpuwatch.analysis.summary.load import BUSY, mean_of, others_share
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.core import units
from gpuwatch.core.metrics import Method

RELATIVE = 0.02
"""Relative difference from which on clocks and power differ."""
SHARES = 0.05
"""Difference from which on shares of the time or of the cores differ (5 points)."""

_RATES = (
    ("hw.gpu.clock.sm", "SM clock", "Hz"),
    ("hw.gpu.clock.memory", "memory clock", "Hz"),
    ("hw.gpu.power", "GPU power", "W"),
    ("hw.cpu.frequency", "CPU clock", "Hz"),
)
_HELD = (
    ("hw.gpu.throttle.power", "clocks held down by power"),
    ("hw.gpu.throttle.thermal", "clocks held down by temperature"),
)


def conditions(sides: Sides) -> Evidence | None:
    """Clocks and power that differ by 2 % or more, and times of held-down clocks by five points.

    Values are means over the window, then medians over the runs. ``None`` also where the windows
    cover different parts of the runs and cannot be compared.
    """
    kinds = {session.window.kind for sessions in sides.sessions for session in sessions}
    if len(kinds) != 1:
        return None
    texts = [text for name, label, unit in _RATES if (text := _rate(sides, name, label, unit))]
    for name, label in _HELD:
        share = _share(sides, " of the time", _of(name))
        texts += [f"{label} {share}"] if share else []
    if not texts:
        return None
    source = f"means over the {kinds.pop()}, median over the runs"
    return Evidence("clocks", "; ".join(texts), None, Method.MEASURED, source)


def load(sides: Sides) -> Evidence | None:
    """Other programs' share of the cores' time, if it differs by five points or is a fifth or more
    on either side. Means over the windows, then medians over the runs."""
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


def _of(name: str) -> Callable[[Summary], float | None]:
    return lambda session: mean_of(session, name)


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
