"""Build the workloads' image for Apptainer, from ``recipes/workloads.def``."""

from __future__ import annotations

import contextlib
import os
import re
import signal
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
from gpuwatch.runners.image_build import BuildFailed, BuiltImage, Progress, default_base, recipes

COMPRESSIONS = {
    "gzip": "-comp gzip",
    "lz4": "-comp lz4",
    "zstd": "-comp zstd",
    "none": "-noI -noD -noF -noX",
}
"""By name, what ``mksquashfs`` is told; without one the engine does as it is set up."""

_PREPARED = "gpuwatch-workloads"
"""The title of an image that the recipe for Docker made: it needs no preparing."""

_NOT_ALL = "this root lacks capabilities that the engine wants"
_HAVE_ALL = "a user namespace has them: unshare --map-root-user gpuwatch build apptainer ..."
_CAP_SYS_ADMIN = 21
"""Source: linux/capability.h."""

_LEAST = {"Apptainer": (1, 2), "SingularityCE": (4, 0), "SingularityPRO": (4, 1)}
"""The versions from which definition files take arguments."""
_LAST_WORDS = 40
_GRACE_SECONDS = 5.0


@dataclass(frozen=True)
class BaseImage:
    """Where an image comes from, in the words of a definition file."""

    bootstrap: str
    source: str

    @property
    def remote(self) -> bool:
        return self.bootstrap in ("docker", "library", "oras", "shub")


def default_out() -> Path:
    """The SIF that runs use where no image is named."""
    return image_records.images_home() / "workloads.sif"


def build(
    base: str | None,
    out: Path | None,
    progress: Progress,
    *,
    pull: bool = False,
    compression: str | None = None,
) -> BuiltImage:
    """Build the SIF file ``out`` on ``base`` and note what it cost; an old one is there until then.

    An interrupt ends the engine and removes what it was at.

    Raises:
        NotAvailable: there is no engine or root that can, or no base and it may not be fetched.
        UsageError: ``out`` cannot be written, or is something else than an image.
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
        given = {"BOOTSTRAP": origin.bootstrap, "BASE": origin.source, "RECIPES": str(recipes())}
        options += [word for pair in given.items() for word in ("--build-arg", "=".join(pair))]
    if not origin.remote:  # else a copy of the base would stay in the engine's cache
        options.append("--disable-cache")
    if compression is not None:
        options += ["--mksquashfs-args", COMPRESSIONS[compression]]

    said: deque[str] = deque(maxlen=_LAST_WORDS)

    def say(line: str) -> None:
        said.append(line)
        level, _, text = line.partition(":")
        if line.startswith("INFO:    Build complete"):
            return  # of a file that is renamed then
        if level == "INFO":
            progress.step(text.strip())
        else:
            progress.line(line)

    started = time.monotonic()
    try:
        with _workplace(docker.host if docker else None):
            spython_client.build(definition, target, say, options)
    except NotAvailable as error:
        raise _failed(error.message, said, target) from error
    finally:
        _part(target).unlink(missing_ok=True)
    seconds = time.monotonic() - started
    size = target.stat().st_size
    header = images.read_header(target)
    if header is None:
        raise BuildFailed(f"{target} is no SIF file", "see what the engine said above")
    image_records.remember(
        header.id, "build", seconds, bytes=size, base=f"{origin.bootstrap}:{origin.source}"
    )
    return BuiltImage(str(target), header.id, seconds, size)


def parse(base: str) -> BaseImage:
    """``--base``: a SIF or folder, ``docker-daemon:NAME``, ``docker-archive:FILE``, or an image of
    a registry, with ``docker://`` or without."""
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
    found = spython_client.product_and_version()
    if found is None:
        raise NotAvailable(
            "neither apptainer nor singularity is on the PATH, or it does not run",
            spython_client.INSTALL,
        )
    product, version = found
    least = _LEAST.get(product, (4, 0))
    if tuple(int(part) for part in version.split(".")[:2]) < least:
        raise NotAvailable(
            f"{product} {version} takes no arguments for definition files",
            "build with Apptainer 1.2 or SingularityCE 4.0 or later, or elsewhere; "
            "it can run the SIF file",
        )


def _check_root() -> None:
    """What prepares a base runs with every capability, or the engine gives up once it has unpacked
    the base. Without CAP_SYS_ADMIN it takes a user namespace of its own, which has them all."""
    if os.geteuid() != 0:
        return
    # Of root: what it executes gets all that the bounding set leaves.
    status = Path("/proc/self/status").read_text()
    found = re.search(r"^CapBnd:\s*([0-9a-f]+)$", status, re.MULTILINE)
    last = int(Path("/proc/sys/kernel/cap_last_cap").read_text())
    given, every = int(found[1], 16) if found else 0, (2 << last) - 1
    if given & (1 << _CAP_SYS_ADMIN) and every & ~given:
        raise NotAvailable(f"the image cannot be prepared: {_NOT_ALL}", _HAVE_ALL)


@dataclass(frozen=True)
class _InDocker:
    """A base that Docker has."""

    host: str
    """Where its daemon is."""
    prepared: bool


def _docker(origin: BaseImage) -> _InDocker | None:
    """The base as Docker knows it; ``None``: it comes from elsewhere."""
    if origin.bootstrap != "docker-daemon":
        return None
    from gpuwatch.runners.docker import images as docker_images
    from gpuwatch.runners.docker.client import AWAY, connect, one_line

    daemon = connect()
    try:
        with daemon.client() as api:
            found = docker_images.find(api, origin.source)
    except AWAY as error:
        raise NotAvailable(f"the Docker daemon does not answer: {one_line(error)}") from error
    if found is None:
        raise NotAvailable(
            f"Docker has no image {origin.source} here to build on",
            f"{to_paste('build docker --tag', origin.source)}, or name another: --base",
        )
    labels = (found.get("Config") or {}).get("Labels") or {}
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
            f"{target.parent} is no folder that can be written to", "name another: --out FILE.sif"
        )
    if target.exists() and (target.is_dir() or images.read_header(target) is None):
        raise UsageError(f"{target} is there and is no SIF file", "name another: --out FILE.sif")
    return target


def _part(target: Path) -> Path:
    """What the engine writes before it is whole."""
    return target.with_name(f"{target.name}.part")


@contextlib.contextmanager
def _workplace(docker_host: str | None) -> Iterator[None]:
    """A folder for the engine's own files that is gone afterwards, and so is the engine."""
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
            _end_descendants()


def _end_descendants() -> None:
    """End what an interrupted build left running: the engine is this process's only child."""
    deadline = time.monotonic() + _GRACE_SECONDS
    signals = [signal.SIGTERM]
    while left := _descendants(os.getpid()):
        if time.monotonic() > deadline:
            signals = [signal.SIGKILL]
        for number in signals:
            for pid in left:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
        signals = []
        time.sleep(0.02)


def _descendants(pid: int) -> list[int]:
    """Living processes below this one."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_bytes().rpartition(b")")[2].split()
                if fields[0] not in (b"Z", b"X"):
                    children.setdefault(int(fields[1]), []).append(int(entry.name))
    found = list(children.get(pid, ()))
    for each in found:
        found.extend(children.get(each, ()))
    return found


def _failed(reason: str, said: Iterable[str], target: Path) -> BuildFailed:
    """Why, by the last words of the engine and of what ran in the image."""
    words = "\n".join([*said, reason])
    if "no space left" in words.lower():
        where = os.environ.get("APPTAINER_TMPDIR") or tempfile.gettempdir()
        return BuildFailed(
            f"the image could not be built: the disk with {where} or {target.parent} is full",
            "free some space, or: export APPTAINER_TMPDIR=FOLDER, --out FILE.sif",
        )
    if "Requesting capability set" in words:
        return BuildFailed(f"the image could not be built: {_NOT_ALL}", _HAVE_ALL)
    of_ours = re.findall(r"^error: (.+)", words, re.MULTILINE)
    return BuildFailed(f"the image could not be built: {of_ours[-1] if of_ours else reason}")
