"""Numbers as people read them: SI prefixes, three significant digits, a dash for unknown."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

UNKNOWN = "—"
NS = 1_000_000_000
"""Nanoseconds in a second."""

_PREFIXES = ("", "k", "M", "G", "T", "P", "E")
_ANNOTATIONS = re.compile(r"\{(\w+)\}")
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_LEAST_ERROR = 0.01
"""Relative error from which on it stands behind its value."""


def plain_unit(unit: str) -> str:
    """A UCUM unit as people write it: ``B/s`` for ``By/s``, ``errors`` for ``{error}``."""
    return _ANNOTATIONS.sub(r"\1s", unit).replace("By", "B")


def digits(value: float) -> str:
    """Three significant digits: ``0``, ``0.015``, ``1.52``, ``15.2``, ``152``, ``1,520``."""
    size = abs(value)
    if size < 0.0995:
        return significant(value)
    if round(size, 1) >= 100:
        return f"{value:,.0f}"
    if round(size, 2) >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}"


def samples_rate(value: float | None) -> str:
    """Samples per second: ``11,700``, ``3.21``."""
    return UNKNOWN if value is None else digits(value)


def significant(value: float, figures: int = 3) -> str:
    """``figures`` significant figures: ``0.0123``, ``15.2``.

    From 1,000 (999.7 included) to a million whole, without an exponent: ``1,234``.
    """
    if 10**figures - 0.5 <= abs(value) < 1e6:
        return f"{value:,.0f}"
    return f"{value:.{figures}g}"


def three_figures(value: float) -> str:
    """Three significant figures with their zeros, as an interval beside it has: ``4.50``."""
    return _with_zeros(value, 3)


def _with_zeros(value: float, figures: int) -> str:
    plain = f"{value:#.{figures}g}".rstrip(".")
    return plain if abs(value) < 10**figures - 0.5 else significant(value, figures)


def si(value: float | None, unit: str) -> str:
    """``value`` with an SI prefix on ``unit``: ``312 TFLOP/s``, ``1.52 TB/s``."""
    number, prefixed = si_parts(value, unit)
    return f"{number} {prefixed}" if prefixed else number


def si_parts(value: float | None, unit: str) -> tuple[str, str]:
    """The number and the prefixed unit; a dash and no unit if unknown."""
    if value is None or not math.isfinite(value):
        return UNKNOWN, ""
    if value == 0:
        return "0", unit
    power = min(len(_PREFIXES) - 1, max(0, int(math.log10(abs(value)) // 3)))
    if abs(value) / 1000**power >= 999.5 and power < len(_PREFIXES) - 1:
        power += 1
    return digits(value / 1000**power), _PREFIXES[power] + unit


def scale_label(value: float, unit: str) -> str:
    """A short label for the end of a scale: ``500T``, ``100%``."""
    if unit == "1":
        return f"{value * 100:.0f}%"
    if value == 0:
        return "0"
    power = max(0, int(math.log10(value) // 3))
    if power >= len(_PREFIXES):
        return f"{value:.0e}".replace("e+", "e")
    return f"{value / 1000**power:g}{_PREFIXES[power]}"


def binary(value: float | None) -> str:
    """Bytes in memory: ``61.2 GiB``."""
    number, unit = binary_parts(value)
    return f"{number} {unit}" if unit else number


def joules(value: float) -> str:
    """Energy in the usual units: ``44.1 mJ``, ``123 J``, ``4.92 kJ``."""
    if 0 < abs(value) < 0.9995e-3:
        return f"{value * 1e6:.3g} µJ"
    return f"{value * 1e3:.3g} mJ" if 0 < abs(value) < 0.9995 else si(value, "J")


def binary_parts(value: float | None) -> tuple[str, str]:
    if value is None:
        return UNKNOWN, ""
    power = 0
    while abs(value) >= 999.5 and power < len(_BINARY) - 1:
        value, power = value / 1024, power + 1
    return (f"{value:.0f}" if power == 0 else digits(value)), _BINARY[power]


def memory_usage(used: float | None, total: float | None) -> str:
    """``61.2/80.0 GiB``: memory in use and in total, both in the unit of the total."""
    if total is None or total <= 0:
        return binary(used)
    number, unit = binary_parts(total)
    if used is None:
        return f"{UNKNOWN}/{number} {unit}"
    share = used / 1024 ** _BINARY.index(unit)
    return f"{f'{share:.2f}' if 0 < share < 1 else digits(share)}/{number} {unit}"


def percent(fraction: float | None, *, whole: bool = False) -> str:
    """``87 %``, ``3.2 %``, ``<0.1 %``; ``whole``: without decimals, ``3 %``, ``<1 %``."""
    if fraction is None or not math.isfinite(fraction):
        return UNKNOWN
    value = fraction * 100
    if whole:
        return "<1 %" if 0 < value < 0.5 else f"{value:.0f} %"
    if 0 < value < 0.05:
        return "<0.1 %"
    return f"{value:.1f} %" if 0 < value < 9.95 else f"{value:.0f} %"


def give_or_take(error: float | None) -> str:
    """`` ±15 %`` behind a value with such a relative error; empty below 1 %."""
    return f" ±{percent(error)}" if error is not None and error >= _LEAST_ERROR else ""


def number(value: float | None, unit: str, spec: str = ".0f") -> str:
    """A plain number: ``612 W``, ``71 °C``."""
    return UNKNOWN if value is None else f"{value:{spec}} {unit}"


def counted(number: float, one: str, many: str | None = None) -> str:
    """``1 run``, ``2,000 runs``; of a mean four digits."""
    text = f"{number:,}" if isinstance(number, int) else f"{number:,.4g}"
    return f"{text} {one if number == 1 else many or one + 's'}"


def clock_time(seconds: float) -> str:
    """``2:31``, ``1:02:31``, ``2d 03:10``."""
    total = max(0, int(seconds))
    days, rest = divmod(total, 86400)
    hours, rest = divmod(rest, 3600)
    minutes, remaining = divmod(rest, 60)
    if days:
        return f"{days}d {hours:02d}:{minutes:02d}"
    return f"{hours}:{minutes:02d}:{remaining:02d}" if hours else f"{minutes}:{remaining:02d}"


def pause(seconds: float) -> str:
    """``16 s``; from a minute on ``1:04``."""
    return f"{seconds:.0f} s" if seconds < 59.5 else clock_time(max(60, seconds))


def duration(seconds: int) -> str:
    """A length of time that no clock shows: ``30s``, ``1m30s``, ``2h``, ``1d12h``."""
    parts, rest = [], max(0, seconds)
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m"), (1, "s")):
        count, rest = divmod(rest, size)
        parts += [f"{count}{unit}"] if count else []
    return "".join(parts[:2]) or "0s"


def milliseconds(seconds: float | None) -> str:
    """A step time: ``5.12 ms``, ``1.32 s``, ``812 µs``."""
    if seconds is None:
        return UNKNOWN
    if seconds == 0:
        return "0 s"
    if seconds >= 0.9995:
        return f"{digits(seconds)} s"
    if seconds >= 0.9995e-3:
        return f"{digits(seconds * 1e3)} ms"
    return f"{digits(seconds * 1e6)} µs"


def loss(value: float | None) -> str:
    """Four significant digits with their zeros, as many as the loss before: ``0.2470``."""
    return UNKNOWN if value is None else _with_zeros(value, 4)


def accuracy(share: float | None) -> str:
    """A share of correct predictions: ``91.41 %``."""
    return UNKNOWN if share is None else f"{100 * share:.4g} %"


def quantity(value: float | None, unit: str, *, is_traffic: bool = False) -> str:
    """``value``, given in a metric's base ``unit``, as people read it; a dash if unknown.

    Bytes that were moved (``is_traffic``) have decimal prefixes like their rates, others binary.
    """
    if value is None:
        return UNKNOWN
    if unit in _QUANTITIES and not is_traffic:
        return _QUANTITIES[unit](value)
    return si(value, plain_unit(unit))


def _rate(value: float, unit: str) -> str:
    return f"{digits(value)} {unit}" if value < 999_999.5 else si(value, f" {unit}")


_QUANTITIES: dict[str, Callable[[float], str]] = {
    "": loss,
    "1": percent,
    "By": binary,
    "Cel": lambda value: number(value, "°C"),
    "FLOP/By": lambda value: f"{digits(value) if value >= 1 else significant(value)} FLOP/B",
    "J": joules,
    "J/s": lambda value: f"{digits(value)} W",
    "W": lambda value: f"{digits(value)} W",
    "s": lambda value: milliseconds(value) if value < 99.95 else clock_time(round(value)),
    "s/s": lambda value: f"{'<0.01' if 0 < value < 0.005 else digits(round(value, 2))} cores",
    "{accuracy}": accuracy,
    "{epoch}": lambda value: f"{value:,.0f}",
    "{error}": lambda value: f"{value:,.0f} errors",
    "{generation}": lambda value: f"gen {value:.3g}",
    "{lane}": lambda value: f"x{value:.3g}",
    "{sample}/s": lambda value: _rate(value, "samples/s"),
    "{sector}": lambda value: f"{si(value, '')} sectors",
    "{state}": lambda value: f"P{value:.3g}",
    "{step}": lambda value: f"{value:,.0f}",
    "{token}/s": lambda value: _rate(value, "tokens/s"),
}


_BOUNDS = {"at most": "≤", "at least": "≥"}


def bounded(text: str, bound: str | None) -> str:
    """``text`` behind the sign of its bound, ``at most`` or ``at least``, if it is one."""
    return f"{_BOUNDS[bound]}{text}" if bound else text


def span(low: float, high: float, unit: str, *, is_traffic: bool = False) -> str:
    """``499 to 506 ms``; a single value if both read the same; two units if these differ."""
    first, last = (quantity(bound, unit, is_traffic=is_traffic) for bound in (low, high))
    if first == last:
        return first
    text, _, prefixed = first.rpartition(" ")
    return f"{text if text and last.endswith(f' {prefixed}') else first} to {last}"


def ratio(value: float | None) -> str:
    """``×1.031``: three decimals near 1, else three significant digits; empty if unknown."""
    if value is None:
        return ""
    return f"×{value:.3f}" if 0.0995 < value < 9.9995 else f"×{significant(value)}"


def nice(value: float, factors: Sequence[float] = (1, 2, 5, 10)) -> float:
    """The smallest of ``factors`` times a power of ten that is at least ``value``."""
    if value <= 0 or not math.isfinite(value):
        return 1.0
    power: float = 10.0 ** math.floor(math.log10(value))
    for factor in factors:
        if value <= factor * power * (1 + 1e-9):
            return factor * power
    return 10.0 * power


_BYTES_OF_FACTS = re.compile(r"_bytes$|\.shm\.size$|memory\.(total|limit)$|\.swap\.total$")


def fact(key: str, value: object) -> str:
    """Format a fact of the fingerprint or the environment: lists with commas, bytes with a unit."""
    if value is None:
        return UNKNOWN
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    is_size = isinstance(value, (int, float)) and not isinstance(value, bool)
    if is_size and _BYTES_OF_FACTS.search(key):
        return binary(float(str(value)))
    return str(value)
