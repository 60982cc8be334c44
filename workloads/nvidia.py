"""What NVIDIA's driver reports about this machine's GPUs, without torch."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from pathlib import Path

DRIVER_FOLDER = Path("/proc/driver/nvidia/gpus")


@dataclass(frozen=True)
class Driver:
    """GPUs that the driver shows to this process.

    ``version`` is the driver's, ``capability`` the first GPU's (major, minor); None if the driver's
    library does not respond, as in a container started without GPU support.
    """

    gpus: int
    version: str | None = None
    name: str | None = None
    capability: tuple[int, int] | None = None


def hidden_on_purpose() -> bool:
    """Whether ``CUDA_VISIBLE_DEVICES`` hides every GPU."""
    value = os.environ.get("CUDA_VISIBLE_DEVICES")
    return value is not None and value.strip() in ("", "-1", "none", "NoDevFiles")


def find_driver(folder: Path = DRIVER_FOLDER) -> Driver | None:
    """The driver and its GPUs; None if there is no NVIDIA GPU, or all are hidden on purpose."""
    if hidden_on_purpose():
        return None
    driver = _ask_library()
    if driver is not None and driver.gpus:
        return driver
    try:
        gpus = sum(1 for _ in folder.iterdir())
    except OSError:
        gpus = 0
    return Driver(gpus) if gpus else None


def _ask_library() -> Driver | None:
    """The driver according to NVML (NVML API reference); None if NVML does not respond."""
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
        if nvml.nvmlInit_v2() != 0:
            return None
    except (OSError, AttributeError):
        return None
    try:
        count = ctypes.c_uint(0)
        nvml.nvmlDeviceGetCount_v2(ctypes.byref(count))
        text = ctypes.create_string_buffer(96)
        version = name = capability = None
        if nvml.nvmlSystemGetDriverVersion(text, 96) == 0:
            version = text.value.decode(errors="replace")
        device = ctypes.c_void_p()
        if count.value and nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) == 0:
            if nvml.nvmlDeviceGetName(device, text, 96) == 0:
                name = text.value.decode(errors="replace")
            major, minor = ctypes.c_int(0), ctypes.c_int(0)
            pair = ctypes.byref(major), ctypes.byref(minor)
            if nvml.nvmlDeviceGetCudaComputeCapability(device, *pair) == 0:
                capability = (major.value, minor.value)
        return Driver(count.value, version, name, capability)
    finally:
        nvml.nvmlShutdown()
