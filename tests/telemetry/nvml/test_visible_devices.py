"""What ``CUDA_VISIBLE_DEVICES`` leaves: UUIDs as they are, numbers where the order is known."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpuwatch.core.errors import NotAvailable
from gpuwatch.telemetry.nvml.selection import NvmlDevice
from gpuwatch.telemetry.nvml.visible_devices import Card, shortfall, visible
from tests.fake_nvml import FakeDriver, uuid

A, B, C = "GPU-aaaa0000-1", "GPU-aabb0000-2", "GPU-cccc0000-3"
MIG = "MIG-dddd0000-4"
OLD_MIG = f"MIG-{C}/1/0"
PCI = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


def card(
    number: int, uuid: str | None, name: str = "H100", parts: tuple[NvmlDevice, ...] = ()
) -> Card:
    return Card(NvmlDevice(f"gpu{number}", uuid, name, None, number), f"0:{number}", parts)


ALIKE = (card(0, A), card(1, B), card(2, C))
MIXED = (card(0, A, "T4"), card(1, B))
SPLIT = (card(0, A), card(2, C, parts=(NvmlDevice("gpu2.mig0", MIG, "1g", None, 2, C, OLD_MIG),)))


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"{B},{A}", (B, A)),
        ("GPU-aaa,GPU-c", (A, C)),
        ("GPU-AAAA", (A,)),
        (f" {B} , {A} ", (B, A)),
        ("GPU-aa", ()),
        ("GPU-", ()),
        (f"{A},GPU-gone,{B}", (A,)),
        (f"{A},1", (A,)),
        (f"{A},GPU-aaaa", ()),
        (MIG, (MIG,)),
        ("MIG-dd", (MIG,)),
        (OLD_MIG, (MIG,)),
        (f"MIG-{C}/2/0", ()),
        (f"{A},{MIG}", (A,)),
        ("", ()),
        ("-1", ()),
        ("-1,0", ()),
        ("none", ()),
        ("void", ()),
        ("7", ()),
    ],
)
def test_uuids_are_taken_as_cuda_takes_them(text: str, left: tuple[str, ...]) -> None:
    there = (*ALIKE[:2], SPLIT[1])
    assert visible({"CUDA_VISIBLE_DEVICES": text}, there) == left


@pytest.mark.parametrize(
    ("text", "left", "says"),
    [
        ("7", (), "names 7, which is no GPU of this machine, so CUDA gives the run none"),
        ("0,7", (A,), f"names 7, which is no GPU of this machine, so CUDA gives the run only {A}"),
        ("GPU-gone", (), "names GPU-gone, which is no GPU"),
        ("0,0", (), "names a GPU twice, so CUDA gives the run none"),
        ("0,1", (A, B), None),
        ("", (), None),
        ("-1", (), None),
        ("0,-1,1", (A,), None),
        ("NoDevFiles", (), None),
    ],
)
def test_a_gpu_that_is_named_in_vain_is_told(
    text: str, left: tuple[str, ...], says: str | None
) -> None:
    told = shortfall(text, left)
    assert told is None if says is None else says in (told or "")


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("2", (C,)),
        ("1, 0", (B, A)),
        ("0,-1,1", (A,)),
        ("0,7,1", (A,)),
        ("0,1,0", ()),
        ("+1", (B,)),
        ("1gpu2", (B,)),
        (f"0,{B}", (A,)),
    ],
)
def test_numbers_count_by_pci_address_where_cuda_is_told_so(
    text: str, left: tuple[str, ...]
) -> None:
    assert visible({"CUDA_VISIBLE_DEVICES": text, **PCI}, ALIKE) == left


def test_the_only_gpu_has_one_number() -> None:
    assert visible({"CUDA_VISIBLE_DEVICES": "0"}, ALIKE[:1]) == (A,)
    assert visible({"CUDA_VISIBLE_DEVICES": "1"}, ALIKE[:1]) == ()


@pytest.mark.parametrize(
    ("there", "order", "why"),
    [
        (MIXED, {}, "not fixed for different cards (T4, H100)"),
        (SPLIT, {}, "split by MIG"),
        (SPLIT, PCI, "split by MIG"),
        ((card(0, None, "unknown GPU"), card(1, B)), PCI, "one of them does not answer"),
        (ALIKE, {}, "CUDA does not answer"),
    ],
)
def test_a_number_in_an_order_that_is_not_known_is_refused(
    there: tuple[Card, ...], order: dict[str, str], why: str
) -> None:
    with pytest.raises(NotAvailable, match=re.escape(why)) as refused:
        visible({"CUDA_VISIBLE_DEVICES": "0", "PATH": "/usr/bin", **order}, there)
    assert "CUDA_VISIBLE_DEVICES=GPU-... gpuwatch" in str(refused.value)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), None], ids=["as PCI", "other", "no CUDA"])
def test_alike_cards_are_counted_where_cuda_itself_confirms_it(
    tmp_path: Path, order: tuple[int, ...] | None
) -> None:
    driver = FakeDriver(tmp_path, gpus=3)
    if order is not None:
        driver.cuda(*order)
    there = [card(number, uuid(number)) for number in range(3)]
    variables = {**driver.variables, "CUDA_VISIBLE_DEVICES": "2,0"}
    if order == (0, 1, 2):
        assert visible(variables, there) == (uuid(2), uuid(0))
        return
    with pytest.raises(NotAvailable) as refused:
        visible(variables, there)
    names = "GPU-..." if order is None else f"{uuid(0)},{uuid(2)}"
    assert f"CUDA_VISIBLE_DEVICES={names} gpuwatch" in str(refused.value)
