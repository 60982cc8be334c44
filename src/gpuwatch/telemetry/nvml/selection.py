"""The GPUs of this machine, and selection among them by index or UUID."""

from __future__ import annotations

from collections.abc import Sequence
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


_MOST_GPUS, _MOST_PARTS = 1024, 64
"""Far more than a machine has GPUs, and a GPU has MIG devices."""


def present(nvml: Any) -> list[NvmlDevice]:
    """Every GPU by NVML's index. Raises ``NVMLError`` if even the number of GPUs is unknown."""
    count = nvml.nvmlDeviceGetCount()
    if count > _MOST_GPUS:
        raise nvml.NVMLError(UNREADABLE)
    return [_at(nvml, index) for index in range(count)]


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
        return NvmlDevice(f"gpu{index}", None, "unknown GPU", None, index)
    return NvmlDevice(f"gpu{index}", *_identity(nvml, handle), handle, index)


def _identity(nvml: Any, handle: Any) -> tuple[str | None, str]:
    """UUID and name, as far as available."""
    uuid: str | None = None
    name = "unknown GPU"
    try:
        uuid = str(nvml.nvmlDeviceGetUUID(handle))
        name = str(nvml.nvmlDeviceGetName(handle))
    except nvml.NVMLError:
        return uuid, name
    return uuid, name


def _one(nvml: Any, gpus: Sequence[NvmlDevice], name: str) -> NvmlDevice:
    if name.isdecimal():
        matches = [gpu for gpu in gpus if gpu.index == int(name)]
    elif name.upper().startswith("MIG-"):
        matches = matching(name, [part for gpu in gpus for part in parts(nvml, gpu)])
    else:
        matches = matching(name if name.upper().startswith("GPU-") else f"GPU-{name}", gpus)
    if len(matches) == 1:
        return matches[0]
    choices = ", ".join(f"{gpu.index} ({gpu.uuid or 'UUID unknown'}: {gpu.name})" for gpu in gpus)
    problem = "matches several GPUs" if matches else "matches no GPU of this machine"
    raise ValueError(f"{name!r} {problem}; there are: {choices or 'none'}")
