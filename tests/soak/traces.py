"""What programs leave on a machine: each is found by where it was started, never by its name."""

from __future__ import annotations

import contextlib
import os
from dataclasses import astuple, dataclass
from pathlib import Path

import docker
from docker.errors import DockerException

from gpuwatch.runners.docker.container import LABEL
from tests.engines import available

TAG = "GPUWATCH_SOAK"
"""Variable by which a process is known to be the soak's, however far it got from its parent."""


@dataclass(frozen=True)
class Traces:
    """What is there, each in words for a person."""

    processes: tuple[str, ...]
    containers: tuple[str, ...]
    mounts: tuple[str, ...]
    run_folders: tuple[str, ...]
    temporary_files: tuple[str, ...]
    unfinished_files: tuple[str, ...]
    """Beside the sessions: journals, and what was written under a passing name."""

    def all(self) -> tuple[str, ...]:
        return tuple(each for kind in astuple(self) for each in kind)


def processes(tag: str, below: Path, passing: Path) -> tuple[str, ...]:
    """``PID command`` of those with the tag, and of those that see a mount of a folder of ours.

    The second are the workloads in Apptainer and Charliecloud, whose variables are a short list.
    A mount of ours at ``passing`` tells nothing: whatever container of the machine begins while it
    is there has a copy of it.
    """
    found = []
    own_mounts = os.readlink("/proc/self/ns/mnt")
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):  # it ended just now
            place = Path("/proc", entry)
            tagged = f"{TAG}={tag}".encode() in (place / "environ").read_bytes().split(b"\0")
            elsewhere = os.readlink(place / "ns/mnt") != own_mounts
            if tagged or (elsewhere and _sees((place / "mountinfo").read_text(), below, passing)):
                command = (place / "cmdline").read_bytes().replace(b"\0", b" ")
                found.append(f"{entry} {command.decode(errors='replace').strip()}")
    return tuple(found)


def _sees(mountinfo: str, below: Path, passing: Path) -> bool:
    lines = [line for line in mountinfo.splitlines() if str(below) in line]
    return not all(line.split()[4].endswith(str(passing)) for line in lines)


def containers(below: Path) -> tuple[str, ...]:
    """``NAME STATE`` of Docker's containers whose run's folder is ours."""
    if available.why_not("docker"):
        return ()
    with contextlib.closing(docker.from_env(timeout=60)) as client:
        found = []
        for each in client.containers.list(
            all=True, ignore_removed=True, filters={"label": f"{LABEL}folder"}
        ):
            with contextlib.suppress(DockerException):  # it is removed just now
                if each.labels[f"{LABEL}folder"].startswith(f"{below}/"):
                    found.append(f"{each.name} {each.status}")
        return tuple(found)


def mounts(below: Path) -> tuple[str, ...]:
    """The mount points of this machine in a folder of ours."""
    points = (line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines())
    return tuple(point for point in points if point.startswith(f"{below}/"))


def files(below: Path) -> tuple[str, ...]:
    """Every file and folder there, without those that a program has below its own."""
    return tuple(str(each) for each in sorted(below.iterdir())) if below.is_dir() else ()


def unfinished(below: Path) -> tuple[str, ...]:
    """Journals of sessions, and hidden files: those that are written before they get their name."""
    found = (
        each for each in below.rglob("*") if each.name.startswith(".") or "-journal" in each.name
    )
    return tuple(str(each) for each in sorted(found))
