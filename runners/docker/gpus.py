"""How a container is given GPUs: only those of the run, by UUID, never by number or all.

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
"""Docker gives devices by capability where this program is on its PATH."""

_INSTALL = (
    "install nvidia-container-toolkit, then sudo nvidia-ctk runtime configure --runtime=docker && "
    "sudo systemctl restart docker, or run without: --gpus none"
)


@dataclass(frozen=True)
class GpuRequest:
    """GPUs for one container."""

    text: str | None
    """For the session: by what means, and which; ``None``: none are given."""
    requests: tuple[DeviceRequest, ...] = ()


def gift(uuids: Sequence[str], info: Mapping[str, JSON]) -> GpuRequest:
    """What the daemon is asked for: CDI where it knows these GPUs so, else by NVIDIA's runtime."""
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
    """Variables for NVIDIA's runtime: without GPUs it gives none even where it is the default."""
    if not uuids:
        return {"NVIDIA_VISIBLE_DEVICES": "void"}
    return {"NVIDIA_DRIVER_CAPABILITIES": "compute,utility"}


def problem(uuids: Sequence[str], info: Mapping[str, JSON]) -> Problem | None:
    """Why the daemon could not give these GPUs."""
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
    """Whether the specifications of CDI name every one of these GPUs by its UUID."""
    told = "\n".join(_specifications(info))
    return bool(told) and all(uuid in told for uuid in uuids)


def _specifications(info: Mapping[str, JSON]) -> list[str]:
    """The texts, JSON or YAML, that describe ``nvidia.com/gpu`` where the daemon looks for them."""
    found = []
    for folder in info.get("CDISpecDirs") or ():
        for path in sorted(Path(str(folder)).glob("*")):
            if path.suffix in (".json", ".yaml", ".yml"):
                try:
                    text = path.read_text(encoding="utf-8", errors="replace")
                except OSError:
                    continue
                if "nvidia.com/gpu" in text:
                    found.append(text)
    return found
