"""Build the workloads' image in Docker, from ``recipes/Dockerfile``."""

from __future__ import annotations

import contextlib
import re
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping

import docker
from docker.errors import DockerException

from gpuwatch.core.errors import NotAvailable
from gpuwatch.core.models import JSON
from gpuwatch.core.text import clean, shell
from gpuwatch.runners import image_records
from gpuwatch.runners.docker import images
from gpuwatch.runners.docker.client import AWAY, Daemon, connect, has_bridge, one_line
from gpuwatch.runners.image_build import BuildFailed, BuiltImage, Progress, default_base, recipes

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
) -> BuiltImage:
    """Build ``tag`` on ``base``, each of which has a default, and note what it cost.

    An interrupt ends the build; the daemon removes its container then.

    Raises:
        NotAvailable: there is no daemon, or no base and it may not be fetched; a wrong name.
        BuildFailed: a step failed, the disk is full, the daemon went away.
    """
    daemon = connect()
    base = base or default_base()
    tag = tag or images.DEFAULT_IMAGE
    try:
        with daemon.client() as api:
            found = images.find(api, base)
            images.find(api, tag)  # whether it can be a name, before minutes go into it
            # The daemon's usual network; the machine's where it has none (--bridge=none).
            network = None if has_bridge(api) else "host"
    except AWAY as error:
        raise NotAvailable(f"the Docker daemon does not answer: {one_line(error)}") from error
    if found is None and not pull:
        raise NotAvailable(
            f"Docker has no image {base} here to build on",
            f"docker pull {shell(base)}, or let gpuwatch fetch it: add --pull; "
            "or name another: --base",
        )
    if found is None:
        images.pull(daemon, base, progress.step)
    started = time.monotonic()
    # Without a timeout: a step may be silent for as long as it takes.
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
            made = images.find(api, tag)
    except AWAY as error:
        raise _failed(one_line(error), daemon) from error
    if made is None:
        raise _failed("the daemon does not have the image afterwards", daemon)
    layers = len((made.get("RootFS") or {}).get("Layers") or ())
    built = BuiltImage(tag, str(made["Id"]), seconds, int(made["Size"]), layers, cached)
    if not cached:
        image_records.remember(
            str(built.id), "build", seconds, layers=layers, bytes=built.bytes, base=base
        )
    return built


def _follow(messages: Iterable[Mapping[str, JSON]], progress: Progress, daemon: Daemon) -> bool:
    """Tell of the build; returns whether its last step came from the cache: so did all then.

    Raises:
        BuildFailed: a step failed; its last line is told.
    """
    step, said, cached = "", deque[str](maxlen=_LAST_WORDS), False
    for message in _heard(messages):
        if reason := message.get("error"):
            raise _failed(str(reason), daemon, step, said)
        for raw in str(message.get("stream") or "").splitlines():
            line = clean(raw).rstrip()  # what a step writes on its standard error is coloured
            if _STEP.match(line):
                step, cached = line, False
                said.clear()
                progress.step(" ".join(line.split()))
            elif line and not _NOISE.match(line):
                cached = cached or _CACHED in line
                said.append(line)
                progress.line(line.strip())
    return cached


def _heard(messages: Iterable[Mapping[str, JSON]]) -> Iterator[Mapping[str, JSON]]:
    """The messages; the SDK lets errors of urllib3 through, which are none of its own."""
    try:
        yield from messages
    except Exception as error:
        raise DockerException(f"the Docker daemon went away: {one_line(error)}") from error


def _failed(reason: str, daemon: Daemon, step: str = "", said: Iterable[str] = ()) -> BuildFailed:
    told = list(said)
    if "no space left" in f"{reason} {' '.join(told)}".lower():
        place = daemon.info.get("DockerRootDir")
        return BuildFailed(
            f"the image could not be built: the disk with {place} is full",
            "docker system df tells what takes it, docker image prune frees some",
        )
    why = told[-1].strip().removeprefix("error: ") if told else " ".join(reason.split())
    where = f" in {step.partition(' : ')[0].lower()}" if step else ""
    return BuildFailed(f"the image could not be built{where}: {why}")
