"""What a workload finds inside a container, whatever engine runs it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from gpuwatch.core.models import LaunchSpec, Mount, Problem
from gpuwatch.core.text import shell
from gpuwatch.core.units import binary

TMP = "/tmp"  # noqa: S108 the container's own

_FIND_PYTHON = 'exec "$(command -v python3 || command -v python || echo python3)" "$@"'
"""The image's own interpreter; a constant, its arguments come behind it as a list."""

_PASSED_ON = re.compile(
    r"OMP_(NUM_THREADS|THREAD_LIMIT|DYNAMIC|PROC_BIND|PLACES|SCHEDULE|WAIT_POLICY)"
    r"|GOMP_(CPU_AFFINITY|SPINCOUNT)|KMP_(AFFINITY|BLOCKTIME|HW_SUBSET)"
    r"|MKL_(NUM_THREADS|DYNAMIC|ENABLE_INSTRUCTIONS)|OPENBLAS_(NUM_THREADS|CORETYPE)"
    r"|(ONEDNN|DNNL)_MAX_CPU_ISA|ATEN_CPU_CAPABILITY|CUDA_DEVICE_ORDER|CUDA_LAUNCH_BLOCKING"
    r"|CUDA_MODULE_LOADING|CUDA_DEVICE_MAX_CONNECTIONS|CUBLAS_WORKSPACE_CONFIG"
    r"|NVIDIA_TF32_OVERRIDE|PYTORCH_(CUDA_)?ALLOC_CONF|TORCH_NUM_THREADS"
    r"|NCCL_(?![A-Z0-9_]*(TOKEN|SECRET|PASS|CREDENTIAL|AUTH|LOGIN|_KEY|(FILE|DIR|PATH)$))[A-Z0-9_]+"
    r"|PYTHONHASHSEED|PYTHONUNBUFFERED|LANG|LC_ALL|TZ"
)


def command(spec: LaunchSpec, archive: str) -> tuple[str, ...]:
    """The command inside: the user's own, or ours with ``archive``, the path of the file there.

    Without ``python=`` a shell of the image finds ``python3`` or ``python`` and becomes it.
    """
    workload = spec.workload
    if workload.kind == "command":
        return workload.arguments
    python = spec.environment.python
    start = (python,) if python else ("/bin/sh", "-c", _FIND_PYTHON, "gpuwatch")
    return (*start, archive, workload.name, *workload.arguments)


def mounts(spec: LaunchSpec) -> tuple[Mount, ...]:
    """What ``--env`` names, then the data and a command's working directory, read-only.

    What lies in a folder that ``--env`` mounts at the same path is there already.
    """
    found = list(spec.environment.mounts)
    own = [data_folder(spec)]
    if spec.workload.kind == "command":
        own.append(spec.working_directory)
    for path in own:
        if path is not None and not any(_covers(mount, path) for mount in found):
            found.append(Mount(path, path))
    return tuple(found)


def data_folder(spec: LaunchSpec) -> str | None:
    """The folder of ``--data``, which one of our workloads reads."""
    value = spec.workload.parameters.get("data")
    return str(value) if value else None


def variables(outside: Mapping[str, str]) -> dict[str, str]:
    """The caller's variables that a container gets: those that decide speed, and the locale.

    NCCL's plug-ins read variables of their own, so all of its prefix are passed on but those that
    are named like a secret or a file, or hold a path of this machine, as that of a plug-in may.
    """
    return {
        name: value
        for name, value in outside.items()
        if _PASSED_ON.fullmatch(name) and not (name.startswith("NCCL_") and "/" in value)
    }


def gpu_variables(spec: LaunchSpec) -> dict[str, str]:
    """What keeps a workload to its GPUs, and has CUDA count them as outside."""
    if not spec.gpus:  # an empty one is not passed on everywhere
        return {"CUDA_VISIBLE_DEVICES": "-1"}
    return {"CUDA_VISIBLE_DEVICES": ",".join(spec.gpus)} if spec.gpus_chosen else {}


def problems(spec: LaunchSpec) -> list[Problem]:
    """What stands against the run in any container: mounts that are not there, memory that the
    caller does not have."""
    found = [
        Problem(
            "mount-missing",
            f"there is no {mount.source} to mount",
            "make it, or name what is there: mount=SRC:DST in --env, --data DIR",
        )
        for mount in mounts(spec)
        if not os.path.exists(mount.source)
    ]
    limit, own = spec.environment.memory_bytes, spec.limits.memory_bytes
    if limit is not None and own is not None and limit > own:
        found.append(
            Problem(
                "memory-beyond-limit",
                f"memory= gives {binary(limit)}, and this command may itself use {binary(own)}",
                f"write memory={own} or less",
            )
        )
    if spec.workload.kind == "command" and os.path.realpath(spec.working_directory) == "/":
        found.append(
            Problem(
                "working-directory",
                "the working directory is /, which cannot be shown in a container",
                "go to the folder of your program first: cd FOLDER",
            )
        )
    if spec.workload.parameters.get("download"):
        found.append(
            Problem(
                "download-in-container",
                "--download writes into --data, which containers see read-only",
                f"fetch the data once: gpuwatch --record {shell(spec.workload.name)} "
                f"--download --data {shell(data_folder(spec) or 'DIR')} --steps 1",
            )
        )
    return found


def hidden_tmp(spec: LaunchSpec) -> list[Problem]:
    """A mount over the writable ``/tmp`` of a container, which is also Docker's ``HOME``."""
    return [
        Problem(
            "mount-hides-tmp",
            f"{mount.source} is mounted read-only on /tmp, where programs must be able to write",
            f"let it be written, mount={mount.source}:/tmp:rw, or use another folder: "
            "mount=SRC:DST, cd FOLDER, --data DIR",
        )
        for mount in mounts(spec)
        if mount.target == TMP and not mount.writable
    ]


def _covers(mount: Mount, path: str) -> bool:
    same = mount.source == mount.target
    return same and (path == mount.source or path.startswith(mount.source.rstrip("/") + "/"))
