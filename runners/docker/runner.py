"""The runner of kind ``docker``."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable
from pathlib import Path

from docker.errors import APIError

from gpuwatch.core.errors import NotAvailable
from gpuwatch.core.models import JSON, LaunchSpec, Prepared, Problem
from gpuwatch.core.processes import identify
from gpuwatch.core.text import shell
from gpuwatch.runners import container_launch
from gpuwatch.runners.base import Run
from gpuwatch.runners.docker import client, container, gpus, images
from gpuwatch.runners.docker.cgroup import holds
from gpuwatch.runners.docker.client import AWAY, Daemon, Refused, has_bridge, one_line
from gpuwatch.runners.docker.run import KIND, DockerRun
from gpuwatch.runners.mounting import unusable

_OWN = {
    *("/bin", "/sbin", "/lib", "/lib64", "/etc", "/dev", "/proc", "/sys"),
    *("/usr", "/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib64"),
}
"""Folders that almost every image needs to start anything."""

_RUNTIMES_OWN = re.compile(r"^failed to create .*unable to start container process: |: unknown$")
"""The text around the reason when the daemon passes on its runtime's error."""

_LEAST_MEMORY = 6 << 20
"""The daemon's minimum limit. Source: moby, daemon/daemon_unix.go, ``linuxMinMemory``."""
_NO_BRIDGE = Problem(
    "network-missing",
    "this Docker daemon has no bridge network: a container on it would have no network at all",
    "write network=host or network=none, or start dockerd without --bridge=none "
    '(in /etc/docker/daemon.json: "bridge": "none")',
)

_START_SECONDS = 120.0
"""The first container of a large image on a cold disk takes a while."""


class DockerRunner:
    kind = KIND
    contained = True

    def __init__(self) -> None:
        self._daemon: Daemon | None = None

    def engine(self) -> str | None:
        try:
            with self._connected().client() as api:
                return client.product(api.version())
        except (*AWAY, Refused):
            return None

    def preflight(self, spec: LaunchSpec) -> list[Problem]:
        environment = spec.environment
        try:
            daemon = client.connect()
            with daemon.client() as api:
                bridged = environment.network != "bridge" or has_bridge(api)
                image, has_image = None, True
                try:
                    has_image = images.find(api, images.reference(environment)) is not None
                except images.InvalidImageName as misnamed:
                    image = misnamed.problem
        except Refused as refused:
            return [refused.problem, *container_launch.problems(spec)]
        except AWAY as error:
            text = f"the Docker daemon does not answer: {one_line(error)}"
            return [Problem("docker-absent", text, "see: docker info")]
        if not has_image and not (environment.pull and environment.image):
            image = images.missing(environment)
        user = container.user(daemon)
        who = f"user {user.uid}:{user.gid}, who has no privileges in the container"
        results = [
            image,
            None if bridged else _NO_BRIDGE,
            _memory(environment.memory_bytes),
            gpus.problem(spec.gpus, daemon.info),
            *container_launch.problems(spec),
            *container_launch.hidden_tmp(spec),
            *(
                problem
                for mount in container_launch.mounts(spec)
                for problem in unusable(mount, user.uid, user.all_groups, who)
            ),
        ]
        return [result for result in results if result is not None]

    def prepare(self, spec: LaunchSpec, say: Callable[[str], None]) -> Prepared:
        environment = spec.environment
        daemon = self._connected()
        image = images.reference(environment)
        with daemon.asked() as api:
            details = images.find(api, image)
            if details is None and environment.pull and environment.image:
                images.pull(daemon, image, say)
                details = images.find(api, image)
        if details is None:
            problem = images.missing(environment)
            raise NotAvailable(problem.text, problem.hint)
        facts: dict[str, JSON] = {
            **images.facts(image, details),
            "python": environment.python,
            "shm_bytes": container.shm_bytes(spec),
            "memory_limit_bytes": environment.memory_bytes,
            "network": container.network(spec),
            "user": container.user(daemon).inside,
            "gpu_request": gpus.request_for(spec.gpus, daemon.info).text,
            "mounts": [str(mount) for mount in container_launch.mounts(spec)],
        }
        variables = {
            **container_launch.variables(spec.variables),
            **container_launch.gpu_variables(spec),
            **gpus.variables(spec.gpus),
            "HOME": container.HOME,
            **environment.variables,
            **container.hook_variables(spec, details["Config"] or {}),
        }
        settings = {
            "host_config": container.host_config(spec, daemon),
            "container": container.arguments(spec, facts["image_id"], variables, daemon),
        }
        command = container_launch.command(spec, container.ARCHIVE)
        return Prepared(command, variables, facts, settings)

    def start(self, spec: LaunchSpec, prepared: Prepared, folder: Path) -> Run:
        daemon = self._connected()
        container.remove_leftovers(daemon, running=False)
        spawned = time.monotonic_ns()
        labels = container.labels(folder, identify(os.getpid()), spawned)
        name = container.name(folder)
        run = DockerRun(daemon, folder, spawned_ns=spawned)
        try:
            with daemon.client(timeout=_START_SECONDS) as api:
                config = api.create_host_config(**prepared.settings["host_config"])
                arguments = prepared.settings["container"]
                api.create_container(name=name, labels=labels, host_config=config, **arguments)
                api.start(name)
                details = api.inspect_container(name)
            run.add_details(details)
            pid = details["State"].get("Pid")
            if pid and run.handle()["holder"] is None and holds(pid, details["Id"]) is False:
                raise NotAvailable(
                    f"the container does not run on this machine: process {pid} is not in it",
                    "use a Docker daemon of this machine",
                )
        except BaseException as error:
            with contextlib.suppress(*AWAY), daemon.client(timeout=_START_SECONDS) as api:
                api.remove_container(name, v=True, force=True)
            if isinstance(error, AWAY):
                raise _not_started(error, spec) from error
            raise
        return run

    def attach(self, handle: dict[str, JSON], cursor: str | None) -> Run:
        return DockerRun.attach(handle, cursor, client.url())

    def sweep(self) -> list[str]:
        try:
            return container.remove_leftovers(client.connect(), running=True)
        except Refused:
            return []

    def _connected(self) -> Daemon:
        """The daemon, asked only once: a runner serves one run."""
        self._daemon = self._daemon or client.connect()
        return self._daemon


def _memory(limit: int | None) -> Problem | None:
    if limit is None or limit >= _LEAST_MEMORY:
        return None
    return Problem(
        "memory-too-small",
        f"Docker's minimum memory limit is {_LEAST_MEMORY >> 20} MiB, memory= gives {limit} bytes",
        f"write memory={_LEAST_MEMORY >> 20}m or more",
    )


def _not_started(error: BaseException, spec: LaunchSpec) -> NotAvailable:
    reason = _RUNTIMES_OWN.sub("", one_line(error))
    hint = "look at the daemon's log and at the options of --env"
    if "could not select device driver" in reason or "nvidia" in reason.lower():
        hint = "check NVIDIA's container toolkit: nvidia-ctk --version, or run with --gpus none"
    elif hiding := [mount for mount in container_launch.mounts(spec) if mount.target in _OWN]:
        hint = (
            f"mount={hiding[0]} hides the image's own {hiding[0].target}: "
            f"mount it elsewhere, such as mount={hiding[0].source}:/mnt"
        )
    elif "docker-init" in reason:
        hint = "install tini (docker-init), which the daemon's own package brings"
    elif isinstance(error, APIError) and error.status_code == 404:
        hint = f"the image is gone: docker pull {shell(images.reference(spec.environment))}"
    return NotAvailable(f"Docker could not start the container: {reason}", hint)
