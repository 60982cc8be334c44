"""Apptainer's command line and environment. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpuwatch.core.models import LaunchSpec, Mount
from gpuwatch.runners import container_launch
from gpuwatch.runners.apptainer.engine import Engine

FOLDER = "/gpuwatch"
ARCHIVE = f"{FOLDER}/workloads.pyz"
HOME = f"{FOLDER}/home"
SCRATCH = {"/tmp": "tmp", "/var/tmp": "var_tmp"}  # noqa: S108 the container's own
"""Folders of the container, with the engine's names for them under ``--workdir``."""
_PASSED_ON = re.compile(
    r"PATH|HOME|USER|LOGNAME|TMPDIR|XDG_[A-Z_]+|DBUS_SESSION_BUS_ADDRESS"
    r"|(APPTAINER|SINGULARITY)_(CACHE|TMP|CONFIG)DIR"
)
"""Variables that the engine itself needs. It would hand proxies to the workload, passwords and
all, and ``APPTAINER_BIND`` and the like would change what the workload sees."""


def build(spec: LaunchSpec, engine: Engine, image: Path) -> tuple[str, ...]:
    """The command without the run's own folders, which :func:`with_folders` adds.

    * ``--containall``: shows as little of this machine as Docker. Includes a PID namespace, without
      which a signal leaves grandchildren alive. Its init stays, so that a killed workload does not
      exit with 0.
    * ``--no-privs``: root has and gains no capabilities, like other users.
    * ``--no-eval``: a ``$`` in a variable stays a dollar sign.
    * ``--quiet``: hides the engine's INFO lines, which are not the workload's output, but not its
      warnings.
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
    inside = container_launch.with_hook(spec, container_launch.command(spec, ARCHIVE), FOLDER)
    return (*command, "--pwd", where, str(image), *inside)


def _own_limits(spec: LaunchSpec) -> list[str]:
    """The caller's own limits: the engine's control group is not below the caller's."""
    limits = spec.limits
    cpu_time = None if limits.cpu_time is None else f"{limits.cpu_time:.5f}"
    flags = {"cpus": cpu_time, "cpuset-cpus": limits.cpus, "cpuset-mems": limits.memory_nodes}
    return [word for flag, value in flags.items() if value for word in (f"--{flag}", value)]


def mounts(spec: LaunchSpec) -> tuple[Mount, ...]:
    """Everything that is mounted explicitly from this machine."""
    own = (Mount(spec.archive, ARCHIVE),) if spec.archive is not None else ()
    return (*own, *container_launch.mounts(spec), *container_launch.hook_mounts(spec, FOLDER))


def with_folders(command: Sequence[str], home: Path, scratch: Path) -> tuple[str, ...]:
    """``command`` with folders for ``HOME``, ``/tmp`` and ``/var/tmp``.

    Without them ``--contain`` limits these to 16 or 64 MB of memory in total.
    """
    at = command.index("exec") + 1
    own = ("--home", f"{home}:{HOME}", "--workdir", str(scratch))
    return (*command[:at], *own, *command[at:])


def mount_flags(mount: Mount, engine: Engine) -> tuple[str, str]:
    """``--mount`` is CSV and takes any path; the older ``--bind`` splits at commas and colons."""
    if "--mount" in engine.flags:
        fields = ["type=bind", f"source={mount.source}", f"destination={mount.target}"]
        if not mount.writable:
            fields.append("ro")
        return "--mount", ",".join(map(_csv, fields))
    return "--bind", f"{mount.source}:{mount.target}:{'rw' if mount.writable else 'ro'}"


def cannot_mount(mount: Mount, engine: Engine) -> str | None:
    """The character in the mount's paths that this engine cannot handle; ``None`` if fine."""
    wrong = "\n\r" if "--mount" in engine.flags else ",:\n\r"
    return next(
        (character for character in wrong if character in mount.source + mount.target), None
    )


def variables(spec: LaunchSpec, engine: Engine) -> dict[str, str]:
    """The workload's variables, under the names that set them from outside.

    Set through the environment, because ``--env`` splits values, such as lists of GPUs, at commas.
    """
    result = container_launch.inside(spec, f"{FOLDER}/{container_launch.CHANNEL}")
    return {f"{engine.prefix}{name}": value for name, value in result.items()}


def outside(variables: Mapping[str, str]) -> dict[str, str]:
    """The caller's variables that the engine itself needs."""
    return {name: value for name, value in variables.items() if _PASSED_ON.fullmatch(name)}


def _csv(field: str) -> str:
    return '"' + field.replace('"', '""') + '"' if set(field) & set(',"') else field
