"""Which tool reads the hardware counters of which GPU, or why none does. Pure functions.

GPM is part of NVML; DCGM is a separate NVIDIA program. DCGM has profiling fields for data-centre
and professional cards from Volta on, and for GeForce from Blackwell on (its developers in
NVIDIA/DCGM issue 234 and NVIDIA/dcgm-exporter issues 5 and 404). From Hopper on DCGM itself reads
them through GPM (its API reference, "Profiling"), so a GPU without GPM has none in DCGM either.
"""

from __future__ import annotations

import re

from gpuwatch.core.peaks import MEASURE, Peak
from gpuwatch.telemetry.base import Device

_HOPPER, _VOLTA = 9, 7
"""Major compute capability of Hopper and Volta."""
GPM_DRIVER = 525
"""The first driver branch expected to support GPM."""

OF_THE_WHOLE_GPU = "belongs to the whole GPU, not to this MIG device"
NO_PART = "NVML does not report this MIG device's part of the GPU's bandwidth"
_NEEDS = "GPM needs Hopper or later (GeForce: Blackwell)"
_GEFORCE = re.compile(r"\b(GeForce|GTX|MX\d+)\b")


def is_mig(device: Device) -> bool:
    """Whether the device is a MIG device."""
    return bool(device.attributes.get("mig.parent"))


def may_have_gpm(device: Device) -> bool:
    """Whether GPUs of this compute capability have GPM; False if that is unknown."""
    major = _leading(device, "compute.capability")
    return major is not None and major >= _HOPPER


def read_by_dcgm(device: Device) -> bool:
    """Whether DCGM reads counters of this GPU that GPM does not provide.

    Assumes so for an unknown compute capability.
    """
    major = _leading(device, "compute.capability")
    generation = major is None or _VOLTA <= major < _HOPPER
    return generation and not is_mig(device) and not _GEFORCE.search(device.name)


def read_by_ncu(device: Device) -> bool:
    """Whether Nsight Compute supports GPUs of this compute capability: Volta and later."""
    major = _leading(device, "compute.capability")
    return major is not None and major >= _VOLTA


def driver_is_old(device: Device) -> bool:
    """Whether the driver is known to be too old for GPM."""
    branch = _leading(device, "driver.version")
    return branch is not None and branch < GPM_DRIVER


def not_offered(device: Device) -> str:
    """Why ``nvmlGpmQueryDeviceSupport`` says no, and the alternative to GPM."""
    if may_have_gpm(device):
        driver = device.attributes.get("driver.version") or "of unknown version"
        reason = (
            f"GPM needs driver {GPM_DRIVER} or later"
            if driver_is_old(device)
            else "seen on virtual GPUs"
        )
        answer = "nvmlGpmQueryDeviceSupport says no"
        return f"GPM is not offered by this GPU with driver {driver} ({answer}; {reason})"
    if read_by_dcgm(device):
        return (
            f"{_NEEDS}; before that, from Volta on and with DCGM's host engine running, "
            "gpuwatch run --dcgm reads it"
        )
    if _GEFORCE.search(device.name):
        return f"{_NEEDS}; DCGM reads no counters of older GeForce cards"
    return _NEEDS


def no_bandwidth(device: Device, peak: Peak) -> str:
    """Why the bandwidth in bytes per second is unknown: the peak is."""
    if is_mig(device):
        return NO_PART
    reason = (peak.reason or "").removesuffix(f"; {MEASURE}")
    return f"the peak DRAM bandwidth is not known: {reason}"


def _leading(device: Device, attribute: str) -> int | None:
    digits = re.match(r"\d+", str(device.attributes.get(attribute) or ""))
    return int(digits[0]) if digits else None
