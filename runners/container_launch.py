"""What a workload finds inside a container, with any engine, and what any engine needs."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from gpuwatch.core.interpreter import users_command
from gpuwatch.core.models import Hook, LaunchSpec, Mount, Problem
from gpuwatch.core.text import shell
from gpuwatch.core.units import binary

TMP = "/tmp"  # noqa: S108 the container's own

_FIND_PYTHON = 'exec "$(command -v python3 || command -v python || echo python3)" "$@"'
"""Runs the image's own interpreter; a constant, followed by its arguments as a list."""

HOOK, CHANNEL = "hook.pyz", "hook"
"""Names of the hook and of the folder that it writes into, in a run's folder and in a container."""

_WITH_HOOK = 'PYTHONPATH="$0${PYTHONPATH:+:$PYTHONPATH}"; export PYTHONPATH; exec "$@"'
"""Puts the hook before the ``PYTHONPATH`` that the image's own environment sets; a constant."""
_NOT_STARTED = re.compile(rf"^\S*/{re.escape(HOOK)}: (?:line )?1: exec: (.+)", re.MULTILINE)

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

    For ours, without ``python=``, a shell in the image looks for ``python3`` or ``python`` and
    executes it.
    """
    workload, python = spec.workload, spec.environment.python
    if workload.kind == "command":
        return users_command(workload, python)
    start = (python,) if python else ("/bin/sh", "-c", _FIND_PYTHON, "gpuwatch")
    return (*start, archive, workload.word, *workload.arguments)


def with_hook(spec: LaunchSpec, command: tuple[str, ...], folder: str) -> tuple[str, ...]:
    """``command`` after the image's shell has put the hook, in ``folder`` of the container, first
    on the ``PYTHONPATH``. For engines that set the image's variables only inside."""
    if spec.hook is None or spec.hook.archive is None:
        return command
    return ("/bin/sh", "-c", _WITH_HOOK, f"{folder}/{HOOK}", *command)


def not_started(stderr: str) -> str | None:
    """Why the shell of :func:`with_hook` could not start the command, from its last message."""
    errors = _NOT_STARTED.findall(stderr)
    return errors[-1].strip() if errors else None


def hook_mounts(spec: LaunchSpec, folder: str) -> tuple[Mount, ...]:
    """The hook and the folder that it writes into, in ``folder`` of the container."""
    hook = spec.hook
    if hook is None:
        return ()
    own = () if hook.archive is None else (Mount(hook.archive, f"{folder}/{HOOK}"),)
    return (*own, Mount(hook.channel, f"{folder}/{CHANNEL}", writable=True))


def hook_variables(hook: Hook | None, channel: str) -> dict[str, str]:
    """What tells the hook of its folder; all but the ``PYTHONPATH``."""
    if hook is None:
        return {}
    options = {"GPUWATCH_HOOK_OPTIONS": ",".join(hook.options)} if hook.options else {}
    return {"GPUWATCH_HOOK": channel, **options}


def mounts(spec: LaunchSpec) -> tuple[Mount, ...]:
    """The mounts of ``--env``, then the data, a workload that is not built in, and a command's
    working directory, read-only.

    Skips what is already inside a folder that ``--env`` mounts at the same path.
    """
    result = list(spec.environment.mounts)
    folders = [data_folder(spec), program_folder(spec)]
    if spec.workload.kind == "command":
        folders.append(spec.working_directory)
    for path in folders:
        if path is not None and not any(_covers(mount, path) for mount in result):
            result.append(Mount(path, path))
    return tuple(result)


def data_folder(spec: LaunchSpec) -> str | None:
    """The folder of ``--data``, for one of gpuwatch's own workloads."""
    value = spec.workload.parameters.get("data")
    return str(value) if value else None


def program_folder(spec: LaunchSpec) -> str | None:
    """The file of a workload that is not built in, or the folder of the package that it is in."""
    if spec.workload.program is None:
        return None
    path = Path(spec.workload.program.rpartition(":")[0])
    while (path.parent / "__init__.py").is_file():
        path = path.parent
    return str(path)


def variables(outside: Mapping[str, str]) -> dict[str, str]:
    """The caller's variables that a container gets: those that affect performance, and the locale.

    NCCL's plug-ins read variables of their own, so everything with NCCL's prefix is passed on,
    except names that suggest a secret or a file and values that hold a path of this machine.
    """
    return {
        name: value
        for name, value in outside.items()
        if _PASSED_ON.fullmatch(name) and not (name.startswith("NCCL_") and "/" in value)
    }


def inside(spec: LaunchSpec, channel: str, **own: str) -> dict[str, str]:
    """All variables of the workload but the image's: the caller's, those of the GPUs, of the engine
    (``own``), of ``set=``, and of the hook, which writes into ``channel``."""
    return {
        **variables(spec.variables),
        **gpu_variables(spec),
        "NVIDIA_VISIBLE_DEVICES": ",".join(spec.gpus) or "void",
        **own,
        **spec.environment.variables,
        **hook_variables(spec.hook, channel),
    }


def gpu_variables(spec: LaunchSpec) -> dict[str, str]:
    """Limits a workload to its GPUs and makes CUDA count them as outside."""
    if not spec.gpus:  # not every engine passes on an empty value
        return {"CUDA_VISIBLE_DEVICES": "-1"}
    return {"CUDA_VISIBLE_DEVICES": ",".join(spec.gpus)} if spec.gpus_chosen else {}


def problems(spec: LaunchSpec) -> list[Problem]:
    """Problems in any container: missing mounts, or more memory than the caller has."""
    results = [
        Problem(
            "mount-missing",
            f"there is no {mount.source} to mount",
            "create it, or name an existing one: mount=SRC:DST in --env, --data DIR",
        )
        for mount in mounts(spec)
        if not os.path.exists(mount.source)
    ]
    limit, own = spec.environment.memory_bytes, spec.limits.memory_bytes
    if limit is not None and own is not None and limit > own:
        results.append(
            Problem(
                "memory-beyond-limit",
                f"memory= gives {binary(limit)}, and this command may itself use {binary(own)}",
                f"write memory={own} or less",
            )
        )
    if spec.workload.kind == "command" and os.path.realpath(spec.working_directory) == "/":
        results.append(
            Problem(
                "working-directory",
                "the working directory is /, which cannot be mounted in a container",
                "go to the folder of your program first: cd FOLDER",
            )
        )
    if spec.workload.parameters.get("download"):
        results.append(
            Problem(
                "download-in-container",
                "--download writes into --data, which containers see read-only",
                f"fetch the data once: gpuwatch --record {shell(spec.workload.name)} "
                f"--download --data {shell(data_folder(spec) or 'DIR')} --steps 1",
            )
        )
    return results


def shared_memory() -> int | None:
    """Bytes of the machine's ``/dev/shm``."""
    try:
        shm = os.statvfs("/dev/shm")  # noqa: S108 asked for its size
    except OSError:
        return None
    return shm.f_blocks * shm.f_frsize


def hidden_tmp(spec: LaunchSpec) -> list[Problem]:
    """A mount that hides the container's writable ``/tmp``, which is also Docker's ``HOME``."""
    return [
        Problem(
            "mount-hides-tmp",
            f"{mount.source} is mounted read-only on /tmp, where programs must be able to write",
            f"make it writable, mount={mount.source}:/tmp:rw, or use another folder: "
            "mount=SRC:DST, cd FOLDER, --data DIR",
        )
        for mount in mounts(spec)
        if mount.target == TMP and not mount.writable
    ]


def _covers(mount: Mount, path: str) -> bool:
    same = mount.source == mount.target
    return same and (path == mount.source or path.startswith(mount.source.rstrip("/") + "/"))


_SWITCHES = (
    ("user/max_user_namespaces", "user.max_user_namespaces=15000"),
    ("kernel/unprivileged_userns_clone", "kernel.unprivileged_userns_clone=1"),
)
"""Files below ``/proc/sys`` that contain 0 if user namespaces are off, and how to turn them on."""


def namespaces_off(engine: str, settings: Path = Path("/proc/sys")) -> Problem | None:
    """Why ``engine`` cannot create a user namespace for this user; ``None`` if no obstacle is
    known."""
    for name, setting in _SWITCHES:
        # The second switch is Debian's own, and does not affect root.
        if os.geteuid() == 0 and name.startswith("kernel"):
            continue
        try:
            off = (settings / name).read_text().strip() == "0"
        except OSError:
            continue
        if off:
            return Problem(
                "user-namespaces-off",
                f"{engine} needs user namespaces, and {name.replace('/', '.')} is 0",
                f"sudo sysctl -w {setting}",
            )
    return None
