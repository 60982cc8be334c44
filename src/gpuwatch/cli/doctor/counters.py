"""Whether hardware counters are readable here: for bandwidth and pipes, and for FLOP by ``ncu``."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from gpuwatch.core.metrics import Method
from gpuwatch.core.models import Problem
from gpuwatch.telemetry import counters
from gpuwatch.telemetry.base import Channel, Device
from gpuwatch.telemetry.nvml.errors import NO_PERMISSION, describe

PARAMETERS = Path("/proc/driver/nvidia/params")
"""The kernel module's settings, one ``Name: value`` a line."""

_BANDWIDTH = "hw.gpu.memory.bandwidth"
_HOST_ENGINE = (
    "install NVIDIA's datacenter-gpu-manager, start its nv-hostengine, then add --dcgm to the run"
)
_OPEN_COUNTERS = (
    "echo options nvidia NVreg_RestrictProfilingToAdminUsers=0 | "
    "sudo tee /etc/modprobe.d/nvidia-profiling.conf, then load the driver anew (reboot)"
)


def bandwidth_by(device: Device, channels: Sequence[Channel]) -> str | Problem:
    """The counter that measures the bandwidth of a GPU, from the channels at the start of a
    recording, or why none does."""
    of_gpu = (each for each in channels if (each.device, each.metric) == (device.id, _BANDWIDTH))
    channel = next(of_gpu, None)
    if channel is not None and channel.method is Method.MEASURED:
        return channel.source
    reason = (channel.reason if channel else None) or "no counter of memory traffic is read"
    return Problem("no-counters", reason, _hint(device, reason))


def _hint(device: Device, reason: str) -> str:
    """What would make the bandwidth measurable; never a condition already met."""
    permission = describe(NO_PERMISSION)
    if permission.reason in reason:
        return permission.hint
    if counters.may_have_gpm(device) and counters.driver_is_old(device):
        return f"update the driver to {counters.GPM_DRIVER} or later"
    if counters.may_have_gpm(device) and "says " not in reason and "peak" not in reason:
        return "see whether nvidia-smi answers, and look for Xid errors in the kernel log"
    if counters.is_mig(device):
        return "watch the whole GPU: on a MIG device only the share of busy time can be measured"
    if not device.attributes.get("compute.capability") or not counters.read_by_dcgm(device):
        counted = "none on this GPU; bytes per step are counted (algorithmic)"
        by_ncu = ", or read by ncu: gpuwatch run --counters"
        return f"{counted}{by_ncu if counters.read_by_ncu(device) else ''}"
    if shutil.which("dcgmi"):
        return "add --dcgm to the run: it reads DCGM's host engine (nv-hostengine must run)"
    return _HOST_ENGINE


def executed_flop(parameters: Path = PARAMETERS) -> Problem | None:
    """Why ``--counters`` cannot count executed work; ``None``: ncu is here and allowed to."""
    if find_ncu() is None:
        return Problem(
            "ncu-missing",
            "executed FLOP and DRAM bytes per step need ncu, which is not on the PATH",
            "install Nsight Compute (package nsight-compute, or with the CUDA toolkit)",
        )
    if os.geteuid() != 0 and restricted(parameters):
        return Problem(
            "counters-restricted",
            "the driver lets only administrators read performance counters",
            _OPEN_COUNTERS,
        )
    return None


def find_ncu() -> str | None:
    """Path of Nsight Compute's ``ncu``, from ``PATH`` or where CUDA's packages put it."""
    return shutil.which("ncu") or shutil.which("ncu", path="/usr/local/cuda/bin")


def restricted(parameters: Path = PARAMETERS) -> bool:
    """Whether the driver keeps counters from users without ``CAP_SYS_ADMIN``."""
    try:
        text = parameters.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return re.search(r"^RmProfilingAdminOnly:\s*1\s*$", text, re.MULTILINE) is not None
