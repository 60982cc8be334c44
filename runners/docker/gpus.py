"""GPUs for a container: only those of the run, by UUID, never by number or all of them.

Sources: Docker's API (``DeviceRequest``), the Container Device Interface, NVIDIA's container
toolkit.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from docker.types import DeviceRequest

from gpuwatch.core.models import JSON, Problem

_HOOK = "nvidia-container-runtime-hook"
"""With this program on its PATH, Docker provides devices by capability."""

_INSTALL = (
    "install nvidia-container-toolkit, then sudo nvidia-ctk runtime configure --runtime=docker && "
    "sudo systemctl restart docker, or run without: --gpus none"
)


@dataclass(frozen=True)
class GpuRequest:
    """GPUs for one container."""

    text: str | None
    """The method and the GPUs, for the session; ``None`` without GPUs."""
    requests: tuple[DeviceRequest, ...] = ()


def request_for(uuids: Sequence[str], info: Mapping[str, JSON]) -> GpuRequest:
    """The request to the daemon: by CDI if it knows these GPUs, else by NVIDIA's runtime."""
    if not uuids:
        return GpuRequest(None)
    if by_cdi(uuids, info):
        names = [f"nvidia.com/gpu={uuid}" for uuid in uuids]
        return GpuRequest(
            f"cdi {' '.join(names)}", (DeviceRequest(driver="cdi", device_ids=names),)
        )
    request = DeviceRequest(device_ids=list(uuids), capabilities=[["gpu"]])
    return GpuRequest(f"device_ids {' '.join(uuids)}", (request,))


def variables(uuids: Sequence[str]) -> dict[str, str]:
    """Variables for NVIDIA's runtime; without GPUs they keep it from adding any by default."""
    if not uuids:
        return {"NVIDIA_VISIBLE_DEVICES": "void"}
    return {"NVIDIA_DRIVER_CAPABILITIES": "compute,utility"}


def problem(uuids: Sequence[str], info: Mapping[str, JSON]) -> Problem | None:
    """Why the daemon cannot provide these GPUs."""
    if not uuids or by_cdi(uuids, info):
        return None
    if "nvidia" in (info.get("Runtimes") or {}) or shutil.which(_HOOK):
        return None
    if _specifications(info):
        return Problem(
            "gpu-runtime-missing",
            "Docker knows this machine's GPUs by CDI, but not by their UUIDs",
            "sudo nvidia-ctk cdi generate --device-name-strategy=uuid "
            "--output=/etc/cdi/nvidia.yaml, or run without: --gpus none",
        )
    return Problem(
        "gpu-runtime-missing",
        "Docker cannot give GPUs to containers: it has neither NVIDIA's runtime nor CDI",
        _INSTALL,
    )


def by_cdi(uuids: Sequence[str], info: Mapping[str, JSON]) -> bool:
    """Whether CDI specifications name every one of these GPUs by its UUID."""
    specifications = "\n".join(_specifications(info))
    return bool(specifications) and all(uuid in specifications for uuid in uuids)


def _specifications(info: Mapping[str, JSON]) -> list[str]:
    """The specifications (JSON or YAML) of ``nvidia.com/gpu`` in the daemon's CDI folders."""
    texts = []
    for folder in info.get("CDISpecDirs") or ():
        for path in sorted(Path(str(folder)).glob("*")):
            if path.suffix in (".json", ".yaml", ".yml"):
                try:
                    text = path.read_text(encoding="utf-8", errors="replace")
                except OSError:
                    continue
                if "nvidia.com/gpu" in text:
                    texts.append(text)
    return texts
