"""Why a run in Apptainer cannot start here."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from gpuwatch.core.models import LaunchSpec, Problem
from gpuwatch.runners import container_launch
from gpuwatch.runners.apptainer import engine as engines
from gpuwatch.runners.apptainer import images
from gpuwatch.runners.apptainer.command import cannot_mount, mounts
from gpuwatch.runners.apptainer.engine import Engine
from gpuwatch.runners.mounting import unusable

CONTROL_DEVICE = Path("/dev/nvidiactl")
FUSE = Path("/dev/fuse")
CGROUPS = Path("/sys/fs/cgroup")


def problems(spec: LaunchSpec) -> list[Problem]:
    """Every problem that prevents the run; changes nothing."""
    broken = engines.problem()
    engine = engines.find()
    if broken or engine is None:
        return [broken] if broken else []
    image = images.image_of(spec.environment, spec.working_directory)
    results = [
        images.problem(image, spec.environment, Path(engine.program).name),
        _fuse(engine, image),
        *_options(spec, engine),
        _memory(spec, engine),
        *container_launch.problems(spec),
        *container_launch.hidden_tmp(spec),
        *_mounts(spec, engine),
        _gpus(spec, engine),
    ]
    return [result for result in results if result is not None]


def _fuse(engine: Engine, image: images.Image) -> Problem | None:
    """A SIF file is mounted with FUSE if neither the user nor the starter is root."""
    if os.geteuid() == 0 or not os.path.isfile(image.path) or os.access(FUSE, os.R_OK | os.W_OK):
        return None
    if engines.has_setuid_starter(engine):
        return None
    name = Path(engine.program).name
    return Problem(
        "fuse-missing",
        f"{engine} mounts a SIF file with FUSE, and this user cannot use {FUSE}",
        f"unpack it once: {name} build --sandbox FOLDER {image.path}, and name FOLDER; "
        f"or, as root: chmod 666 {FUSE}",
    )


def _options(spec: LaunchSpec, engine: Engine) -> list[Problem]:
    """What ``--env`` asks for and the engine does not have."""
    found = []
    if spec.environment.shm_bytes is not None:
        text = f"{engine.product} cannot size /dev/shm: it has half of the machine's memory"
        found.append(Problem("shm-unsupported", text, "leave shm= out"))
    if "HOME" in spec.environment.variables:
        text = f"{engine.product} does not let HOME be set: each run has a folder of its own"
        hint = "set it in the command: env HOME=FOLDER COMMAND"
        found.append(Problem("home-unsupported", text, hint))
    if spec.environment.network == "bridge":
        text = f"a bridge needs setup by root in {engine.product}, which uses the host's network"
        found.append(Problem("network-unsupported", text, "write network=host or network=none"))
    return found


def _memory(spec: LaunchSpec, engine: Engine) -> Problem | None:
    if spec.environment.memory_bytes is None:
        return None
    if "--memory" not in engine.flags:
        why = f"{engine} has no --memory"
    elif os.geteuid() == 0:
        return None
    elif not (CGROUPS / "cgroup.controllers").exists():
        why = "limits for others than root need cgroup v2, and this machine has version 1"
    elif not _delegated():
        why = "the memory controller is not delegated to this user by systemd"
    else:
        return None
    return Problem(
        "memory-unsupported", f"memory cannot be limited here: {why}", "leave memory= out"
    )


def _delegated() -> bool:
    uid = os.geteuid()
    own = CGROUPS / "user.slice" / f"user-{uid}.slice" / f"user@{uid}.service"
    try:
        return "memory" in (own / "cgroup.controllers").read_text().split()
    except OSError:
        return False


def _mounts(spec: LaunchSpec, engine: Engine) -> list[Problem]:
    problems = []
    for mount in mounts(spec):
        if wrong := cannot_mount(mount, engine):
            problems.append(
                Problem(
                    "mount-path",
                    f"{engine} cannot mount {mount.source!r}: {wrong!r} is in its path",
                    "rename it, or mount it elsewhere: mount=SRC:DST",
                )
            )
        # Other users have the same rights inside as outside; root has no capabilities there.
        elif os.geteuid() == 0:
            who = "root, who has no privileges in the container"
            problems += unusable(mount, 0, {0, *os.getgroups()}, who)
    return problems


def _gpus(spec: LaunchSpec, engine: Engine) -> Problem | None:
    """``--nv`` is silent about a missing driver, and the workload then finds no GPU."""
    if not spec.gpus:
        return None
    if not CONTROL_DEVICE.exists():
        missing = f"there is no {CONTROL_DEVICE}"
    elif "libcuda.so.1 " not in engines.said(shutil.which("ldconfig") or "/sbin/ldconfig", "-p"):
        missing = "ldconfig lists no libcuda.so.1"
    else:
        return None
    return Problem(
        "gpu-driver-missing",
        f"{engine.product} --nv would find no driver to show: {missing}",
        "install NVIDIA's driver (nvidia-smi must work), or take no GPU: --device cpu",
    )
