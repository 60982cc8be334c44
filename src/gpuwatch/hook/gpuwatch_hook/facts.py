"""What is known of the device and of the versions inside the program."""

from __future__ import annotations

import os
import platform
from typing import Any

import torch


def of_device(device: Any) -> dict[str, Any]:
    """Keys of the ``run`` line."""
    if device.type != "cuda":
        return {"device": device.type}
    properties = torch.cuda.get_device_properties(device)
    keys: dict[str, Any] = {"device": "cuda", "device_name": properties.name}
    uuid = str(getattr(properties, "uuid", ""))
    if uuid:
        mig = f"MIG-{uuid}"
        named = mig in os.environ.get("CUDA_VISIBLE_DEVICES", "")
        keys["device_uuid"] = [mig if named else f"GPU-{uuid}"]
    return keys


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
