"""Docker images: lookup, description, and fetching on request."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping

import docker
from docker.errors import APIError, DockerException, ImageNotFound
from docker.utils import parse_repository_tag

from gpuwatch.core.errors import NotAvailable
from gpuwatch.core.models import JSON, Environment, Problem
from gpuwatch.core.text import shell
from gpuwatch.core.units import counted
from gpuwatch.runners import image_records
from gpuwatch.runners.docker.client import AWAY, Daemon, Refused, one_line

DEFAULT_IMAGE = "gpuwatch-workloads"
"""The image built by ``gpuwatch build docker``; the default."""

_TELL_SECONDS = 3.0
"""Interval between progress lines of a pull."""

_PULL_SILENCE_SECONDS = 300.0


_PATH = re.compile(r"[/.~]")
_FOREIGN = re.compile(r"docker-daemon:(//)?|docker://")
"""Prefixes that other engines put before the name of a Docker image."""


class InvalidImageName(Refused):
    """The text is not a valid image name."""


def reference(environment: Environment) -> str:
    return environment.image or DEFAULT_IMAGE


def find(api: docker.APIClient, image: str) -> dict[str, JSON] | None:
    """The daemon's description of an image; ``None`` if it does not have it.

    Raises:
        InvalidImageName: the text cannot be an image name.
        DockerException, OSError: the daemon does not answer.
    """
    if _PATH.match(image):  # some daemons accept /NAME as NAME
        raise InvalidImageName(
            Problem(
                "image-invalid",
                f"{image} is a path, and Docker runs images by name",
                "name one that `docker image ls` lists; a folder is for --env apptainer=DIR or "
                "charliecloud=DIR",
            )
        )
    try:
        attributes: dict[str, JSON] = api.inspect_image(image)
    except ImageNotFound:
        return None
    except APIError as error:
        if error.status_code != 400:
            raise
        raise InvalidImageName(_misnamed(image, one_line(error))) from None
    return attributes


def facts(image: str, attributes: Mapping[str, JSON]) -> dict[str, JSON]:
    """Facts about an image for a session; the digest is a registry's, or ``None``."""
    layers = (attributes.get("RootFS") or {}).get("Layers")
    return {
        "image": image,
        "image_id": attributes["Id"],
        "image_digest": _digest(image, attributes.get("RepoDigests") or ()),
        "image_bytes": attributes.get("Size"),
        "image_layers": None if layers is None else len(layers),
        **image_records.recall(str(attributes["Id"])),
    }


def missing(environment: Environment) -> Problem:
    """The image is missing; images are never fetched silently."""
    if environment.image is None:
        return Problem(
            "image-missing",
            f"Docker has no image {DEFAULT_IMAGE} here",
            "gpuwatch build docker --pull, or name one that has torch: --env docker=IMAGE",
        )
    image = environment.image
    return Problem(
        "image-missing",
        f"Docker has no image {image} here",
        f"docker pull {shell(image)}, or let gpuwatch fetch it: add --pull",
    )


def _misnamed(image: str, message: str) -> Problem:
    why = message.rpartition("invalid reference format")[2].strip(": ")
    name = _FOREIGN.sub("", image, count=1)
    if name != image:
        hint = f"Docker needs no such prefix: write {name}"
    elif image != image.lower():
        hint = f"write {image.lower()}"
    else:
        hint = "write NAME, NAME:TAG or NAME@sha256:..., as `docker image ls` does"
    return Problem(
        "image-invalid", f"{image} is not a Docker image name" + (f": {why}" if why else ""), hint
    )


def pull(daemon: Daemon, image: str, say: Callable[[str], None]) -> None:
    """Fetch an image and record the cost.

    Raises:
        NotAvailable: it could not be fetched.
    """
    repository, tag = parse_repository_tag(image)
    started = time.monotonic()
    say(f"pulling {image}")
    try:
        with daemon.client(timeout=_PULL_SILENCE_SECONDS) as api:
            _follow(image, api.pull(repository, tag or "latest", stream=True, decode=True), say)
            seconds = time.monotonic() - started
            description = find(api, image)
    except AWAY as error:
        raise _failed(image, one_line(error)) from error
    if description is None:
        raise _failed(image, "the daemon does not have it afterwards")
    say(f"pulled {image} in {seconds:.1f} s")
    image_records.remember(str(description["Id"]), "pull", seconds, reference=image)


def _follow(image: str, messages: Iterable[Mapping[str, JSON]], say: Callable[[str], None]) -> None:
    """Report a pull every few seconds. Raises ``DockerException`` with the daemon's reason."""
    layers: dict[str, tuple[int, int]] = {}
    done: set[str] = set()
    reported_at = time.monotonic()
    for message in messages:
        if reason := message.get("error"):
            raise DockerException(reason)
        layer, status = str(message.get("id") or ""), str(message.get("status") or "")
        if status in ("Pull complete", "Already exists"):
            done.add(layer)
        detail = message.get("progressDetail") or {}
        if status == "Pulling fs layer":
            layers.setdefault(layer, (0, 0))
        elif status == "Downloading" and detail.get("total"):
            layers[layer] = (detail.get("current") or 0, detail["total"])
        if layers and time.monotonic() - reported_at > _TELL_SECONDS:
            reported_at = time.monotonic()
            received, size = (sum(column) / 1e6 for column in zip(*layers.values(), strict=True))
            say(
                f"pulling {image}: {received:,.0f} of {size:,.0f} MB, "
                f"{len(done)} of {counted(len(layers.keys() | done), 'layer')} unpacked"
            )


def _failed(image: str, reason: str) -> NotAvailable:
    return NotAvailable(
        f"{image} could not be pulled: {reason}", "check its name, docker login, and the network"
    )


def _digest(image: str, known: Iterable[str]) -> str | None:
    """The image's ``sha256:...`` in the registry that ``image`` names, else in any."""
    repository = parse_repository_tag(image)[0]
    digests = dict(name.split("@", 1) for name in known if "@" in name)
    return digests.get(repository) or next(iter(digests.values()), None)
