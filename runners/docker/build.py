"""Build the workloads' image in Docker, from ``recipes/Dockerfile``."""

from __future__ import annotations

import contextlib
import re
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import docker
from docker.errors import DockerException

from gpuwatch.core.errors import NotAvailable
from gpuwatch.core.models import JSON
from gpuwatch.core.text import clean, shell
from gpuwatch.runners import image_records
from gpuwatch.runners.docker import images
from gpuwatch.runners.docker import push as registries
from gpuwatch.runners.docker.client import AWAY, Daemon, connect, has_bridge, one_line
from gpuwatch.runners.image_records import BuildFailed, BuiltImage, Progress, default_base, recipes

_STEP = re.compile(r"Step \d+/\d+ : ")
_NOISE = re.compile(r" ---> (Running in )?[0-9a-f]{12}$|Removing intermediate container ")
_CACHED = "Using cache"
_LAST_WORDS = 20


def build(
    base: str | None,
    tag: str | None,
    progress: Progress,
    *,
    pull: bool = False,
    cache: bool = True,
    push: str | None = None,
) -> BuiltImage:
    """Build ``tag`` on ``base``, each of which has a default, and record the cost; ``push`` is the
    name in a registry to push it to.

    An interrupt ends the build, and the daemon then removes its container.

    Raises:
        UsageError: ``push`` names no registry.
        NotAvailable: the daemon or the base is missing, and may not be fetched; an invalid name; or
            the registry does not take it.
        BuildFailed: a step failed, the disk is full, or the daemon went away.
    """
    if push is not None:
        registries.check_target(push)
    daemon = connect()
    base = base or default_base()
    tag = tag or images.DEFAULT_IMAGE
    with daemon.asked() as api:
        image = images.find(api, base)
        for name in filter(None, (tag, push)):
            images.find(api, name)  # validates the name before minutes of building
        # The daemon's default network, or the host's if it has none (--bridge=none).
        network = None if has_bridge(api) else "host"
    if image is None and not pull:
        raise NotAvailable(
            f"Docker has no image {base} here to build on",
            f"docker pull {shell(base)}, or let gpuwatch fetch it: add --pull; "
            "or name another: --base",
        )
    if image is None:
        images.pull(daemon, base, progress.step)
    started = time.monotonic()
    # Without a timeout, because a step can be silent for long.
    client = docker.APIClient(daemon.url, version=daemon.api_version, timeout=None)
    try:
        with contextlib.closing(client) as api:
            messages = api.build(
                path=str(recipes()),
                tag=tag,
                buildargs={"BASE": base},
                network_mode=network,
                nocache=not cache,
                rm=True,
                forcerm=True,
                decode=True,
            )
            cached = _follow(messages, progress, daemon)
            seconds = time.monotonic() - started
            image = images.find(api, tag)
    except AWAY as error:
        raise _failed(one_line(error), daemon) from error
    if image is None:
        raise _failed("the daemon does not have the image afterwards", daemon)
    layers = len((image.get("RootFS") or {}).get("Layers") or ())
    built = BuiltImage(tag, str(image["Id"]), seconds, int(image["Size"]), layers, cached)
    if not cached:
        image_records.remember(
            str(built.id), "build", seconds, layers=layers, bytes=built.bytes, base=base
        )
    if push is not None:
        built = replace(built, pushed=registries.push(daemon, tag, push, progress.step))
    return built


def _follow(messages: Iterable[Mapping[str, JSON]], progress: Progress, daemon: Daemon) -> bool:
    """Report the build; returns whether the last step, and so every step, came from the cache.

    Raises:
        BuildFailed: a step failed; with its last line.
    """
    step, last_lines, cached = "", deque[str](maxlen=_LAST_WORDS), False
    for message in _stream(messages):
        if reason := message.get("error"):
            raise _failed(str(reason), daemon, step, last_lines)
        for raw in str(message.get("stream") or "").splitlines():
            line = clean(raw).rstrip()  # standard error of a step is coloured
            if _STEP.match(line):
                step, cached = line, False
                last_lines.clear()
                progress.step(" ".join(line.split()))
            elif line and not _NOISE.match(line):
                cached = cached or _CACHED in line
                last_lines.append(line)
                progress.line(line.strip())
    return cached


def _stream(messages: Iterable[Mapping[str, JSON]]) -> Iterator[Mapping[str, JSON]]:
    """The messages; the SDK lets errors of urllib3 through, which are not its own."""
    try:
        yield from messages
    except Exception as error:
        raise DockerException(f"the Docker daemon went away: {one_line(error)}") from error


def _failed(reason: str, daemon: Daemon, step: str = "", output: Iterable[str] = ()) -> BuildFailed:
    last_lines = list(output)
    if "no space left" in f"{reason} {' '.join(last_lines)}".lower():
        place = daemon.info.get("DockerRootDir")
        return BuildFailed(
            f"the image could not be built: the disk with {place} is full",
            "docker system df shows what uses it, docker image prune frees some",
        )
    cause = (
        last_lines[-1].strip().removeprefix("error: ") if last_lines else " ".join(reason.split())
    )
    where = f" in {step.partition(' : ')[0].lower()}" if step else ""
    return BuildFailed(f"the image could not be built{where}: {cause}")
