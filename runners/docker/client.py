"""The Docker daemon for a run: found, identified, and refused if it is on another machine."""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import docker
from docker.context import ContextAPI
from docker.errors import DockerException

from gpuwatch.core.errors import NotAvailable
from gpuwatch.core.models import JSON, Problem

ANSWER_SECONDS = 10.0
"""Timeout for an answer of the daemon; starting a container gets more time."""

DEFAULT_URL = "unix:///var/run/docker.sock"

AWAY = (DockerException, OSError, ValueError, AttributeError)
"""Exceptions when the daemon is missing, dies during a call, or another thread closes the client.

Errors of ``requests``, on which the SDK is built, are ``OSError``."""


class Refused(NotAvailable):
    """The daemon cannot be used, for a reason that preflight reports."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.text, problem.hint)
        self.problem = problem


@dataclass(frozen=True)
class Daemon:
    """A daemon of this machine, with its self-description."""

    url: str
    api_version: str | None = None
    """``None`` until the daemon was asked."""
    info: Mapping[str, JSON] = field(default_factory=dict)

    @contextlib.contextmanager
    def client(self, timeout: float = ANSWER_SECONDS) -> Iterator[docker.APIClient]:
        """A separate client, for one thread; ``timeout`` in seconds.

        Raises:
            DockerException, OSError: the daemon does not answer.
        """
        version = self.api_version or "auto"
        api = docker.APIClient(base_url=self.url, version=version, timeout=timeout)
        with contextlib.closing(api):
            yield api

    @contextlib.contextmanager
    def asked(self) -> Iterator[docker.APIClient]:
        """As :meth:`client`, for questions to a daemon that answered a moment ago.

        Raises:
            NotAvailable: it does not answer.
        """
        try:
            with self.client() as api:
                yield api
        except AWAY as error:
            raise NotAvailable(
                f"the Docker daemon does not answer: {one_line(error)}", "see: docker info"
            ) from error

    @property
    def security(self) -> set[str]:
        """The names in entries such as ``name=seccomp,profile=default``."""
        entries = [str(entry) for entry in self.info.get("SecurityOptions") or ()]
        return {entry.partition(",")[0].removeprefix("name=") for entry in entries}


def url(variables: Mapping[str, str] = os.environ) -> str:
    """The daemon's address: ``$DOCKER_HOST``, else the current context, else the default socket."""
    if variables.get("DOCKER_HOST"):
        return variables["DOCKER_HOST"]
    with contextlib.suppress(DockerException, OSError, ValueError, KeyError):
        name = variables.get("DOCKER_CONTEXT")
        context = ContextAPI.get_context(name) if name else ContextAPI.get_current_context()
        if context is not None and context.Host:
            return str(context.Host).replace("http+unix:", "unix:")
    return DEFAULT_URL


def connect() -> Daemon:
    """The daemon, if it answers and is on this machine.

    Raises:
        Refused: it is missing, not accessible, or on another machine.
    """
    where = url()
    if not where.startswith("unix://"):
        raise Refused(_remote(f"the Docker daemon is at {where}, not on a socket of this machine"))
    _try_socket(where)
    try:
        with Daemon(where).client() as api:
            daemon = Daemon(where, api.api_version, api.info())
    except AWAY as error:
        raise Refused(_absent(where, one_line(error))) from None
    if differs := foreign(daemon.info, platform.node(), platform.release()):
        raise Refused(_remote(f"the Docker daemon at {where} runs on another machine: {differs}"))
    if daemon.info.get("CgroupDriver") == "none":
        raise Refused(
            Problem(
                "docker-no-cgroups",
                "this Docker daemon gives containers no control group: usage cannot be measured",
                "rootless Docker needs cgroup v2 and systemd: "
                "https://docs.docker.com/engine/security/rootless/",
            )
        )
    return daemon


def foreign(info: Mapping[str, JSON], host: str, kernel: str) -> str | None:
    """Evidence that a daemon is on another or a virtual machine; ``None`` without any."""
    if info.get("Name") != host:
        return f"its host is {info.get('Name')}, this one is {host}"
    if info.get("KernelVersion") != kernel:
        return f"its kernel is {info.get('KernelVersion')}, this one's is {kernel}"
    return None


def product(version: Mapping[str, JSON]) -> str:
    """Product and version, such as ``Docker 28.1.1``, from the daemon's answer."""
    components: Sequence[Mapping[str, JSON]] = version.get("Components") or ()
    podman = any("podman" in str(component.get("Name", "")).lower() for component in components)
    return f"{'Podman' if podman else 'Docker'} {version.get('Version')}"


def has_bridge(api: docker.APIClient) -> bool:
    """Whether containers can use the daemon's default network, which has another name in Podman.

    Raises:
        DockerException, OSError: the daemon does not answer.
    """
    return not {"bridge", "podman"}.isdisjoint(network["Name"] for network in api.networks())


def one_line(error: BaseException) -> str:
    """The daemon's error message, without line breaks."""
    message = getattr(error, "explanation", None) or error
    return " ".join(str(message).split())


def _try_socket(where: str) -> None:
    path = where.removeprefix("unix://")
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(ANSWER_SECONDS)
        try:
            probe.connect(path)
        except PermissionError:
            raise Refused(
                Problem(
                    "docker-forbidden",
                    f"you may not use the Docker daemon at {path}",
                    "sudo usermod -aG docker $USER, then log in again",
                )
            ) from None
        except OSError as error:
            raise Refused(_absent(where, error.strerror or str(error))) from None


def _absent(where: str, why: str) -> Problem:
    if os.environ.get("DOCKER_HOST"):
        hint = "start it, or correct DOCKER_HOST"
    elif shutil.which("docker"):  # dockerd may be beyond the PATH
        booted = os.path.isdir("/run/systemd/system")  # as sd_booted(3); not in most containers
        hint = "sudo systemctl start docker" if booted else "start it as root: dockerd &"
    else:
        hint = "install Docker: https://docs.docker.com/engine/install/"
    return Problem("docker-absent", f"no Docker daemon answers at {where}: {why}", hint)


def _remote(text: str) -> Problem:
    return Problem(
        "docker-remote",
        f"{text}; telemetry would watch this machine, not that one",
        "run gpuwatch there, or use this machine's daemon: unset DOCKER_HOST DOCKER_CONTEXT; "
        "docker context use default",
    )
