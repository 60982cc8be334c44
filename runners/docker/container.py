"""What a container is created with: the same for every run, and no more rights than work needs."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from docker.types import LogConfig, Mount

from gpuwatch.core.models import JSON, LaunchSpec, Prepared
from gpuwatch.core.processes import ProcessId
from gpuwatch.runners import container_launch as inside
from gpuwatch.runners.docker import gpus
from gpuwatch.runners.docker.client import Daemon

ARCHIVE = "/gpuwatch/workloads.pyz"
LABEL = "io.gpuwatch."
HOME = "/tmp"  # noqa: S108 the container's own, a tmpfs

LOG = {"max-size": "4g", "max-file": "2", "mode": "blocking"}
"""``json-file``: the log that every daemon can read back, follow, and give by time.

A log that is rotated under a follower loses lines and gives others twice (Docker 20.10, a busy
loop of 600,000 lines: with 16 MB in 8 files half of them, with 1 MB in 3 files four of five; all
arrive while nothing is rotated). So it is rotated only where the disk is in danger: a run that
writes less than 4 GiB loses nothing, and none takes more than 8 GiB. ``local`` would keep bytes
that are no UTF-8, which here become U+FFFD, but 20.10 forgets the line break behind a line of more
than 16 KiB, and the next line would be no step line. ``blocking``, since a daemon may be set to
drop what comes too fast.
"""


PERIOD = 100_000
"""Microseconds within which a quota of processor time is used up: the kernel's own."""


@dataclass(frozen=True)
class User:
    """Who the workload is, by number: in the container, and to the machine's files."""

    uid: int
    gid: int
    groups: tuple[int, ...]
    inside: str
    """``UID:GID`` as the container is told."""

    @property
    def all_groups(self) -> Collection[int]:
        return {self.gid, *self.groups}


def user(daemon: Daemon) -> User:
    """The caller; 0 in a rootless daemon's containers, whose 0 is the caller."""
    uid, gid = os.geteuid(), os.getegid()
    if daemon.rootless:
        return User(uid, gid, (), "0:0")
    groups = tuple(sorted(set(os.getgroups()) - {gid}))
    return User(uid, gid, groups, f"{uid}:{gid}")


def name(folder: Path) -> str:
    """The container of the run with this folder."""
    return f"gpuwatch-{folder.name}"


def shm_bytes(spec: LaunchSpec) -> int:
    """As asked for, else the size of the machine's ``/dev/shm``: then both are equal."""
    if spec.environment.shm_bytes is not None:
        return spec.environment.shm_bytes
    try:
        found = os.statvfs("/dev/shm")  # noqa: S108 asked for its size
    except OSError:
        return 64 << 20
    return found.f_blocks * found.f_frsize


def network(spec: LaunchSpec) -> str:
    return spec.environment.network or "none"


def labels(folder: Path, recorder: ProcessId | None, spawned_ns: int) -> dict[str, str]:
    """By which the container is found again, whoever looks for it."""
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
    """The arguments of the SDK's ``create_host_config``."""
    who = user(daemon)
    binds = [
        Mount(each.target, each.source, type="bind", read_only=not each.writable)
        for each in inside.mounts(spec)
    ]
    if spec.archive is not None:
        binds.append(Mount(ARCHIVE, spec.archive, type="bind", read_only=True))
    security = ["no-new-privileges"]
    if daemon.confines_files:  # the alternative would be to relabel the user's files
        security.append("label=disable")
    options: dict[str, JSON] = {
        "mounts": binds,
        "network_mode": network(spec),
        "ipc_mode": "private",
        "shm_size": shm_bytes(spec),
        "read_only": True,
        "init": True,
        "group_add": [str(group) for group in who.groups],
        "cap_drop": ["ALL"],
        "security_opt": security,
        "log_config": LogConfig(type=LogConfig.types.JSON, config=LOG),
        "device_requests": list(gpus.gift(spec.gpus, daemon.info).requests),
    }
    if all(mount.target != HOME for mount in inside.mounts(spec)):
        options["tmpfs"] = {HOME: "rw,exec,nosuid,nodev,mode=1777"}
    if daemon.remaps_users:  # else the caller would be nobody to the machine's files
        options["userns_mode"] = "host"
    return options | _limits(spec)


def _limits(spec: LaunchSpec) -> dict[str, JSON]:
    """What is asked for, and the caller's own: the daemon's containers are not among the caller's
    processes, and would have all of the machine."""
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
    spec: LaunchSpec, prepared: Prepared, daemon: Daemon, labelled: Mapping[str, str]
) -> dict[str, JSON]:
    """The other arguments of the SDK's ``create_container``.

    The image's own entrypoint is replaced: many print a banner or start a shell. Its health check
    is not run: it would be work beside the workload.
    """
    own = spec.workload.kind == "command"
    return {
        "image": prepared.facts["image_id"],
        "entrypoint": list(prepared.command[:1]),
        "command": list(prepared.command[1:]),
        "user": user(daemon).inside,
        "environment": dict(prepared.variables),
        "working_dir": spec.working_directory if own else HOME,
        "labels": dict(labelled),
        "stop_signal": "SIGTERM",
        "healthcheck": {"test": ["NONE"]},
        "use_config_proxy": False,
    }
