"""Peaks against NVIDIA's data sheets, from what NVML says of the cards.

Clocks are from published outputs of ``nvidia-smi -q`` (Max Clocks: SM, Memory), each with its
place; bus widths and cores, which it does not print, from published outputs of ``deviceQuery`` and
the white papers. Sheet figures are dense, with sums in FP32.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gpuwatch.peak_tables import RATES
from gpuwatch.peaks import DATA_TYPES, dram_peak, peaks, sheet_peaks

T = 1e12


@dataclass(frozen=True)
class Card:
    name: str
    capability: str
    sm: int
    """MHz"""
    memory: int
    """MHz"""
    width: int
    cores: int
    printed: str
    """Where the clocks were printed."""
    sheet: Mapping[str, float]
    """TFLOP/s, TOP/s, and GB/s of ``bandwidth``, in NVIDIA's data sheet or white paper."""
    clock: int
    """MHz of the sheet."""
    tensor_clock: int | None = None
    rounded: float = 0.01
    """How far the sheet's own rounding may take it."""
    absent: frozenset[str] = field(default_factory=frozenset)

    @property
    def attributes(self) -> dict[str, object]:
        return {
            "compute.capability": self.capability,
            "clock.sm.max": self.sm * 1_000_000,
            "clock.memory.max": self.memory * 1_000_000,
            "memory.bus.width": self.width,
            "core.count": self.cores,
        }


_TELEGRAF = "influxdata/telegraf plugins/inputs/nvidia_smi/testdata"

CARDS = (
    Card(
        "Tesla V100-SXM2-16GB", "7.0", 1530, 877, 4096, 5120,
        "NVIDIA/nvidia-docker issue 914",
        {"bandwidth": 900, "float64": 7.8, "float32": 15.7, "float16": 125}, 1530,
        absent=frozenset({"tf32", "bfloat16", "fp8", "int8"}),
    ),
    Card(
        "Tesla T4", "7.5", 1590, 5001, 256, 2560,
        f"{_TELEGRAF}/tesla-t4.xml",
        {"bandwidth": 320, "float32": 8.1, "float16": 65, "int8": 130}, 1590,
        absent=frozenset({"tf32", "bfloat16", "fp8"}),
    ),
    Card(
        "NVIDIA A100-SXM4-40GB", "8.0", 1410, 1215, 5120, 6912,
        "NVIDIA/nvidia-docker issue 1648 (device 20B0)",
        {"bandwidth": 1555, "float64": 19.5, "float32": 19.5, "tf32": 156, "bfloat16": 312,
         "float16": 312, "int8": 624}, 1410,
        absent=frozenset({"fp8"}),
    ),
    Card(
        "NVIDIA A100-SXM4-80GB", "8.0", 1410, 1593, 5120, 6912,
        "a log of 2024-11-14, driver 555.42.02, GPU-31515c3d-1414-7c2c-004a-f86a898946ac",
        {"bandwidth": 2039, "float64": 19.5, "float32": 19.5, "tf32": 156, "bfloat16": 312,
         "float16": 312, "int8": 624}, 1410,
        absent=frozenset({"fp8"}),
    ),
    Card(
        "NVIDIA A10G", "8.6", 1710, 6251, 384, 10240,
        f"{_TELEGRAF}/a10g.xml",
        {"bandwidth": 600, "float32": 35, "tf32": 35, "bfloat16": 70, "float16": 70,
         "int8": 140}, 1710,
        absent=frozenset({"fp8"}),
    ),
    Card(
        "NVIDIA L4", "8.9", 2040, 6251, 192, 7424,
        "a log of 2024-11-12, driver 550.90.07, GPU-453f8851-d1a3-e72d-4d85-3ef04418205b",
        {"bandwidth": 300, "float32": 30.3, "tf32": 60, "bfloat16": 121, "float16": 121,
         "fp8": 242.5, "int8": 242.5}, 2040,
    ),
    Card(
        "NVIDIA L40S", "8.9", 2520, 9001, 384, 18176,
        "thamada/nvidia-smi nvsim/L40S_smi.py, L40S_deviceQuery.py",
        {"bandwidth": 864, "float32": 91.6, "tf32": 183, "bfloat16": 362.05, "float16": 362.05,
         "fp8": 733, "int8": 733}, 2520,
        # Its 362.05 is at 2490 MHz, its 91.6, 183 and 733 at 2520 MHz.
        rounded=0.02,
    ),
    Card(
        "NVIDIA GeForce RTX 3090", "8.6", 2100, 9751, 384, 10496,
        f"{_TELEGRAF}/rtx-3090-v12.xml",
        {"bandwidth": 936, "float32": 35.6, "tf32": 35.6, "bfloat16": 71, "float16": 71,
         "int8": 284}, 1695,
        absent=frozenset({"fp8"}),
    ),
    Card(
        "NVIDIA GeForce RTX 4090", "8.9", 3105, 10501, 384, 16384,
        "a log of GPU-b9029ae5-75ac-6ded-3592-fc695a3f8c1a, VBIOS 95.02.47.00.01",
        {"bandwidth": 1008, "float32": 82.6, "tf32": 82.6, "bfloat16": 165.2, "float16": 165.2,
         "fp8": 330.3, "int8": 660.6}, 2520,
    ),
    Card(
        "NVIDIA GeForce RTX 5090", "12.0", 3090, 14001, 512, 21760,
        "thamada/gls gls/RTX5090_smi.py, RTX5090_deviceQuery.py",
        {"bandwidth": 1792, "float32": 104.8, "tf32": 104.8, "bfloat16": 209.5,
         "float16": 209.5, "fp8": 419, "int8": 838}, 2407,
    ),
    Card(
        "NVIDIA H100 80GB HBM3", "9.0", 1980, 2619, 5120, 16896,
        "thamada/nvidia-smi nvsim/H100SXMx8_smi.py, H100SXMx8_deviceQuery.py",
        {"bandwidth": 3352, "float64": 66.9, "float32": 66.9, "tf32": 494.7, "bfloat16": 989.4,
         "float16": 989.4, "fp8": 1978.9, "int8": 1978.9}, 1980, tensor_clock=1830,
    ),
    Card(
        "NVIDIA H200", "9.0", 1980, 3201, 6144, 16896,
        "awslabs/amazon-eks-ami pull request 1985; thamada/gls gls/H200_deviceQuery.py",
        {"bandwidth": 4800, "float64": 67, "float32": 67, "tf32": 494.7, "bfloat16": 989.4,
         "float16": 989.4, "fp8": 1978.9, "int8": 1978.9}, 1980, tensor_clock=1830,
    ),
)  # fmt: skip

WITHOUT_OUTPUT = ("NVIDIA H100 PCIe", "NVIDIA B200")
"""No output of ``nvidia-smi -q`` was found for them: nothing to compute from."""

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
        assert found[name].value is None and "has no cores for it" in (found[name].reason or "")


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
        ({"core.count": 100}, "no multiple of 128"),
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
    text = (Path(__file__).parent.parent / "docs" / "calibration.md").read_text()
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
