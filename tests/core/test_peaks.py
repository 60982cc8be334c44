"""Peaks against NVIDIA's data sheets, from what NVML says of the cards."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpuwatch.core.peak_tables import RATES
from gpuwatch.core.peaks import DATA_TYPES, computed_in, dram_peak, peaks, sheet_peaks
from tests.core.peak_cards import CARDS, WITHOUT_OUTPUT, Card

T = 1e12


_TENSOR = {"tf32", "bfloat16", "float16", "fp8", "int8"}

every_card = pytest.mark.parametrize(
    "card",
    [
        *(pytest.param(card, id=card.name) for card in CARDS),
        *(
            pytest.param(
                None, id=name, marks=pytest.mark.skip(f"no published nvidia-smi -q of {name}")
            )
            for name in WITHOUT_OUTPUT
        ),
    ],
)


def card_of(name: str) -> Card:
    return next(card for card in CARDS if card.name == name)


@every_card
def test_peak_bandwidth_is_within_three_per_cent_of_the_data_sheet(card: Card) -> None:
    peak = dram_peak(card.attributes, card.name)
    assert peak.value == pytest.approx(card.sheet["bandwidth"] * 1e9, rel=0.03)
    assert peak.unit == "By/s" and peak.reason is None
    assert str(card.memory) in peak.basis and str(card.width) in peak.source


@every_card
def test_peaks_at_the_clock_of_the_data_sheet_are_its_figures(card: Card) -> None:
    found = sheet_peaks(card.attributes, card.name)
    for name, figure in card.sheet.items():
        unit = 1e9 if name == "bandwidth" else T
        assert found[name].value == pytest.approx(figure * unit, rel=card.rounded), name
    for name in card.absent:
        assert found[name].value is None and f"has no cores for {name}" in (
            found[name].reason or ""
        )


@every_card
def test_peaks_at_the_maximum_clock_are_those_of_the_sheet_times_the_ratio_of_clocks(
    card: Card,
) -> None:
    at_most, sheet = peaks(card.attributes, card.name), sheet_peaks(card.attributes, card.name)
    assert list(at_most) == ["bandwidth", *DATA_TYPES]
    for name in DATA_TYPES:
        if name in card.absent:
            assert at_most[name].value is None
            continue
        clock = card.tensor_clock if card.tensor_clock and name in _TENSOR else card.clock
        value, lower = at_most[name].value, sheet[name].value
        assert value is not None and lower is not None
        assert value / lower == pytest.approx(card.sm / clock)
        assert at_most[name].basis == f"maximum clock {card.sm} MHz"
        assert sheet[name].basis == f"data-sheet clock {clock} MHz"


def test_the_two_peaks_of_h100_are_1070_and_989_teraflops() -> None:
    card = card_of("NVIDIA H100 80GB HBM3")
    assert peaks(card.attributes, card.name)["bfloat16"].value == pytest.approx(1070 * T, rel=1e-3)
    assert sheet_peaks(card.attributes, card.name)["bfloat16"].value == pytest.approx(
        989.4 * T, rel=1e-3
    )


def test_sums_in_fp32_go_at_half_speed_on_geforce_and_at_full_on_professional_cards() -> None:
    card = card_of("NVIDIA GeForce RTX 3090")
    geforce = peaks(card.attributes, card.name)
    professional = peaks(card.attributes, "NVIDIA RTX A6000")
    for name in ("tf32", "bfloat16", "float16"):
        assert professional[name].value == 2 * (geforce[name].value or 0)
    assert professional["float32"].value == geforce["float32"].value


@pytest.mark.parametrize(
    ("name", "capability", "cores", "clock", "data_type", "sheet"),
    [
        ("Quadro RTX 8000", "7.5", 4608, 1770, "float16", 130.5),
        ("NVIDIA GeForce RTX 2080 Ti", "7.5", 4352, 1545, "float16", 53.8),
        ("NVIDIA A10", "8.6", 9216, 1695, "bfloat16", 125),
        ("NVIDIA A40", "8.6", 10752, 1740, "bfloat16", 149.7),
        ("NVIDIA A2", "8.6", 1280, 1770, "float16", 18),
        ("NVIDIA A30", "8.0", 3584, 1440, "bfloat16", 165),
        ("NVIDIA L40", "8.9", 18176, 2490, "bfloat16", 181.05),
        ("NVIDIA RTX 6000 Ada Generation", "8.9", 18176, 2505, "fp8", 728.5),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "12.0", 24064, 2617, "bfloat16", 503.8),
        ("Tesla P100-PCIE-16GB", "6.0", 3584, 1303, "float64", 4.7),
    ],
)
def test_other_products_reach_their_sheet_at_its_clock(
    name: str, capability: str, cores: int, clock: int, data_type: str, sheet: float
) -> None:
    attributes = {
        "compute.capability": capability, "core.count": cores, "clock.sm.max": clock * 1e6,
    }  # fmt: skip
    assert peaks(attributes, name)[data_type].value == pytest.approx(sheet * T, rel=0.01)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"compute.capability": "13.0"}, "are not known to gpuwatch"),
        ({"compute.capability": None}, "compute capability"),
        ({"core.count": None}, "number of cores"),
        ({"core.count": 100}, "not a multiple of 128"),
        ({"clock.sm.max": None}, "maximum clock"),
        ({"mig.parent": "GPU-1"}, "MIG"),
    ],
)
def test_what_does_not_follow_is_unknown_and_says_why(change: dict[str, object], why: str) -> None:
    card = card_of("NVIDIA H200")
    for name, peak in peaks({**card.attributes, **change}, card.name).items():
        if name != "bandwidth":
            assert peak.value is None and why in (peak.reason or ""), peak


@pytest.mark.parametrize(
    ("name", "change", "why"),
    [
        ("NVIDIA H200", {"clock.memory.max": None}, "maximum memory clock"),
        ("NVIDIA H200", {"memory.bus.width": None}, "width"),
        ("NVIDIA H200", {"mig.parent": "GPU-1"}, "MIG"),
        ("NVIDIA A40-8Q", {}, "virtual GPU"),
        ("GRID T4-16C", {}, "virtual GPU"),
        ("NVIDIA GB10", {"compute.capability": "12.1"}, "shares the host's memory"),
        ("Orin", {"compute.capability": "8.7"}, "shares the host's memory"),
    ],
)
def test_a_bandwidth_that_does_not_follow_is_unknown_and_says_why(
    name: str, change: dict[str, object], why: str
) -> None:
    peak = dram_peak({**card_of("NVIDIA H200").attributes, **change}, name)
    assert peak.value is None and why in (peak.reason or "")


@pytest.mark.parametrize(
    ("name", "capability", "known", "unknown"),
    [
        ("NVIDIA GeForce GTX 1660 Ti", "7.5", "float32", "float16"),
        ("NVIDIA H20", "9.0", "float32", "bfloat16"),
        ("NVIDIA H800", "9.0", "bfloat16", "float64"),
        ("NVIDIA RTX of tomorrow", "8.9", "float32", "bfloat16"),
        ("NVIDIA B300 SXM6 AC", "10.3", "bfloat16", "float64"),
    ],
)
def test_a_product_whose_tensor_rate_is_not_published_has_only_what_follows(
    name: str, capability: str, known: str, unknown: str
) -> None:
    attributes = {**card_of("NVIDIA H200").attributes, "compute.capability": capability}
    found = peaks(attributes, name)
    assert found[known].value is not None
    assert found[unknown].value is None and name in (found[unknown].reason or "")


def test_a_product_without_a_known_sheet_has_no_peak_at_its_clock() -> None:
    card = card_of("NVIDIA GeForce RTX 4090")
    for name in ("NVIDIA GeForce RTX 4090 D", "NVIDIA GeForce RTX 4090 Laptop GPU"):
        for peak in sheet_peaks(card.attributes, name).values():
            assert peak.value is None and name in (peak.reason or "")


def test_current_clocks_change_no_peak() -> None:
    card = card_of("NVIDIA H200")
    idle = {**card.attributes, "clock.sm": 345e6, "clock.memory": 345e6}
    assert peaks(idle, card.name) == peaks(card.attributes, card.name)


def test_integers_are_operations_and_not_floating_point() -> None:
    found = peaks(card_of("NVIDIA H200").attributes, "NVIDIA H200")
    assert {name: peak.unit for name, peak in found.items()} == {
        "bandwidth": "By/s", "int8": "OP/s",
        **dict.fromkeys(("float64", "float32", "tf32", "bfloat16", "float16", "fp8"), "FLOP/s"),
    }  # fmt: skip


def test_the_table_in_the_docs_is_the_one_that_is_computed_from() -> None:
    text = (Path(__file__).parents[2] / "docs" / "calibration.md").read_text()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    told = {(row[0], *row[2:]) for row in cells if re.fullmatch(r"\d+\.\d", row[0])}
    cut = {"H20", "H800", "no tensor cores"}
    computed = {
        (capability, *(shown(rates.per_clock.get(name, "-")) for name in DATA_TYPES))
        for capability, variants in RATES.items()
        for variant, rates in variants.items()
        if variant not in cut
    }
    assert told == computed


def shown(rate: int | str | None) -> str:
    return "?" if rate is None else str(rate)


def test_attributes_of_a_hostile_file_give_unknown_peaks() -> None:
    for capability in ([], {}, ["9.0"], {"9.0": 1}, 9.0, True):
        hostile = {"compute.capability": capability, "core.count": "x", "clock.sm.max": []}
        assert all(peak.value is None for peak in peaks(hostile, "NVIDIA H100").values())


@pytest.mark.parametrize(
    ("capability", "reported", "computed"),
    [
        ("7.0", "bfloat16", "float32"),
        ("7.0", "fp8", "float16"),
        ("8.0", "bfloat16", "bfloat16"),
        ("8.0", "fp8", "float16"),
        ("13.7", "bfloat16", "bfloat16"),
    ],
)
def test_a_type_without_cores_is_computed_in_a_wider_one(
    capability: str, reported: str, computed: str
) -> None:
    assert computed_in(reported, {"compute.capability": capability}, "NVIDIA X") == computed
