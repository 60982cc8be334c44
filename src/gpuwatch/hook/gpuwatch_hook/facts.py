"""What is known of the device and of the versions inside the program."""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch


def of_device(device: Any) -> dict[str, Any]:
    """Keys of the ``run`` line."""
    keys: dict[str, Any] = {"device": device.type, "cpu_nodes": _cpu_nodes()}
    if device.type != "cuda":
        return keys
    properties = torch.cuda.get_device_properties(device)
    keys["device_name"] = properties.name
    uuid = str(getattr(properties, "uuid", ""))
    if uuid:
        mig = f"MIG-{uuid}"
        named = mig in os.environ.get("CUDA_VISIBLE_DEVICES", "")
        keys["device_uuid"] = [mig if named else f"GPU-{uuid}"]
    keys["gpu_node"] = _gpu_node(properties)
    return keys


def gpus() -> list[str]:
    """UUIDs of the GPUs on which this process allocated memory through torch."""
    used = [
        each for each in range(torch.cuda.device_count()) if torch.cuda.max_memory_reserved(each)
    ]
    found = (of_device(torch.device("cuda", each)) for each in used)
    return [uuid for keys in found for uuid in keys.get("device_uuid", ())]


def _cpu_nodes() -> list[int]:
    """NUMA nodes of the CPUs that this process may use; empty where the kernel does not tell."""
    usable = {f"cpu{number}" for number in os.sched_getaffinity(0)}
    nodes = Path("/sys/devices/system/node").glob("node[0-9]*")
    return sorted(
        int(node.name.removeprefix("node")) for node in nodes if usable & set(os.listdir(node))
    )


def _gpu_node(properties: Any) -> int | None:
    """NUMA node of a GPU; None if the kernel or this torch does not tell."""
    with suppress(AttributeError, OSError, ValueError):
        place = (properties.pci_domain_id, properties.pci_bus_id, properties.pci_device_id)
        device = "{:04x}:{:02x}:{:02x}.0".format(*place)
        node = int(Path(f"/sys/bus/pci/devices/{device}/numa_node").read_text())
        return node if node >= 0 else None
    return None


def is_sharded(parameter: Any) -> bool:
    """Whether other ranks have parts of it, by FSDP or tensor parallelism."""
    # FSDP's class of parameters is public, but not that of those it keeps as the program made them.
    return hasattr(parameter, "device_mesh") or hasattr(parameter, "_fsdp_flattened")


def versions() -> dict[str, str]:
    """Keys of the ``versions`` line."""
    found = {
        "torch": torch.__version__,
        "python": platform.python_version(),
        "cuda": torch.version.cuda,
        "hip": torch.version.hip,
        "threads": str(torch.get_num_threads()),
    }
    return {name: str(value) for name, value in found.items() if value}
