"""Which engines answer on this machine, and why the others do not."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable
from functools import cache

REQUIRED = "GPUWATCH_REQUIRE_ENGINES"
"""Variable with the engines, separated by commas, whose absence fails the tests."""


def _docker() -> str | None:
    import docker
    from docker.errors import DockerException

    host = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    try:
        with contextlib.closing(docker.from_env(timeout=10)) as client:
            client.ping()
    except (DockerException, OSError):
        return f"no daemon answers at {host}"
    return None


def _apptainer() -> str | None:
    if shutil.which("apptainer") or shutil.which("singularity"):
        return None
    return "neither apptainer nor singularity is on the PATH"


def _charliecloud() -> str | None:
    return None if shutil.which("ch-run") else "ch-run is not on the PATH"


def _ssh() -> str | None:
    if os.geteuid() != 0:
        return "only root can have users log in"
    missing = [name for name in ("ssh", "fish", "csh") if not shutil.which(name)]
    if not os.access("/usr/sbin/sshd", os.X_OK):
        missing.append("sshd")
    return f"{', '.join(missing)} not installed" if missing else None


def _slurm() -> str | None:
    if shutil.which("scontrol") is None:
        return "scontrol is not on the PATH"
    try:
        done = subprocess.run(["scontrol", "ping"], capture_output=True, timeout=10, check=False)
    except subprocess.TimeoutExpired:
        return "slurmctld does not answer"
    return "scontrol ping finds no controller" if done.returncode else None


def _kubernetes() -> str | None:
    if shutil.which("kubectl") is None:
        return "kubectl is not on the PATH"
    if not os.environ.get("KUBECONFIG", "").endswith("/gpuwatch-kubernetes/kubeconfig"):
        return "KUBECONFIG is not that of .ci/kubernetes"  # no test touches another cluster
    command = ["kubectl", "get", "--raw=/readyz", "--request-timeout=10s"]
    done = subprocess.run(command, capture_output=True, check=False)
    return "the API server does not answer" if done.returncode else None


_CHECKS: dict[str, Callable[[], str | None]] = {
    "docker": _docker,
    "apptainer": _apptainer,
    "charliecloud": _charliecloud,
    "ssh": _ssh,
    "slurm": _slurm,
    "kubernetes": _kubernetes,
}
ENGINES = tuple(_CHECKS)


@cache
def why_not(engine: str) -> str | None:
    """Why tests with this engine cannot run here, and the hint; ``None``: they can."""
    reason = _CHECKS[engine]()
    return reason and f'{engine}: {reason}; as root: eval "$(.ci/engines)"'


def required() -> list[str]:
    """The engines that must be there.

    Raises:
        ValueError: an unknown name.
    """
    names = [name for name in os.environ.get(REQUIRED, "").split(",") if name]
    if unknown := set(names) - set(ENGINES):
        raise ValueError(f"{REQUIRED} names {', '.join(sorted(unknown))}; known: {ENGINES}")
    return names
