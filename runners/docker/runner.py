"""The runner of kind ``docker``."""

from __future__ import annotations

import contextlib
import os
import shlex
import time
from collections.abc import Callable
from pathlib import Path

from docker.errors import APIError

from gpuwatch.errors import GpuwatchError, NotAvailable
from gpuwatch.models import JSON, LaunchSpec, Mount, Prepared, Problem
from gpuwatch.processes import identify
from gpuwatch.runners import inside
from gpuwatch.runners.access import permitted, unreadable
from gpuwatch.runners.base import Run
from gpuwatch.runners.docker import client, container, gpus, images, leftovers
from gpuwatch.runners.docker.cgroup import holds
from gpuwatch.runners.docker.client import AWAY, Daemon, Refused, one_line
from gpuwatch.runners.docker.run import KIND, DockerRun

_START_SECONDS = 120.0
"""A first container of a large image on a cold disk takes its time."""


class DockerRunner:
    kind = KIND
    contained = True

    def engine(self) -> str | None:
        try:
            with client.connect().client() as api:
                return client.product(api.version())
        except (*AWAY, Refused):
            return None

    def preflight(self, spec: LaunchSpec) -> list[Problem]:
        try:
            daemon = client.connect()
            with daemon.client() as api:
                found = images.find(api, images.reference(spec.environment))
        except Refused as refused:
            return [refused.problem, *inside.problems(spec)]
        except AWAY as error:
            text = f"the Docker daemon gives no answer: {one_line(error)}"
            return [Problem("docker-absent", text, "see what ails it: docker info")]
        problems = []
        if found is None and not (spec.environment.pull and spec.environment.image):
            problems.append(images.missing(spec.environment))
        if problem := gpus.problem(spec.gpus, daemon.info):
            problems.append(problem)
        problems.extend(inside.problems(spec))
        who = container.user(daemon)
        for mount in inside.mounts(spec):
            problems.extend(_access_problems(mount, who))
        return problems

    def prepare(self, spec: LaunchSpec, say: Callable[[str], None]) -> Prepared:
        environment = spec.environment
        daemon = client.connect()
        image = images.reference(environment)
        try:
            with daemon.client() as api:
                found = images.find(api, image)
                if found is None and environment.pull and environment.image:
                    images.pull(daemon, image, say)
                    found = images.find(api, image)
        except AWAY as error:
            raise NotAvailable(f"the Docker daemon gives no answer: {one_line(error)}") from error
        if found is None:
            problem = images.missing(environment)
            raise NotAvailable(problem.text, problem.fix)
        facts: dict[str, JSON] = {
            **images.facts(image, found),
            "python": environment.python,
            "shm_bytes": container.shm_bytes(spec),
            "memory_limit_bytes": environment.memory_bytes,
            "network": container.network(spec),
            "user": container.user(daemon).inside,
            "gpu_request": gpus.gift(spec.gpus, daemon.info).text,
            "mounts": [str(mount) for mount in inside.mounts(spec)],
        }
        variables = {
            **inside.variables(spec.variables),
            **gpus.variables(spec.gpus),
            "HOME": container.HOME,
        }
        return Prepared(inside.command(spec, container.ARCHIVE), variables, facts)

    def start(self, spec: LaunchSpec, prepared: Prepared, folder: Path) -> Run:
        daemon = client.connect()
        leftovers.remove(daemon, running=False)
        spawned = time.monotonic_ns()
        labels = container.labels(folder, identify(os.getpid()), spawned)
        name = container.name(folder)
        run = DockerRun(daemon, folder, spawned_ns=spawned)
        try:
            with daemon.client(timeout=_START_SECONDS) as api:
                config = api.create_host_config(**container.host_config(spec, daemon))
                arguments = container.arguments(spec, prepared, daemon, labels)
                api.create_container(name=name, host_config=config, **arguments)
                api.start(name)
                found = api.inspect_container(name)
            run.learn(found)
            pid = found["State"].get("Pid")
            if pid and run.handle()["holder"] is None and holds(pid, found["Id"]) is False:
                raise NotAvailable(
                    f"the container does not run on this machine: process {pid} is not in it",
                    "use a Docker daemon of this machine",
                )
        except BaseException as error:
            _remove(daemon, name)
            if isinstance(error, AWAY):
                raise _not_started(error, spec) from error
            raise
        return run

    def attach(self, handle: dict[str, JSON], cursor: str | None) -> Run:
        return DockerRun.attach(handle, cursor, client.url())

    def sweep(self) -> list[str]:
        try:
            return leftovers.remove(client.connect(), running=True)
        except Refused:
            return []


def _access_problems(mount: Mount, who: container.User) -> list[Problem]:
    """Why the workload's user, who has no capabilities, could not use what is mounted."""
    source = Path(mount.source)
    you = f"user {who.uid}:{who.gid}, who has no privileges in the container"
    if (entry := unreadable(source, who.uid, who.all_groups)) is not None:
        fix = f"chmod -R o+rX {shlex.quote(mount.source)}, or run as its owner"
        return [Problem("mount-unreadable", f"{entry} cannot be read by {you}", fix)]
    with contextlib.suppress(OSError):
        wanted = 3 if source.is_dir() else 2
        if mount.writable and not permitted(source.stat(), who.uid, who.all_groups, wanted):
            fix = f"chmod o+w {shlex.quote(mount.source)}, or mount it without :rw"
            return [Problem("mount-unwritable", f"{source} cannot be written by {you}", fix)]
    return []


def _remove(daemon: Daemon, name: str) -> None:
    with contextlib.suppress(*AWAY), daemon.client(timeout=_START_SECONDS) as api:
        api.remove_container(name, v=True, force=True)


def _not_started(error: BaseException, spec: LaunchSpec) -> GpuwatchError:
    reason = one_line(error)
    mend = "look at the daemon's log and at the options of --env"
    if "could not select device driver" in reason or "nvidia" in reason.lower():
        mend = "check NVIDIA's container toolkit: nvidia-ctk --version, or run with --gpus none"
    elif "docker-init" in reason:
        mend = "install tini (docker-init), which the daemon's own package brings"
    elif isinstance(error, APIError) and error.status_code == 404:
        mend = f"the image is gone: docker pull {images.reference(spec.environment)}"
    return GpuwatchError(f"Docker could not start the container: {reason}", mend)
