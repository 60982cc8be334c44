"""Docker images of a registry: pushing one, and whether one is only here."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterable, Mapping

from docker.auth import resolve_repository_name
from docker.errors import DockerException
from docker.utils import parse_repository_tag

from gpuwatch.core.errors import NotAvailable, UsageError
from gpuwatch.core.models import JSON, Problem
from gpuwatch.core.text import shell
from gpuwatch.core.units import counted
from gpuwatch.runners.docker import images
from gpuwatch.runners.docker.client import AWAY, Daemon, connect, one_line

_TELL_SECONDS = 3.0
_SILENCE_SECONDS = 300.0
_WANTS_LOGIN = re.compile(r"denied|unauthorized|authentication required|no basic auth", re.I)


def check_target(name: str) -> None:
    """
    Raises:
        UsageError: ``name`` is not that of a repository in a registry, with or without a tag.
    """
    repository, tag = parse_repository_tag(name)
    if "/" not in repository:
        raise UsageError(
            f"{name} names no registry to push to",
            f"write REGISTRY/NAME, such as --push ghcr.io/me/{name}; "
            f"docker.io/me/{name} is Docker Hub's",
        )
    if tag is not None and ":" in tag:
        raise UsageError(f"{name} has a digest, which only the registry gives", "write a tag")


def push(daemon: Daemon, image: str, target: str, say: Callable[[str], None]) -> str:
    """Name ``image`` also ``target`` and push that; returns it with the registry's digest,
    ``REGISTRY/NAME@sha256:...``.

    Raises:
        NotAvailable: the registry does not take it, or does not answer.
    """
    repository, tag = parse_repository_tag(target)
    tag = tag or "latest"
    say(f"pushing {target}")
    try:
        with daemon.client(timeout=_SILENCE_SECONDS) as api:
            api.tag(image, repository, tag)
            messages = api.push(repository, tag, stream=True, decode=True)
            digest = _follow(target, messages, say)
    except AWAY as error:
        raise _failed(image, target, one_line(error)) from error
    if digest is None:
        raise _failed(image, target, "the registry reported no digest")
    return f"{repository}@{digest}"


def _follow(
    target: str, messages: Iterable[Mapping[str, JSON]], say: Callable[[str], None]
) -> str | None:
    """Report a push every few seconds; returns the digest. Raises ``DockerException`` with the
    daemon's reason."""
    digest = None
    layers: set[str] = set()
    there: set[str] = set()
    reported_at = time.monotonic()
    for message in messages:
        if reason := message.get("error"):
            raise DockerException(reason)
        if told := (message.get("aux") or {}).get("Digest"):
            digest = str(told)
        layer, status = str(message.get("id") or ""), str(message.get("status") or "")
        if status == "Preparing":
            layers.add(layer)
        elif status.startswith(("Pushed", "Layer already exists", "Mounted from")):
            there.add(layer)
        if layers and time.monotonic() - reported_at > _TELL_SECONDS:
            reported_at = time.monotonic()
            say(f"pushing {target}: {len(there & layers)} of {counted(len(layers), 'layer')} there")
    return digest


def _failed(image: str, target: str, reason: str) -> NotAvailable:
    registry = resolve_repository_name(parse_repository_tag(target)[0])[0]
    login = f"docker login {shell(registry)}"
    help_ = login if _WANTS_LOGIN.search(reason) else f"check its name, {login}, and the network"
    return NotAvailable(
        f"{image} was built, but {target} could not be pushed: {reason}",
        f"{help_}; then repeat this command, which has the image in its cache",
    )


def only_here(image: str) -> Problem | None:
    """The problem that Docker has ``image`` and knows of no registry that has it, so that another
    machine cannot fetch it. ``None`` also where Docker cannot be asked, and where its images have
    digests before they are pushed, as with containerd's image store and in Podman."""
    with contextlib.suppress(NotAvailable, *AWAY):
        with connect().client() as api:
            found = images.find(api, image)
        repository = parse_repository_tag(image)[0]
        known = [str(name).partition("@")[0] for name in (found or {}).get("RepoDigests") or ()]
        if found is None or _normal(repository) in map(_normal, known):
            return None
        if repository == images.DEFAULT_IMAGE:
            fix = "gpuwatch build docker --push REGISTRY/NAME"
        else:
            fix = f"gpuwatch build docker --base {shell(image)} --push REGISTRY/NAME"
        return Problem(
            "image-only-here",
            f"Docker has the image {image} here, and no registry that it knows of has it: a node "
            "without it cannot fetch it",
            f"{fix} (of one without torch: docker tag, docker push), then name REGISTRY/NAME",
        )
    return None


def _normal(repository: str) -> tuple[str, str]:
    """The registry and the name in it: ``python`` is ``docker.io/library/python``."""
    registry, name = resolve_repository_name(repository)
    return registry, name.removeprefix("library/")
