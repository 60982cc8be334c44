"""What repeated runs come to."""

from __future__ import annotations

import pytest

from gpuwatch.analysis.statistics.intervals import middle


def test_repeated_runs_come_to_their_geometric_mean_trimmed_from_ten_on() -> None:
    assert middle([0.00367]) == 0.00367 and middle([3.0, 3.0]) == 3.0, "to the last digit"
    assert middle([1.0, 2.0, 4.0]) == pytest.approx(2.0)
    assert middle([*[1.0] * 9, 100.0]) == 1.0
    assert middle([0.0, 1.0, 5.0]) == 1.0, "the median: zero has no logarithm"
    assert middle([1e-308, 1e308]) == pytest.approx(1.0), "files may hold any number"
    assert middle([]) is None
