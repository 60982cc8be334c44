"""Numbers as people read them, above all where one digit more begins."""

from __future__ import annotations

import pytest

from gpuwatch.core import units


@pytest.mark.parametrize(
    ("value", "told"),
    [(0.0123, "0.0123"), (15.24, "15.2"), (999.4, "999"), (999.7, "1,000"), (123456.0, "123,456")],
)
def test_no_exponent_stands_beside_whole_numbers(value: float, told: str) -> None:
    assert units.significant(value) == told
    assert units.significant(float("inf")) == "inf" and units.significant(3e30) == "3e+30"


def test_three_figures_keep_their_zeros() -> None:
    told = [units.three_figures(each) for each in (4.5, 0.045, 99.97, 450.0, 1234.0)]
    assert told == ["4.50", "0.0450", "100", "450", "1,234"]


@pytest.mark.parametrize("value", [999.4, 999.5, 999.7, 999.99, 1000.0, 1000.4])
def test_around_a_thousand_every_unit_is_told_without_an_exponent(value: float) -> None:
    for unit in ("FLOP/By", "J", "{sample}/s", "By/s", "W", "s", "{step}", "{sector}"):
        for each in (value, value / 1e3, value / 1e6):
            assert "e+" not in units.quantity(each, unit), unit
    assert "e+" not in units.loss(10 * value)


def test_a_loss_has_four_digits_also_where_they_are_zeros() -> None:
    told = [units.loss(each) for each in (0.1698, 0.247, 2.0, 0.0, 1234.0, 12345.0, None)]
    assert told == ["0.1698", "0.2470", "2.000", "0.000", "1234", "12,345", "—"]
    assert units.loss(float("nan")) == "nan"


def test_energy_takes_its_prefix_by_what_it_is_rounded_to() -> None:
    assert units.joules(0.9999) == "1.00 J" and units.joules(0.9999e-3) == "1 mJ"
    assert units.joules(0.044) == "44 mJ" and units.joules(0) == "0 J"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, "s", "—"),
        (5.12e-3, "s", "5.12 ms"),
        (75.32, "s", "75.3 s"),
        (10_845.0, "s", "3:00:45"),
        (0.5, "1", "50 %"),
        (1.5e6, "By", "1.43 MiB"),
        (1.5e12, "By/s", "1.50 TB/s"),
        (1480.4, "{sample}/s", "1,480 samples/s"),
        (1.2e6, "{sample}/s", "1.20 M samples/s"),
        (137_144.0, "{token}/s", "137,144 tokens/s"),
        (611.8, "W", "612 W"),
        (71.0, "Cel", "71 °C"),
        (12.46, "FLOP/By", "12.5 FLOP/B"),
        (1234.0, "FLOP/By", "1,234 FLOP/B"),
        (3.0, "{error}", "3 errors"),
        (1.5, "s/s", "1.50 cores"),
        (0.0873, "s/s", "0.09 cores"),
        (0.00302, "s/s", "<0.01 cores"),
        (0, "s/s", "0 cores"),
    ],
)
def test_a_quantity_has_one_text_everywhere(value: float | None, unit: str, text: str) -> None:
    assert units.quantity(value, unit) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(9.994, "9.99"), (9.9999, "10.0"), (99.94, "99.9"), (-99.96, "-100"), (999.96, "1,000")],
)
def test_three_digits_are_three_where_rounding_adds_one(value: float, text: str) -> None:
    assert units.digits(value) == text


def test_a_prefix_and_a_unit_change_where_rounding_does() -> None:
    assert [units.si(value, "W") for value in (999.4, 999.96, 999_960)] == [
        "999 W", "1.00 kW", "1.00 MW",
    ]  # fmt: skip
    assert [units.milliseconds(value) for value in (0.09996, 0.99961, 0.00099961)] == [
        "100 ms", "1.00 s", "1.00 ms",
    ]  # fmt: skip


def test_bytes_that_were_moved_have_powers_of_ten_and_those_held_do_not() -> None:
    assert units.quantity(1.5e6, "By", is_traffic=True) == "1.50 MB"
    assert units.quantity(1.5e6, "By") == "1.43 MiB"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""), (989.806, "×990"), (1.0312, "×1.031"), (12.345, "×12.3"), (0.99961, "×1.000"),
        (0.0123456, "×0.0123"), (12345.6, "×12,346"), (9.99961, "×10"), (3e7, "×3e+07"),
    ],
)  # fmt: skip
def test_a_ratio_has_three_decimals_near_one_and_three_digits_elsewhere(
    value: float | None, text: str
) -> None:
    assert units.ratio(value) == text


MIB, GIB = 2**20, 2**30


@pytest.mark.parametrize(
    ("low", "high", "unit", "text"),
    [
        (0.499, 0.506, "s", "499 to 506 ms"),
        (0.836, 1.2, "s", "836 ms to 1.20 s"),
        (895 * MIB, 1.69 * GIB, "By", "895 MiB to 1.69 GiB"),
        (50.0, 50.0, "{step}", "50"),
        (3.0, 7.0, "{step}", "3 to 7"),
    ],
)
def test_a_span_has_its_unit_once(low: float, high: float, unit: str, text: str) -> None:
    assert units.span(low, high, unit) == text


def test_things_are_counted_in_the_singular_where_there_is_one() -> None:
    told = [units.counted(n, "launch", "launches") for n in (0, 1, 2_000, 1.5)]
    assert told == ["0 launches", "1 launch", "2,000 launches", "1.5 launches"]


def test_a_bound_has_the_sign_of_its_direction() -> None:
    texts = [units.bounded("5 ms", bound) for bound in ("at most", "at least", None)]
    assert texts == ["≤5 ms", "≥5 ms", "5 ms"]
