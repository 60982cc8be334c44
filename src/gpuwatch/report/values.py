"""Values with their units, formatted for people."""

from __future__ import annotations

from gpuwatch.core import units


def shown(value: float | None, unit: str) -> str:
    """Format ``value``, given in the metric's ``unit``, with a prefix; a dash if unknown."""
    if value is None:
        return units.UNKNOWN
    if unit == "1":
        return units.percent(value)
    if unit == "s":
        return units.milliseconds(value) if value < 1 else f"{value:.2f} s"
    if unit == "By":
        return units.binary(value)
    if unit == "By/s":
        return units.si(value, "B/s")
    if unit == "Cel":
        return units.number(value, "°C")
    if unit == "W":
        return units.number(value, "W", ".1f")
    if unit == "{sample}/s":
        return f"{value:,.1f} /s"
    if unit == "":
        return units.loss(value)
    if unit == "{accuracy}":
        return units.accuracy(value)
    if unit in ("{step}", "{epoch}"):
        return f"{value:.0f}"
    if unit == "J":
        return units.joules(value)
    if unit == "FLOP/By":
        small = value < 999.5
        return f"{value:.3g} FLOP/B" if small else units.si(value, "FLOP/B")
    if unit == "{sector}":
        return f"{units.si(value, '')} sectors"
    if unit == "{error}":
        return f"{value:,.0f} errors"
    return units.si(value, units.plain_unit(unit))


def moved(value: float | None) -> str:
    """Bytes read or written, with decimal prefixes as for rates: ``1.50 MB``."""
    return units.si(value, "B")


def ratio(value: float | None) -> str:
    """A ratio with three decimals, or significant digits if small or large; empty if unknown."""
    if value is None:
        return ""
    if 0.0995 < value < 9.9995:
        return f"x{value:.3f}"
    return f"x{units.digits(value)}" if 1 < value < 1e5 else f"x{value:.3g}"


def bounded(text: str, bound: str | None) -> str:
    """``text`` with its bound, ``at most`` or ``at least``, if there is one."""
    return {None: text, "at most": f"under {text}"}.get(bound, f"{bound} {text}")
