"""Build the workloads' image for Apptainer, from ``recipes/workloads.def``."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from gpuwatch.core import paths
from gpuwatch.core.errors import NotAvailable, UsageError
from gpuwatch.core.text import to_paste
from gpuwatch.runners import image_records
from gpuwatch.runners.apptainer import images, spython_client
from gpuwatch.runners.image_records import BuildFailed, BuiltImage, Progress, default_base, recipes

COMPRESSIONS = {
    "gzip": "-comp gzip",
    "lz4": "-comp lz4",
    "zstd": "-comp zstd",
    "none": "-noI -noD -noF -noX",
}
"""Arguments for ``mksquashfs`` by name; without one, the engine's own configuration applies."""

_PREPARED = "gpuwatch-workloads"
"""Title of images from the Docker recipe, which need no preparation."""

_NOT_ALL = "this root user lacks capabilities that the engine needs"
_HAVE_ALL = "a user namespace has them: unshare --map-root-user gpuwatch build apptainer ..."
_CAP_SYS_ADMIN = 21
"""Source: linux/capability.h."""

_LEAST = {"Apptainer": (1, 2), "SingularityCE": (4, 0), "SingularityPRO": (4, 1)}
"""The first versions whose definition files take arguments."""
_LAST_WORDS = 40


@dataclass(frozen=True)
class BaseImage:
    """The origin of an image, in the terms of a definition file."""

    bootstrap: str
    source: str

    @property
    def remote(self) -> bool:
        return self.bootstrap in ("docker", "library", "oras", "shub")


def default_out() -> Path:
    """The SIF file used by runs that name no image."""
    return image_records.images_home() / "workloads.sif"


def build(
    base: str | None,
    out: Path | None,
    progress: Progress,
    *,
    pull: bool = False,
    compression: str | None = None,
) -> BuiltImage:
    """Build the SIF file ``out`` on ``base`` and record the cost; replaces an old file at the end.

    An interrupt ends the engine and removes its unfinished files.

    Raises:
        NotAvailable: the engine, the root rights or the base is missing, and may not be fetched.
        UsageError: ``out`` is not writable, or is not an image.
        BuildFailed: the engine failed.
    """
    _check_engine()
    origin = parse(base or default_base())
    docker = _docker(origin)
    _check_base(origin, pull)
    target = _target(out)
    options = []
    definition = f"{origin.bootstrap}:{origin.source}"
    if docker is None or not docker.prepared:
        _check_root()
        definition = str(recipes() / "workloads.def")
        build_arguments = {
            "BOOTSTRAP": origin.bootstrap,
            "BASE": origin.source,
            "RECIPES": str(recipes()),
        }
        options += [
            word for pair in build_arguments.items() for word in ("--build-arg", "=".join(pair))
        ]
    if not origin.remote:  # otherwise a copy of the base stays in the engine's cache
        options.append("--disable-cache")
    if compression is not None:
        options += ["--mksquashfs-args", COMPRESSIONS[compression]]

    last_lines: deque[str] = deque(maxlen=_LAST_WORDS)

    def say(line: str) -> None:
        last_lines.append(line)
        level, _, text = line.partition(":")
        if line.startswith("INFO:    Build complete"):
            return  # it names the temporary file
        if level == "INFO":
            progress.step(text.strip())
        else:
            progress.line(line)

    started = time.monotonic()
    try:
        with _workplace(docker.host if docker else None):
            spython_client.build(definition, target, say, options)
    except NotAvailable as error:
        raise _failed(error.message, last_lines, target) from error
    seconds = time.monotonic() - started
    size = target.stat().st_size
    header = images.read_header(target)
    if header is None:
        raise BuildFailed(f"{target} is not a SIF file", "see the engine's output above")
    image_records.remember(
        header.id, "build", seconds, bytes=size, base=f"{origin.bootstrap}:{origin.source}"
    )
    return BuiltImage(str(target), header.id, seconds, size)


def parse(base: str) -> BaseImage:
    """Parse ``--base``: a SIF file or folder, ``docker-daemon:NAME``, ``docker-archive:FILE``, or a
    registry's image, with or without ``docker://``."""
    scheme, separator, rest = base.partition("://")
    if separator:
        return BaseImage(scheme, rest)
    kind, _, rest = base.partition(":")
    if kind == "docker-daemon":
        tagged = ":" in rest.rpartition("/")[2] or "@" in rest
        return BaseImage(kind, rest if tagged else f"{rest}:latest")
    if kind in ("docker-archive", "oci", "oci-archive"):
        return BaseImage(kind, os.path.abspath(os.path.expanduser(rest)))
    path = Path(base).expanduser()
    if path.exists() or base.endswith(".sif") or base.startswith((".", "/", "~")):
        return BaseImage("localimage", str(path.absolute()))
    return BaseImage("docker", base)


def _check_engine() -> None:
    engine = spython_client.product_and_version()
    if engine is None:
        raise NotAvailable(
            "neither apptainer nor singularity is on the PATH, or it does not run",
            spython_client.INSTALL,
        )
    product, version = engine
    least = _LEAST.get(product, (4, 0))
    if tuple(int(part) for part in version.split(".")[:2]) < least:
        raise NotAvailable(
            f"{product} {version} takes no arguments for definition files",
            "build with Apptainer 1.2 or SingularityCE 4.0 or later, or elsewhere; "
            "it can run the SIF file",
        )


def _check_root() -> None:
    """Refuse a root user with only part of the capabilities: the engine would give up after
    unpacking the base. Without CAP_SYS_ADMIN it uses a user namespace, which has them all."""
    if os.geteuid() != 0:
        return
    # A program executed by root gets every capability in the bounding set.
    status = Path("/proc/self/status").read_text()
    match = re.search(r"^CapBnd:\s*([0-9a-f]+)$", status, re.MULTILINE)
    last = int(Path("/proc/sys/kernel/cap_last_cap").read_text())
    bounding, all_capabilities = int(match[1], 16) if match else 0, (2 << last) - 1
    if bounding & (1 << _CAP_SYS_ADMIN) and all_capabilities & ~bounding:
        raise NotAvailable(f"the image cannot be prepared: {_NOT_ALL}", _HAVE_ALL)


@dataclass(frozen=True)
class _InDocker:
    """A base image in Docker."""

    host: str
    """Address of its daemon."""
    prepared: bool


def _docker(origin: BaseImage) -> _InDocker | None:
    """The base as Docker knows it; ``None`` if it comes from elsewhere."""
    if origin.bootstrap != "docker-daemon":
        return None
    from gpuwatch.runners.docker import images as docker_images
    from gpuwatch.runners.docker.client import connect

    daemon = connect()
    with daemon.asked() as api:
        image = docker_images.find(api, origin.source)
    if image is None:
        raise NotAvailable(
            f"Docker has no image {origin.source} here to build on",
            f"{to_paste('build docker --tag', origin.source)}, or name another: --base",
        )
    labels = (image.get("Config") or {}).get("Labels") or {}
    return _InDocker(daemon.url, labels.get("org.opencontainers.image.title") == _PREPARED)


def _check_base(origin: BaseImage, pull: bool) -> None:
    if origin.remote and not pull:
        raise NotAvailable(
            f"the base {origin.source} would have to be fetched",
            "let gpuwatch fetch it: add --pull; or name one that is here: "
            "--base docker-daemon:NAME:TAG, --base FILE.sif",
        )
    local = not origin.remote and origin.bootstrap != "docker-daemon"
    if local and not Path(origin.source.partition(":")[0]).exists():
        raise NotAvailable(f"there is no {origin.source} to build on", "name another: --base")


def _target(out: Path | None) -> Path:
    if out is None:
        paths.private_folder(image_records.images_home())
    target = (out or default_out()).expanduser().absolute()
    if not os.access(target.parent, os.W_OK):
        raise UsageError(
            f"{target.parent} is not a writable folder", "name another: --out FILE.sif"
        )
    if target.exists() and (target.is_dir() or images.read_header(target) is None):
        raise UsageError(f"{target} exists and is not a SIF file", "name another: --out FILE.sif")
    return target


@contextlib.contextmanager
def _workplace(docker_host: str | None) -> Iterator[None]:
    """A folder for the engine's own files; removed at the end."""
    before = dict(os.environ)
    parent = before.get("APPTAINER_TMPDIR") or before.get("SINGULARITY_TMPDIR")
    with tempfile.TemporaryDirectory(
        prefix="gpuwatch-build-", dir=parent, ignore_cleanup_errors=True
    ) as folder:
        os.environ.update(APPTAINER_TMPDIR=folder, SINGULARITY_TMPDIR=folder)
        if docker_host is not None:
            os.environ["DOCKER_HOST"] = docker_host
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)


def _failed(reason: str, last_lines: Iterable[str], target: Path) -> BuildFailed:
    """The failure, explained by the last output of the engine and of the image's scripts."""
    text = "\n".join([*last_lines, reason])
    if "no space left" in text.lower():
        where = os.environ.get("APPTAINER_TMPDIR") or tempfile.gettempdir()
        return BuildFailed(
            f"the image could not be built: the disk with {where} or {target.parent} is full",
            "free some space, or: export APPTAINER_TMPDIR=FOLDER, --out FILE.sif",
        )
    if "Requesting capability set" in text:
        return BuildFailed(f"the image could not be built: {_NOT_ALL}", _HAVE_ALL)
    own_errors = re.findall(r"^error: (.+)", text, re.MULTILINE)
    return BuildFailed(f"the image could not be built: {own_errors[-1] if own_errors else reason}")
