"""Ranges of a quantity, formatted for people."""

from __future__ import annotations

from gpuwatch.report.values import moved, shown


def between(low: float, high: float, unit: str, *, is_traffic: bool = False) -> str:
    """``499..506 ms``; a single value if both read the same; two units if these differ."""
    first, last = (moved(each) if is_traffic else shown(each, unit) for each in (low, high))
    if first == last:
        return first
    number, _, prefixed = first.rpartition(" ")
    return f"{number if number and last.endswith(f' {prefixed}') else first}..{last}"


def below(middle: str, span: str) -> str:
    """``span`` without its unit if both ends and the value ``middle`` above it share that unit;
    empty if it has one value only."""
    first, dots, _ = span.partition("..")
    if not dots:
        return ""
    number, _, unit = span.rpartition(" ")
    return number if " " not in first and middle.endswith(f" {unit}") else span
