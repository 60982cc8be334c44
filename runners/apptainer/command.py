"""The command line of Apptainer, and the environment it is called in. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpuwatch.core.models import LaunchSpec, Mount
from gpuwatch.runners import container_launch
from gpuwatch.runners.apptainer.engine import Engine

ARCHIVE = "/gpuwatch/workloads.pyz"
HOME = "/gpuwatch/home"
SCRATCH = {"/tmp": "tmp", "/var/tmp": "var_tmp"}  # noqa: S108 the container's own
"""Folders of the container, and what the engine calls them in ``--workdir``."""
_PASSED_ON = re.compile(
    r"PATH|HOME|USER|LOGNAME|TMPDIR|XDG_[A-Z_]+|DBUS_SESSION_BUS_ADDRESS"
    r"|(APPTAINER|SINGULARITY)_(CACHE|TMP|CONFIG)DIR"
)
"""What the engine itself needs. Proxies it would hand to the workload, passwords and all, and
``APPTAINER_BIND`` and its like would change what the workload sees."""


def build(spec: LaunchSpec, engine: Engine, image: Path) -> tuple[str, ...]:
    """The command, but for the folders of this one run: :func:`with_folders`.

    * ``--containall``: as little of this machine as Docker shows. Own PIDs with it: without them
      a signal leaves grandchildren alive; its init stays, for without it a killed workload ends 0.
    * ``--no-privs``: root keeps no capability and gains none, as others do anyway.
    * ``--no-eval``: a ``$`` in a variable is a dollar sign.
    * ``--quiet``: the engine's INFO is not the workload's output; its warnings are.
    """
    environment = spec.environment
    command = [engine.program, "--quiet", "exec", "--containall", "--no-privs"]
    if "--no-eval" in engine.flags:
        command.append("--no-eval")
    if spec.gpus:
        command.append("--nv")
    if environment.network == "none":
        command += ["--net", "--network", "none"]
    if environment.memory_bytes is not None:
        command += ["--memory", str(environment.memory_bytes), *_own_limits(spec)]
    for mount in mounts(spec):
        command += mount_flags(mount, engine)
    where = spec.working_directory if spec.workload.kind == "command" else HOME
    return (*command, "--pwd", where, str(image), *container_launch.command(spec, ARCHIVE))


def _own_limits(spec: LaunchSpec) -> list[str]:
    """The caller's: a control group that the engine makes is not below the caller's."""
    own = spec.limits
    cpu_time = None if own.cpu_time is None else f"{own.cpu_time:.5f}"
    flags = {"cpus": cpu_time, "cpuset-cpus": own.cpus, "cpuset-mems": own.memory_nodes}
    return [word for flag, value in flags.items() if value for word in (f"--{flag}", value)]


def mounts(spec: LaunchSpec) -> tuple[Mount, ...]:
    """Everything of this machine that is mounted by name."""
    own = (Mount(spec.archive, ARCHIVE),) if spec.archive is not None else ()
    return (*own, *container_launch.mounts(spec))


def with_folders(command: Sequence[str], home: Path, scratch: Path) -> tuple[str, ...]:
    """``command`` with the folders behind ``HOME``, ``/tmp`` and ``/var/tmp``.

    Without these ``--contain`` gives them 16 or 64 MB of memory in all.
    """
    at = command.index("exec") + 1
    own = ("--home", f"{home}:{HOME}", "--workdir", str(scratch))
    return (*command[:at], *own, *command[at:])


def mount_flags(mount: Mount, engine: Engine) -> tuple[str, str]:
    """``--mount`` is CSV and takes any path; ``--bind`` of older ones splits at commas, colons."""
    if "--mount" in engine.flags:
        fields = ["type=bind", f"source={mount.source}", f"destination={mount.target}"]
        if not mount.writable:
            fields.append("ro")
        return "--mount", ",".join(map(_csv, fields))
    return "--bind", f"{mount.source}:{mount.target}:{'rw' if mount.writable else 'ro'}"


def cannot_mount(mount: Mount, engine: Engine) -> str | None:
    """The character in its paths that this engine cannot mount; ``None``: it can be mounted."""
    wrong = "\n\r" if "--mount" in engine.flags else ",:\n\r"
    return next((each for each in wrong if each in mount.source + mount.target), None)


def variables(spec: LaunchSpec, engine: Engine) -> dict[str, str]:
    """The variables the workload finds, by the names that set them from outside.

    Through the environment: ``--env`` splits its values at commas, which lists of GPUs have.
    """
    found = {
        **container_launch.variables(spec.variables),
        **container_launch.gpu_variables(spec),
        "NVIDIA_VISIBLE_DEVICES": ",".join(spec.gpus) or "void",
    }
    return {f"{engine.prefix}{name}": value for name, value in found.items()}


def outside(variables: Mapping[str, str]) -> dict[str, str]:
    """The caller's variables that the engine itself is given."""
    return {name: value for name, value in variables.items() if _PASSED_ON.fullmatch(name)}


def _csv(field: str) -> str:
    return '"' + field.replace('"', '""') + '"' if set(field) & set(',"') else field
