"""The environment of a run: flat facts about the host and the workload's process.

An unavailable fact is ``None``. Only environment variables on a short list are stored, so that no
secret ends up in a session.
"""

from __future__ import annotations

import os
import platform
import re
import socket
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from gpuwatch.core.processes import read_text
from gpuwatch.telemetry.base import Device
from gpuwatch.telemetry.host import affinity
from gpuwatch.telemetry.host.cgroup import limits
from gpuwatch.telemetry.host.cpu import CpuSource
from gpuwatch.telemetry.host.environment_variables import KEPT, LONGEST

_NICE, _PRIORITY, _POLICY = 19, 40, 41
"""Fields of ``/proc/PID/stat``, from 1: proc(5)."""
_POLICIES = {0: "other", 1: "fifo", 2: "rr", 3: "batch", 5: "idle", 6: "deadline", 7: "ext"}
"""Scheduling policies by number: sched(7)."""

Facts = dict[str, str | int | float | None]


def fingerprint_host(devices: Iterable[Device] = (), root: Path = Path("/")) -> Facts:
    """Facts about the machine under ``host.``, ``os.``, ``cpu.``, ``memory.`` and ``gpuN.``.

    ``devices`` come from an NVML source. Sizes are in bytes, clocks in hertz, power in watts.
    """
    proc, sys = root / "proc", root / "sys"
    lines = (read_text(root / "etc/os-release") or "").splitlines()
    release = {key: value.strip('"') for key, _, value in (line.partition("=") for line in lines)}
    governors = (sys / "devices/system/cpu/cpufreq").glob("policy*/scaling_governor")
    facts: Facts = {
        "host.name": socket.gethostname(),
        "host.boot.id": read_text(proc / "sys/kernel/random/boot_id"),
        "host.product": read_text(sys / "class/dmi/id/product_name"),
        "host.vendor": read_text(sys / "class/dmi/id/sys_vendor"),
        "host.virtual": _virtual(proc),
        "os.release": release.get("PRETTY_NAME"),
        "os.kernel": platform.release(),
        "os.machine": platform.machine(),
        "os.libc": " ".join(platform.libc_ver()).strip() or None,
        "os.clocksource": read_text(
            sys / "devices/system/clocksource/clocksource0/current_clocksource"
        ),
        "cpu.governor": ",".join(sorted({text for each in governors if (text := read_text(each))}))
        or None,
        "memory.transparent.hugepages": _chosen(sys / "kernel/mm/transparent_hugepage/enabled"),
    }
    with closing(CpuSource(root)) as cpu:
        for device in cpu.devices:
            facts["cpu.model"] = device.name
            facts["memory.swap.total"] = device.attributes["swap.total"]
            facts |= {
                key if key.startswith("memory.") else f"cpu.{key}": value
                for key, value in device.attributes.items()
                if not key.startswith(("cgroup.", "core.affinity"))
            }
    for device in devices:
        facts[f"{device.id}.name"] = device.name
        facts[f"{device.id}.uuid"] = device.uuid
        facts |= {
            f"{device.id}.{key}": ("yes" if value else "no") if isinstance(value, bool) else value
            for key, value in device.attributes.items()
        }
    return facts


def fingerprint_process(pid: int, root: Path = Path("/")) -> Facts:
    """Facts about one process under ``process.``: its limits, isolation and listed variables.

    A namespace is ``shared`` with this process, or the process's ``own``. Facts that another user's
    process hides are ``None``. Empty if the process has ended.
    """
    folder = root / "proc" / str(pid)
    status = _status(folder / "status")
    group = limits(pid, root)
    facts: Facts = {
        "process.cgroup.version": group.version,
        "process.cgroup.cpu.limit": group.cpus,
        "process.cgroup.memory.limit": group.memory,
        "process.cpu.affinity": affinity.cpus(pid, root),
        "process.memory.nodes": affinity.memory_nodes(pid, root),
        "process.nice": _scheduled(folder / "stat", _NICE),
        "process.scheduling.policy": _policy(folder / "stat"),
        "process.scheduling.priority": _scheduled(folder / "stat", _PRIORITY),
        "process.seccomp": {"0": "off", "1": "strict", "2": "filter"}.get(
            status.get("Seccomp", "")
        ),
        "process.no.new.privileges": _whole(status.get("NoNewPrivs")),
        "process.capabilities": status.get("CapEff"),
        "process.uid": _whole(status.get("Uid", "").split("\t")[0]),
        "process.shm.size": _size(folder / "root/dev/shm"),
        "process.root.filesystem": _root_filesystem(folder / "mountinfo"),
        "process.limit.memlock": _limit(folder / "limits", "Max locked memory"),
        "process.limit.nofile": _limit(folder / "limits", "Max open files"),
    }
    for space in ("pid", "net", "mnt", "user", "ipc"):
        facts[f"process.namespace.{space}"] = _namespace(
            folder / "ns" / space, root / "proc/self/ns"
        )
    facts |= _variables(folder / "environ")
    ended = _status(folder / "status").get("State", "X").startswith(("X", "Z"))
    return {} if ended else facts


def _variables(path: Path) -> Facts:
    """The listed variables; for ``LD_PRELOAD`` only whether it is set."""
    try:
        pairs = path.read_bytes().split(b"\0")
    except OSError:
        return {"process.env.LD_PRELOAD": None}
    facts: Facts = {"process.env.LD_PRELOAD": "absent"}
    for pair in pairs:
        name, _, value = pair.decode("utf-8", "replace").partition("=")
        if name == "LD_PRELOAD":
            facts["process.env.LD_PRELOAD"] = "present"
        elif name in KEPT:
            facts[f"process.env.{name}"] = value[:LONGEST]
    return facts


def _virtual(proc: Path) -> str | None:
    """``yes`` if the processor reports a hypervisor."""
    text = read_text(proc / "cpuinfo")
    if text is None:
        return None
    flags = re.search(r"^flags\s*:(.*)$", text, re.MULTILINE)
    return None if flags is None else "yes" if " hypervisor" in flags[1] else "no"


def _chosen(path: Path) -> str | None:
    """The word in brackets, as in ``always [madvise] never``."""
    match = re.search(r"\[(\w+)\]", read_text(path) or "")
    return match[1] if match else None


def _status(path: Path) -> dict[str, str]:
    pairs = (line.partition(":") for line in (read_text(path) or "").splitlines())
    return {key: value.strip() for key, _, value in pairs}


def _whole(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() else None


def _scheduled(path: Path, field: int) -> int | None:
    """A field of ``/proc/PID/stat``: the nice value, from -20 (first) to 19, 0 by default; the
    real-time priority, from 1 to 99, 0 without; the number of the policy."""
    behind_name = (read_text(path) or "").rpartition(")")[2].split()
    return int(behind_name[field - 3]) if len(behind_name) > field - 3 else None


def _policy(path: Path) -> str | None:
    """The scheduling policy, as chrt(1) calls it; ``other`` by default."""
    number = _scheduled(path, _POLICY)
    return None if number is None else _POLICIES.get(number, str(number))


def _size(path: Path) -> int | None:
    try:
        stat = os.statvfs(path)
    except OSError:
        return None
    return stat.f_blocks * stat.f_frsize


def _limit(path: Path, name: str) -> str | int | None:
    """The soft limit, in bytes or files, or ``unlimited``."""
    for line in (read_text(path) or "").splitlines():
        if line.startswith(name):
            soft = line[len(name) :].split()[0]
            return int(soft) if soft.isdecimal() else soft
    return None


def _root_filesystem(path: Path) -> str | None:
    """File system type of the process's ``/``: ``overlay`` in most containers."""
    for line in (read_text(path) or "").splitlines():
        fields = line.split()
        if fields[4] == "/":
            return fields[fields.index("-") + 1]
    return None


def _namespace(path: Path, ours: Path) -> str | None:
    """``own`` or ``shared``: the namespace's number itself changes from run to run."""
    try:
        return "shared" if path.readlink() == (ours / path.name).readlink() else "own"
    except OSError:
        return None
