"""Ranges: a unit once where it is of both ends, else twice."""

from __future__ import annotations

import pytest

from gpuwatch.report.ranges import below, between

MIB, GIB = 2.0**20, 2.0**30


@pytest.mark.parametrize(
    ("low", "high", "unit", "told", "under"),
    [
        (0.499, 0.506, "s", "499..506 ms", "499..506"),
        (0.836, 1.2, "s", "836 ms..1.20 s", "836 ms..1.20 s"),
        (895 * MIB, 1.69 * GIB, "By", "895 MiB..1.69 GiB", "895 MiB..1.69 GiB"),
        (0.5, 0.5, "s", "500 ms", ""),
    ],
)
def test_each_end_has_its_own_unit_unless_both_have_the_same(
    low: float, high: float, unit: str, told: str, under: str
) -> None:
    assert between(low, high, unit) == told
    assert below(f"1 {told.rpartition(' ')[2]}", told) == under


def test_bytes_that_were_moved_count_in_powers_of_ten() -> None:
    assert between(267, 10.5e3, "By", is_traffic=True) == "267 B..10.5 kB"
