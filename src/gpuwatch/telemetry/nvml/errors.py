"""NVML's return codes in plain words, with fixes.

The codes are those of ``nvmlReturn_t`` in NVIDIA's ``nvml.h``.
"""

from __future__ import annotations

from gpuwatch.core.lazy_dataclass import dataclass


@dataclass(frozen=True)
class Unavailable:
    """Why something is unavailable, and how to fix it."""

    reason: str
    hint: str


PERMANENT = frozenset({2, 3, 13, 25, 26})
"""Codes that mean a function will never work here: invalid argument, not supported, function not
found, argument version mismatch, deprecated."""

LOST = frozenset({1, 9, 15, 16, 28})
"""Codes that affect the whole GPU: uninitialized, driver not loaded, lost, reset required, not
found."""

INVALID_ARGUMENT = 2
NOT_SUPPORTED = 3
NO_PERMISSION = 4
NOT_FOUND = 6
FUNCTION_NOT_FOUND = 13
UNREADABLE = -1
"""Not NVML's: the binding cannot read the answer, or no answer of that kind exists."""

NO_BINDING = Unavailable(
    "the Python package nvidia-ml-py is not installed",
    "install nvidia-ml-py into the environment that runs gpuwatch",
)

NO_LIBRARY = Unavailable(
    "the NVML library (libnvidia-ml.so.1) was not found",
    "install the NVIDIA driver; without an NVIDIA GPU there is nothing to do",
)

_RELOAD = "reboot, or unload and reload the NVIDIA kernel modules"

_MEANING = {
    UNREADABLE: Unavailable(
        "the driver gave an answer that cannot be read", "update the NVIDIA driver and nvidia-ml-py"
    ),
    1: Unavailable("NVML was shut down", "start the recording again"),
    2: Unavailable("not offered for this GPU (invalid argument)", "no fix: a limit of the GPU"),
    3: Unavailable("not supported by this GPU and driver", "no fix: a limit of the GPU or driver"),
    4: Unavailable(
        "no permission", "ask the administrator, or run where the NVIDIA device files may be opened"
    ),
    6: Unavailable("not found", "run nvidia-smi -L to see which GPUs exist"),
    9: Unavailable(
        "the NVIDIA driver is not loaded",
        "load it with modprobe nvidia; on a machine without an NVIDIA GPU there is nothing to do",
    ),
    10: Unavailable("the driver timed out", "look for Xid errors in the kernel log"),
    12: NO_LIBRARY,
    13: Unavailable("unknown to this driver's NVML", "update the NVIDIA driver"),
    15: Unavailable(
        "the GPU is lost: it has fallen off the bus or does not respond",
        "look for Xid errors in the kernel log, then reset the GPU or reboot",
    ),
    16: Unavailable("the GPU needs a reset", "run nvidia-smi --gpu-reset, or reboot"),
    17: Unavailable(
        "the operating system refused", "look at the device files and the container's settings"
    ),
    18: Unavailable(
        "the NVML library and the loaded driver have different versions "
        "(the driver was updated under a running kernel)",
        _RELOAD,
    ),
    20: Unavailable("NVML ran out of memory", "free memory on the host"),
    25: Unavailable("this driver's NVML wants another struct version", "update nvidia-ml-py"),
    26: Unavailable("withdrawn in this driver", "update gpuwatch and nvidia-ml-py"),
    28: Unavailable("the GPU is no longer there", "run nvidia-smi -L to see which GPUs exist"),
    999: Unavailable(
        "NVML reports an unknown error",
        "in a container: restart it (a reload of systemd can take its GPU away); "
        "else look for Xid errors in the kernel log",
    ),
}


def describe(code: int) -> Unavailable:
    """The meaning of an ``nvmlReturn_t``; an unlisted code is shown as its number."""
    unlisted = Unavailable(f"NVML error {code}", "run nvidia-smi -q and look at the kernel log")
    return _MEANING.get(code, unlisted)


class GpuLost(Exception):
    """A call reported that the whole GPU, or its driver, is gone."""

    def __init__(self, code: int) -> None:
        super().__init__(describe(code).reason)
        self.code = code
