"""Groups of values, and their totals, products and means."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


def grouped(pairs: Iterable[tuple[_Key, _Value]]) -> dict[_Key, list[_Value]]:
    """The values of each key, both in the order in which they come."""
    groups: dict[_Key, list[_Value]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def total_of(values: Sequence[float | None]) -> float | None:
    """The sum; ``None`` without values, or if one of them is unknown."""
    return sum(v for v in values if v is not None) if values and None not in values else None


def product_of(one: float | None, other: float | None) -> float | None:
    """The product; ``None`` if one of them is unknown."""
    return None if one is None or other is None else one * other


def average_of(values: Sequence[float | None]) -> float | None:
    """The mean; ``None`` without values, or if one of them is unknown."""
    total = total_of(values)
    return None if total is None else total / len(values)
