"""Numbers as people read them, above all where one digit more begins."""

from __future__ import annotations

import pytest

from gpuwatch.core import units
from gpuwatch.report import values
from gpuwatch.tui.compare.columns import _value


@pytest.mark.parametrize(
    ("value", "told"),
    [(0.0123, "0.0123"), (15.24, "15.2"), (999.4, "999"), (999.7, "1,000"), (123456.0, "123,456")],
)
def test_no_exponent_stands_beside_whole_numbers(value: float, told: str) -> None:
    assert units.significant(value) == told
    assert units.significant(float("inf")) == "inf" and units.significant(3e30) == "3e+30"


@pytest.mark.parametrize("value", [999.4, 999.5, 999.7, 999.99, 1000.0, 1000.4])
def test_around_a_thousand_every_unit_is_told_without_an_exponent(value: float) -> None:
    for unit in ("FLOP/By", "J", "{sample}/s", "By/s", "W", "s", "{step}", "{sector}"):
        for each in (value, value / 1e3, value / 1e6):
            assert "e+" not in values.shown(each, unit) + _value(each, unit), unit
    assert "e+" not in units.loss(10 * value)


def test_energy_takes_its_prefix_by_what_it_is_rounded_to() -> None:
    assert units.joules(0.9999) == "1.00 J" and units.joules(0.9999e-3) == "1 mJ"
    assert units.joules(0.044) == "44 mJ" and units.joules(0) == "0 J"
