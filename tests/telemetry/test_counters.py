from __future__ import annotations

import pytest

from gpuwatch.core.peaks import dram_peak
from gpuwatch.telemetry.base import Device
from gpuwatch.telemetry.counters import driver_is_old, no_bandwidth, not_offered, read_by_dcgm


def gpu(name: str, capability: str | None, **attributes: str) -> Device:
    known = {key.replace("_", "."): value for key, value in attributes.items()}
    return Device("gpu0", "gpu", name, "GPU-1", {"compute.capability": capability, **known})


@pytest.mark.parametrize(
    ("name", "capability", "reads"),
    [
        ("Tesla P100-PCIE-16GB", "6.0", False),
        ("Tesla V100-SXM2-16GB", "7.0", True),
        ("Quadro RTX 6000", "7.5", True),
        ("NVIDIA GeForce GTX 1650", "7.5", False),
        ("NVIDIA A100-SXM4-80GB", "8.0", True),
        ("NVIDIA GeForce RTX 4090", "8.9", False),
        ("NVIDIA L40S", "8.9", True),
        ("NVIDIA H100 80GB HBM3", "9.0", False),
        ("NVIDIA GeForce RTX 5090", "12.0", False),
        ("unknown GPU", None, True),
    ],
)
def test_dcgm_is_named_only_where_it_reads_what_gpm_does_not(
    name: str, capability: str | None, reads: bool
) -> None:
    device = gpu(name, capability)
    assert read_by_dcgm(device) is reads
    assert ("--dcgm" in not_offered(device)) is reads


def test_a_geforce_owner_is_told_why_dcgm_does_not_help() -> None:
    assert "GeForce cards" in not_offered(gpu("NVIDIA GeForce RTX 4090", "8.9"))
    assert "GeForce cards" not in not_offered(gpu("Tesla P100-PCIE-16GB", "6.0"))


def test_the_driver_is_blamed_only_where_it_is_old() -> None:
    old = gpu("NVIDIA H100 80GB HBM3", "9.0", driver_version="515.65.01")
    new = gpu("NVIDIA Z999", "13.7", driver_version="575.57.08")
    assert driver_is_old(old) and "driver 525 or later" in not_offered(old)
    assert not driver_is_old(new) and "525" not in not_offered(new)
    assert "575.57.08" in not_offered(new)
    assert not driver_is_old(gpu("NVIDIA Z999", "13.7"))


def test_the_reason_for_no_bytes_names_no_mend_that_does_not_mend_them() -> None:
    whole = gpu("NVIDIA H100 80GB HBM3", "9.0")
    part = gpu("NVIDIA H100 80GB HBM3 MIG 1g.10gb", "9.0", mig_parent="GPU-2")
    for device, says in ((whole, "maximum memory clock"), (part, "this MIG device")):
        told = no_bandwidth(device, dram_peak(device.attributes, device.name))
        assert says in told and "calibrate" not in told
