"""Images: found in the daemon, described, fetched when that was asked for."""

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
from gpuwatch.runners import image_records
from gpuwatch.runners.docker.client import AWAY, Daemon, Refused, one_line

DEFAULT_IMAGE = "gpuwatch-workloads"
"""What ``gpuwatch build docker`` makes, used where no image is named."""

_TELL_SECONDS = 3.0
"""Between two lines on a pull's progress."""

_PULL_SILENCE_SECONDS = 300.0


_PATH = re.compile(r"[/.~]")
_FOREIGN = re.compile(r"docker-daemon:(//)?|docker://")
"""What other engines write before the name of one of Docker's images."""


class InvalidImageName(Refused):
    """What was given is no name of an image."""


def reference(environment: Environment) -> str:
    return environment.image or DEFAULT_IMAGE


def find(api: docker.APIClient, image: str) -> dict[str, JSON] | None:
    """What the daemon knows of an image that it has.

    Raises:
        Misnamed: the name cannot be one of an image.
        DockerException, OSError: the daemon does not answer.
    """
    if _PATH.match(image):  # some daemons would take /NAME for NAME
        raise InvalidImageName(
            Problem(
                "image-invalid",
                f"{image} is a path, and Docker runs images by name",
                "name one that `docker image ls` lists; a folder is for --env apptainer=DIR or "
                "charliecloud=DIR",
            )
        )
    try:
        found: dict[str, JSON] = api.inspect_image(image)
    except ImageNotFound:
        return None
    except APIError as error:
        if error.status_code != 400:
            raise
        raise InvalidImageName(_misnamed(image, one_line(error))) from None
    return found


def facts(image: str, found: Mapping[str, JSON]) -> dict[str, JSON]:
    """What a session says of its image; the digest is a registry's, ``None`` if none gave it."""
    layers = (found.get("RootFS") or {}).get("Layers")
    return {
        "image": image,
        "image_id": found["Id"],
        "image_digest": _digest(image, found.get("RepoDigests") or ()),
        "image_bytes": found.get("Size"),
        "image_layers": None if layers is None else len(layers),
        **image_records.recall(str(found["Id"])),
    }


def missing(environment: Environment) -> Problem:
    """There is no such image here; none is fetched silently."""
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


def _misnamed(image: str, said: str) -> Problem:
    why = said.rpartition("invalid reference format")[2].strip(": ")
    name = _FOREIGN.sub("", image, count=1)
    if name != image:
        hint = f"Docker needs no such prefix: write {name}"
    elif image != image.lower():
        hint = f"write {image.lower()}"
    else:
        hint = "write NAME, NAME:TAG or NAME@sha256:..., as `docker image ls` does"
    return Problem(
        "image-invalid", f"{image} is no name of a Docker image" + (f": {why}" if why else ""), hint
    )


def pull(daemon: Daemon, image: str, say: Callable[[str], None]) -> None:
    """Fetch an image and note what it cost.

    Raises:
        NotAvailable: it could not be had.
    """
    repository, tag = parse_repository_tag(image)
    started = time.monotonic()
    say(f"pulling {image}")
    try:
        with daemon.client(timeout=_PULL_SILENCE_SECONDS) as api:
            _follow(image, api.pull(repository, tag or "latest", stream=True, decode=True), say)
            seconds = time.monotonic() - started
            found = find(api, image)
    except AWAY as error:
        raise _failed(image, one_line(error)) from error
    if found is None:
        raise _failed(image, "the daemon does not have it afterwards")
    say(f"pulled {image} in {seconds:.1f} s")
    image_records.remember(str(found["Id"]), "pull", seconds, reference=image)


def _follow(image: str, messages: Iterable[Mapping[str, JSON]], say: Callable[[str], None]) -> None:
    """Tell of a pull every few seconds; raises ``DockerException`` with the daemon's reason."""
    layers: dict[str, tuple[int, int]] = {}
    done: set[str] = set()
    told = time.monotonic()
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
        if layers and time.monotonic() - told > _TELL_SECONDS:
            told = time.monotonic()
            here, size = (sum(column) / 1e6 for column in zip(*layers.values(), strict=True))
            say(
                f"pulling {image}: {here:,.0f} of {size:,.0f} MB, "
                f"{len(done)} of {len(layers.keys() | done)} layers unpacked"
            )


def _failed(image: str, reason: str) -> NotAvailable:
    return NotAvailable(
        f"{image} could not be pulled: {reason}", "check its name, docker login, and the network"
    )


def _digest(image: str, known: Iterable[str]) -> str | None:
    """``sha256:...`` by which the registry that ``image`` names knows it, else any does."""
    repository = parse_repository_tag(image)[0]
    found = dict(each.split("@", 1) for each in known if "@" in each)
    return found.get(repository) or next(iter(found.values()), None)
