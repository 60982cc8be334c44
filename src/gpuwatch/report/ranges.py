"""Two values of one quantity as people read them."""

from __future__ import annotations

from gpuwatch.report.values import moved, shown


def between(low: float, high: float, unit: str, *, is_traffic: bool = False) -> str:
    """``499..506 ms``; one value where both read the same; a unit of each where these differ."""
    first, last = (moved(each) if is_traffic else shown(each, unit) for each in (low, high))
    if first == last:
        return first
    number, _, prefixed = first.rpartition(" ")
    return f"{number if number and last.endswith(f' {prefixed}') else first}..{last}"


def below(middle: str, span: str) -> str:
    """``span`` without its unit where that is of both ends, and of the value that it stands below;
    empty for no span."""
    first, dots, _ = span.partition("..")
    if not dots:
        return ""
    number, _, unit = span.rpartition(" ")
    return number if " " not in first and middle.endswith(f" {unit}") else span
