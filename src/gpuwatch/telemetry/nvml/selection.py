"""Which GPUs there are, and which of them a selection by index or UUID means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpuwatch.core.lazy_dataclass import dataclass


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
    old_name: str | None = None
    """``MIG-GPU-UUID/INSTANCE/COMPUTE``: what drivers before R470 call a MIG device."""


def present(nvml: Any) -> list[Found]:
    """Every GPU by NVML's index. Raises ``NVMLError`` where not even their number is known."""
    return [_at(nvml, index) for index in range(nvml.nvmlDeviceGetCount())]


def select(nvml: Any, found: Sequence[Found], wanted: Sequence[str | int] | None) -> list[Found]:
    """The GPUs named by index, UUID or a UUID's unique beginning; all for ``None``.

    A MIG device is named by its UUID, or as drivers before R470 call it. Raises ``ValueError``,
    which says what exists, for a selection that means no GPU or more than one; one named twice is
    taken once.
    """
    if wanted is None:
        return list(found)
    chosen: dict[str, Found] = {}
    for name in wanted:
        one = _one(nvml, found, str(name).strip())
        chosen.setdefault(one.id, one)
    return list(chosen.values())


def parts(nvml: Any, gpu: Found) -> list[Found]:
    """The MIG devices of a GPU; none where it has no MIG."""
    try:
        if gpu.handle is None or not nvml.nvmlDeviceGetMigMode(gpu.handle)[0]:
            return []
        most = nvml.nvmlDeviceGetMaxMigDeviceCount(gpu.handle)
    except nvml.NVMLError:
        return []
    found = []
    for number in range(most):
        try:
            handle = nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu.handle, number)
            instance = nvml.nvmlDeviceGetGpuInstanceId(handle)
            compute = nvml.nvmlDeviceGetComputeInstanceId(handle)
        except nvml.NVMLError:  # fewer than there may be
            continue
        uuid, name = _identity(nvml, handle)
        old_name = f"MIG-{gpu.uuid}/{instance}/{compute}"
        id = f"gpu{gpu.index}.mig{number}"
        found.append(Found(id, uuid, name, handle, gpu.index, gpu.uuid, old_name))
    return found


def named(text: str, among: Sequence[Found]) -> list[Found]:
    """Those whose UUID or old name ``text`` is, else whose UUID begins with it."""
    wanted = text.lower()
    whole = [each for each in among if wanted in (_lower(each.uuid), _lower(each.old_name))]
    if whole or wanted in ("", "gpu-", "mig-"):
        return whole
    return [each for each in among if _lower(each.uuid).startswith(wanted)]


def _lower(text: str | None) -> str:
    return (text or "").lower()


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
        fits = named(name, [part for gpu in found for part in parts(nvml, gpu)])
    else:
        fits = named(name if name.upper().startswith("GPU-") else f"GPU-{name}", found)
    if len(fits) == 1:
        return fits[0]
    there = ", ".join(f"{gpu.index} ({gpu.uuid or 'UUID unknown'}: {gpu.name})" for gpu in found)
    problem = "means more than one GPU" if fits else "is no GPU of this machine"
    raise ValueError(f"{name!r} {problem}; there are: {there or 'none'}")
