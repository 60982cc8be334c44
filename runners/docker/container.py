"""The container of a run: its arguments, with minimal privileges; and those that were left."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import docker
from docker.types import LogConfig, Mount

from gpuwatch.core.models import JSON, LaunchSpec
from gpuwatch.core.processes import ProcessId
from gpuwatch.runners import container_launch as inside
from gpuwatch.runners.docker import gpus
from gpuwatch.runners.docker.client import AWAY, Daemon

FOLDER = "/gpuwatch"
ARCHIVE = f"{FOLDER}/workloads.pyz"
CHANNEL = f"{FOLDER}/{inside.CHANNEL}"
LABEL = "io.gpuwatch."
HOME = "/tmp"  # noqa: S108 the container's own, a tmpfs

LOG = {"max-size": "4g", "max-file": "2", "mode": "blocking"}
"""``json-file``: the log driver that every daemon can read back, follow, and filter by time.

Rotating a log that is being followed loses some lines and repeats others (Docker 20.10, a busy loop
of 600,000 lines: half of them with 16 MB in 8 files, four out of five with 1 MB in 3 files; all
arrive without rotation). So rotation only protects the disk: a run that writes less than 4 GiB
loses nothing, and none takes more than 8 GiB. ``local`` would keep bytes that are not UTF-8, which
become U+FFFD here, but 20.10 drops the line break after a line of more than 16 KiB, so the next
line would not be a step line. ``blocking``, because a daemon may be configured to drop output that
comes too fast.
"""


PERIOD = 100_000
"""Period of a CPU quota, in microseconds; the kernel's default."""


@dataclass(frozen=True)
class User:
    """The workload's user by number, in the container and for the host's files."""

    uid: int
    gid: int
    groups: tuple[int, ...]
    inside: str
    """``UID:GID`` as passed to the container."""

    @property
    def all_groups(self) -> Collection[int]:
        return {self.gid, *self.groups}


def user(daemon: Daemon) -> User:
    """The caller; user 0 in a rootless daemon's containers, which is the caller outside."""
    uid, gid = os.geteuid(), os.getegid()
    if "rootless" in daemon.security:
        return User(uid, gid, (), "0:0")
    groups = tuple(sorted(set(os.getgroups()) - {gid}))
    return User(uid, gid, groups, f"{uid}:{gid}")


def name(folder: Path) -> str:
    """Name of the container of the run with this folder."""
    return f"gpuwatch-{folder.name}"


def shm_bytes(spec: LaunchSpec) -> int:
    """The requested size, else that of the machine's ``/dev/shm``, so that both are equal."""
    asked = spec.environment.shm_bytes
    return (inside.shared_memory() or 64 << 20) if asked is None else asked


def network(spec: LaunchSpec) -> str:
    return spec.environment.network or "none"


def labels(folder: Path, recorder: ProcessId | None, spawned_ns: int) -> dict[str, str]:
    """Labels by which the container can be found again."""
    values = {
        "run": folder.name,
        "folder": folder,
        "host": socket.gethostname(),
        "owner": os.geteuid(),
        "recorder": json.dumps(asdict(recorder)) if recorder else "",
        "spawned_ns": spawned_ns,
    }
    return {LABEL + key: str(value) for key, value in values.items()}


def host_config(spec: LaunchSpec, daemon: Daemon) -> dict[str, JSON]:
    """Arguments for the SDK's ``create_host_config``."""
    account = user(daemon)
    binds = [
        Mount(mount.target, mount.source, type="bind", read_only=not mount.writable)
        for mount in (*inside.mounts(spec), *inside.hook_mounts(spec, FOLDER))
    ]
    if spec.archive is not None:
        binds.append(Mount(ARCHIVE, spec.archive, type="bind", read_only=True))
    security = ["no-new-privileges"]
    # Containers may only use files with their label: the alternative is to relabel the user's.
    if "selinux" in daemon.security:
        security.append("label=disable")
    options: dict[str, JSON] = {
        "mounts": binds,
        "network_mode": network(spec),
        "ipc_mode": "private",
        "shm_size": shm_bytes(spec),
        "read_only": True,
        "init": True,
        "group_add": [str(group) for group in account.groups],
        "cap_drop": ["ALL"],
        "security_opt": security,
        "log_config": LogConfig(type=LogConfig.types.JSON, config=LOG),
        "device_requests": list(gpus.request_for(spec.gpus, daemon.info).requests),
    }
    if all(mount.target != HOME for mount in inside.mounts(spec)):
        options["tmpfs"] = {HOME: "rw,exec,nosuid,nodev,mode=1777"}
    # It shifts user ids: without the host's the caller has no rights to the host's files.
    if "userns" in daemon.security:
        options["userns_mode"] = "host"
    return options | _limits(spec)


def hook_variables(spec: LaunchSpec, image: Mapping[str, JSON]) -> dict[str, str]:
    """What puts the hook into every Python of the container, before the ``PYTHONPATH`` of ``set=``
    or of the image's configuration ``image``."""
    variables = inside.hook_variables(spec.hook, CHANNEL)
    if spec.hook is None or spec.hook.archive is None:
        return variables
    own = [each.partition("=") for each in image.get("Env") or ()]
    before = {name: value for name, _, value in own} | dict(spec.environment.variables)
    path = [f"{FOLDER}/{inside.HOOK}", before.get("PYTHONPATH")]
    return {**variables, "PYTHONPATH": ":".join(filter(None, path))}


def _limits(spec: LaunchSpec) -> dict[str, JSON]:
    """Requested limits plus the caller's own: the daemon's containers are not the caller's
    processes, and would otherwise get the whole machine."""
    own, options = spec.limits, dict[str, JSON]()
    memory = spec.environment.memory_bytes or own.memory_bytes
    if memory is not None:
        options["mem_limit"] = options["memswap_limit"] = memory
    if own.cpus is not None:
        options["cpuset_cpus"] = own.cpus
    if own.memory_nodes is not None:
        options["cpuset_mems"] = own.memory_nodes
    if own.cpu_time is not None:
        options["cpu_period"] = PERIOD
        options["cpu_quota"] = round(own.cpu_time * PERIOD)
    return options


def arguments(
    spec: LaunchSpec, image_id: JSON, variables: Mapping[str, str], daemon: Daemon
) -> dict[str, JSON]:
    """The other arguments, for the SDK's ``create_container``; name and labels come at the start.

    Replaces the image's own entrypoint, because many print a banner or start a shell. Disables its
    health check, which would run beside the workload.
    """
    own = spec.workload.kind == "command"
    program, *words = inside.command(spec, ARCHIVE)
    return {
        "image": image_id,
        "entrypoint": [program],
        "command": words,
        "user": user(daemon).inside,
        "environment": dict(variables),
        "working_dir": spec.working_directory if own else HOME,
        "stop_signal": "SIGTERM",
        "healthcheck": {"test": ["NONE"]},
        "use_config_proxy": False,
    }


def remove_leftovers(daemon: Daemon, *, running: bool) -> list[str]:
    """Remove containers that a dead gpuwatch left, whose run's folder is gone, so that no session
    refers to them, with ``running`` also those that still run; returns a line for each."""
    lines = []
    with contextlib.suppress(*AWAY), daemon.client(timeout=60) as api:
        for name, state in _leftovers(api):
            if state in ("created", "exited", "dead") or running:
                with contextlib.suppress(*AWAY):
                    api.remove_container(name, v=True, force=True)
                    lines.append(f"removed container {name} ({state}): its run is gone")
    return lines


def _leftovers(api: docker.APIClient) -> Iterator[tuple[str, str]]:
    """Name and state of each; only the caller's own, from this host."""
    filters = [f"{LABEL}host={socket.gethostname()}", f"{LABEL}owner={os.geteuid()}"]
    for each in api.containers(all=True, filters={"label": filters}):
        labels = each.get("Labels") or {}
        if Path(labels.get(f"{LABEL}folder", "/")).is_dir():
            continue
        recorder = _recorder(labels.get(f"{LABEL}recorder", ""))
        if recorder is not None and recorder.alive() is not False:
            continue  # the folder of a recorded run was removed
        yield each["Names"][0].lstrip("/"), str(each.get("State"))


def _recorder(label: str) -> ProcessId | None:
    try:
        return ProcessId(**json.loads(label))
    except (ValueError, TypeError):
        return None
