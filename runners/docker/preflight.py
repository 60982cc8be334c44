"""Why a run in Docker cannot start here."""

from __future__ import annotations

from gpuwatch.core.models import LaunchSpec, Problem
from gpuwatch.runners import container_launch
from gpuwatch.runners.docker import client, container, gpus, images
from gpuwatch.runners.docker.client import AWAY, Refused, has_bridge, one_line
from gpuwatch.runners.mounting import unusable

_LEAST_MEMORY = 6 << 20
"""The daemon's minimum limit. Source: moby, daemon/daemon_unix.go, ``linuxMinMemory``."""


def problems(spec: LaunchSpec) -> list[Problem]:
    """Every problem that prevents the run; changes nothing."""
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
        None if bridged else _no_bridge(),
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


def _no_bridge() -> Problem:
    return Problem(
        "network-missing",
        "this Docker daemon has no bridge network: a container on it would have no network at all",
        "write network=host or network=none, or start dockerd without --bridge=none "
        '(in /etc/docker/daemon.json: "bridge": "none")',
    )


def _memory(limit: int | None) -> Problem | None:
    if limit is None or limit >= _LEAST_MEMORY:
        return None
    return Problem(
        "memory-too-small",
        f"Docker's minimum memory limit is {_LEAST_MEMORY >> 20} MiB, memory= gives {limit} bytes",
        f"write memory={_LEAST_MEMORY >> 20}m or more",
    )
