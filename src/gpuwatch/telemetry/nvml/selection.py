"""The GPUs of this machine, and selection among them by index or UUID."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.telemetry.nvml.errors import UNREADABLE


@dataclass(frozen=True)
class NvmlDevice:
    """A GPU or MIG device, possibly one that cannot be opened right now."""

    id: str
    uuid: str | None
    name: str
    handle: Any
    """``None`` if NVML did not provide one."""
    index: int
    """NVML's index of the GPU, or of a MIG device's parent."""
    parent: str | None = None
    """UUID of a MIG device's GPU."""
    old_name: str | None = None
    """``MIG-GPU-UUID/INSTANCE/COMPUTE``: a MIG device's name in drivers before R470."""
    bus: str | None = None
    """PCI address of one that cannot be opened, as the kernel names it."""


UNKNOWN = "unknown GPU"
KERNEL_GPUS = Path("/proc/driver/nvidia/gpus")
"""A folder for each GPU by its PCI address, lost ones included."""
_MOST_GPUS, _MOST_PARTS = 1024, 64
"""Far more than a machine has GPUs, and a GPU has MIG devices."""


def present(nvml: Any) -> list[NvmlDevice]:
    """Every GPU by NVML's index. Raises ``NVMLError`` if even the number of GPUs is unknown."""
    count = nvml.nvmlDeviceGetCount()
    if count > _MOST_GPUS:
        raise nvml.NVMLError(UNREADABLE)
    gpus = [_at(nvml, index) for index in range(count)]
    lost = [gpu for gpu in gpus if gpu.handle is None]
    silent = _without_answer(nvml, gpus) if lost else []
    if len(silent) != len(lost):
        return gpus
    # NVML counts GPUs by their address.
    named = {
        gpu.id: replace(gpu, name=f"{model} at {bus}", bus=bus)
        for gpu, (bus, model) in zip(lost, silent, strict=True)
    }
    return [named.get(gpu.id, gpu) for gpu in gpus]


def _without_answer(nvml: Any, gpus: Sequence[NvmlDevice]) -> list[tuple[str, str]]:
    """Address and model of the GPUs that the kernel's driver has and NVML cannot open, by address;
    none if that is not known."""
    answered = set()
    for gpu in gpus:
        if gpu.handle is not None:
            try:
                answered.add(_address(nvml.nvmlDeviceGetPciInfo(gpu.handle).busId))
            except nvml.NVMLError:
                return []
    found = []
    for folder in KERNEL_GPUS.glob("*"):
        with suppress(OSError):
            text = (folder / "information").read_text("utf-8", "replace")
            model = re.search(r"^Model:\s*(\S.*)$", text, re.MULTILINE)
            found.append((folder.name, model[1].strip() if model else UNKNOWN))
    return sorted(each for each in found if _address(each[0]) not in answered)


def _address(bus: str) -> str:
    """NVML writes eight digits of the domain where the kernel writes four."""
    domain, _, rest = bus.lower().partition(":")
    return f"{domain[-4:]}:{rest}"


def select(
    nvml: Any, gpus: Sequence[NvmlDevice], names: Sequence[str | int] | None
) -> list[NvmlDevice]:
    """The GPUs with these indexes, UUIDs or unique UUID prefixes; ``None`` selects all.

    A MIG device is selected by its UUID or its name in drivers before R470. Duplicates are taken
    once. Raises ``ValueError``, listing what exists, for a name that matches no GPU or several.
    """
    if names is None:
        return list(gpus)
    chosen: dict[str, NvmlDevice] = {}
    for name in names:
        gpu = _one(nvml, gpus, str(name).strip())
        chosen.setdefault(gpu.id, gpu)
    return list(chosen.values())


def is_part(uuid: str) -> bool:
    """Whether a UUID is that of a MIG device."""
    return uuid.upper().startswith("MIG-")


def parts(nvml: Any, gpu: NvmlDevice) -> list[NvmlDevice]:
    """The MIG devices of a GPU; none without MIG."""
    try:
        if gpu.handle is None or not nvml.nvmlDeviceGetMigMode(gpu.handle)[0]:
            return []
        limit = nvml.nvmlDeviceGetMaxMigDeviceCount(gpu.handle)
    except nvml.NVMLError:
        return []
    devices = []
    for number in range(min(limit, _MOST_PARTS)):
        try:
            handle = nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu.handle, number)
            instance = nvml.nvmlDeviceGetGpuInstanceId(handle)
            compute = nvml.nvmlDeviceGetComputeInstanceId(handle)
        except nvml.NVMLError:  # fewer devices than the maximum
            continue
        uuid, name = _identity(nvml, handle)
        old_name = f"MIG-{gpu.uuid}/{instance}/{compute}"
        id = f"gpu{gpu.index}.mig{number}"
        devices.append(NvmlDevice(id, uuid, name, handle, gpu.index, gpu.uuid, old_name))
    return devices


def matching(text: str, devices: Sequence[NvmlDevice]) -> list[NvmlDevice]:
    """Devices with this UUID or old name, otherwise those whose UUID starts with it."""
    prefix = text.lower()
    exact = [
        device for device in devices if prefix in (_lower(device.uuid), _lower(device.old_name))
    ]
    if exact or prefix in ("", "gpu-", "mig-"):
        return exact
    return [device for device in devices if _lower(device.uuid).startswith(prefix)]


def _lower(text: str | None) -> str:
    return (text or "").lower()


def _at(nvml: Any, index: int) -> NvmlDevice:
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
    except nvml.NVMLError:
        return NvmlDevice(f"gpu{index}", None, UNKNOWN, None, index)
    return NvmlDevice(f"gpu{index}", *_identity(nvml, handle), handle, index)


def _identity(nvml: Any, handle: Any) -> tuple[str | None, str]:
    """UUID and name, as far as available."""
    uuid: str | None = None
    name = UNKNOWN
    with suppress(nvml.NVMLError):
        uuid = str(nvml.nvmlDeviceGetUUID(handle))
        name = str(nvml.nvmlDeviceGetName(handle))
    return uuid, name


def _one(nvml: Any, gpus: Sequence[NvmlDevice], name: str) -> NvmlDevice:
    if name.isdecimal():
        matches = [gpu for gpu in gpus if gpu.index == int(name)]
    elif is_part(name):
        matches = matching(name, [part for gpu in gpus for part in parts(nvml, gpu)])
    else:
        matches = matching(name if name.upper().startswith("GPU-") else f"GPU-{name}", gpus)
    if len(matches) == 1:
        return matches[0]
    choices = ", ".join(f"{gpu.index} ({gpu.uuid or 'UUID unknown'}: {gpu.name})" for gpu in gpus)
    problem = "matches several GPUs" if matches else "matches no GPU of this machine"
    raise ValueError(f"{name!r} {problem}; there are: {choices or 'none'}")
