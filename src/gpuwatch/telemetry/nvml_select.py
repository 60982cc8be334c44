"""Which GPUs there are, and which of them a selection by index or UUID means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpuwatch.deferred import dataclass


@dataclass(frozen=True)
class Found:
    """A GPU or MIG device, perhaps one that cannot be opened just now."""

    id: str
    uuid: str | None
    name: str
    handle: Any
    """``None`` where NVML did not give it."""
    index: int
    """NVML's index of the GPU; for a MIG device that of its parent."""
    parent: str | None = None
    """UUID of the GPU that a MIG device is a part of."""


def present(nvml: Any) -> list[Found]:
    """Every GPU by NVML's index. Raises ``NVMLError`` where not even their number is known."""
    return [_at(nvml, index) for index in range(nvml.nvmlDeviceGetCount())]


def select(nvml: Any, found: Sequence[Found], wanted: Sequence[str | int] | None) -> list[Found]:
    """The GPUs named by index, UUID or a UUID's unique beginning; all for ``None``.

    A MIG device is named by its whole UUID. Raises ``ValueError``, which says what exists, for a
    selection that means no GPU or more than one; one named twice is taken once.
    """
    if wanted is None:
        return list(found)
    chosen: dict[str, Found] = {}
    for name in wanted:
        one = _one(nvml, found, str(name).strip())
        chosen.setdefault(one.id, one)
    return list(chosen.values())


def _at(nvml: Any, index: int) -> Found:
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
    except nvml.NVMLError:
        return Found(f"gpu{index}", None, "unknown GPU", None, index)
    return Found(f"gpu{index}", *_identity(nvml, handle), handle, index)


def _identity(nvml: Any, handle: Any) -> tuple[str | None, str]:
    """UUID and name, as far as they can be had."""
    uuid: str | None = None
    name = "unknown GPU"
    try:
        uuid = str(nvml.nvmlDeviceGetUUID(handle))
        name = str(nvml.nvmlDeviceGetName(handle))
    except nvml.NVMLError:
        return uuid, name
    return uuid, name


def _one(nvml: Any, found: Sequence[Found], name: str) -> Found:
    if name.isdecimal():
        fits = [gpu for gpu in found if gpu.index == int(name)]
    elif name.upper().startswith("MIG-"):
        fits = _mig(nvml, name)
    else:
        start = name.upper().removeprefix("GPU-")
        fits = [
            gpu
            for gpu in found
            if start and gpu.uuid and gpu.uuid.upper().removeprefix("GPU-").startswith(start)
        ]
    if len(fits) == 1:
        return fits[0]
    there = ", ".join(f"{gpu.index} ({gpu.uuid or 'UUID unknown'}: {gpu.name})" for gpu in found)
    problem = "means more than one GPU" if fits else "is no GPU of this machine"
    raise ValueError(f"{name!r} {problem}; there are: {there or 'none'}")


def _mig(nvml: Any, uuid: str) -> list[Found]:
    try:
        handle = nvml.nvmlDeviceGetHandleByUUID(uuid)
        whole = nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle)
        index, parent = nvml.nvmlDeviceGetIndex(whole), nvml.nvmlDeviceGetUUID(whole)
        number = nvml.nvmlDeviceGetIndex(handle)
    except nvml.NVMLError:
        return []
    own, name = _identity(nvml, handle)
    return [Found(f"gpu{index}.mig{number}", own or uuid, name, handle, int(index), str(parent))]
