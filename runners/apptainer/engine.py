"""The engine on this machine: product, version, flags and installation."""

from __future__ import annotations

import os
import pwd
import re
import stat
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from gpuwatch.core.models import Problem
from gpuwatch.runners.apptainer import spython_client
from gpuwatch.runners.container_launch import namespaces_off

_OLDEST = (3, 5)
"""The oldest supported Singularity; every Apptainer is newer."""


@dataclass(frozen=True)
class Engine:
    program: str
    product: str
    version: str
    flags: frozenset[str]
    """Long options of ``exec``, such as ``--mount``."""

    def __str__(self) -> str:
        return f"{self.product} {self.version}"

    @property
    def prefix(self) -> str:
        """Prefix of the variables that set a variable inside."""
        return "APPTAINERENV_" if self.product == "Apptainer" else "SINGULARITYENV_"


@cache
def find() -> Engine | None:
    """The engine that would run a workload; ``None`` if none responds."""
    program, answer = spython_client.program(), spython_client.product_and_version()
    if program is None or answer is None:
        return None
    flags = re.findall(r"--[a-z][a-z-]+", said(program, "exec", "--help"))
    return Engine(program, *answer, frozenset(flags))


def problem() -> Problem | None:
    """Why no workload can run, whatever the image; ``None`` if no problem is known."""
    engine = find()
    if engine is None:
        program = spython_client.program()
        if program is None:
            text = "neither apptainer nor singularity is on the PATH"
            return Problem("apptainer-missing", text, spython_client.INSTALL)
        return Problem(
            "apptainer-broken",
            f"{program} --version does not answer",
            f"see what it says: {program} --version",
        )
    if engine.product != "Apptainer" and tuple(map(int, engine.version.split("."))) < _OLDEST:
        return Problem(
            "apptainer-too-old",
            f"{engine} is older than Singularity 3.5",
            f"get Apptainer: {spython_client.INSTALL}",
        )
    try:
        pwd.getpwuid(os.geteuid())
    except KeyError:
        return Problem(
            "user-unknown",
            f"{engine.product} runs nothing for a user without an account, and {os.geteuid()} "
            "has none here",
            "run as a user that `getent passwd` lists",
        )
    if os.geteuid() != 0 and not has_setuid_starter(engine):
        return namespaces_off(str(engine))
    return None


def has_setuid_starter(engine: Engine) -> bool:
    """Whether its starter runs as root, and can mount images without FUSE or user namespaces."""
    folder = re.search(r"^LIBEXECDIR=(.+)$", said(engine.program, "buildcfg"), re.MULTILINE)
    if folder is None:
        return False
    name = "apptainer" if engine.product == "Apptainer" else "singularity"
    try:
        info = Path(folder[1], name, "bin", "starter-suid").stat()
    except OSError:
        return False
    return info.st_uid == 0 and bool(info.st_mode & stat.S_ISUID)


def said(*command: str) -> str:
    """What a command prints; empty if it cannot be run or fails."""
    try:
        return subprocess.run(
            command, capture_output=True, text=True, timeout=30, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return ""
