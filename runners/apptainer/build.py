"""Build the workloads' image for Apptainer, from ``recipes/workloads.def``."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gpuwatch import paths
from gpuwatch.errors import NotAvailable, UsageError
from gpuwatch.runners import image_records
from gpuwatch.runners.apptainer import spython_client
from gpuwatch.runners.building import BuildFailed, Built, Progress, default_base, recipes

COMPRESSIONS = {
    "gzip": "-comp gzip",
    "lz4": "-comp lz4",
    "zstd": "-comp zstd",
    "none": "-noI -noD -noF -noX",
}
"""By name, what ``mksquashfs`` is told; without one the engine does as it is set up."""

_SIF_MAGIC = slice(32, 41), b"SIF_MAGIC"
_LEAST = {"Apptainer": (1, 2), "SingularityCE": (4, 0), "SingularityPRO": (4, 1)}
"""The versions from which definition files take arguments."""
_GRACE_SECONDS = 5.0


@dataclass(frozen=True)
class Base:
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
) -> Built:
    """Build the SIF file ``out`` on ``base`` and note what it cost; an old one is there until then.

    An interrupt ends the engine and removes what it was at.

    Raises:
        NotAvailable: there is no engine that can, or no base and it may not be fetched.
        UsageError: ``out`` cannot be written, or is something else than an image.
        BuildFailed: the engine failed.
    """
    _check_engine()
    origin = parse(base or default_base())
    docker_host = _check_base(origin, pull)
    target = _target(out)
    options = ["--build-arg", f"BOOTSTRAP={origin.bootstrap}", "--build-arg"]
    options += [f"BASE={origin.source}", "--build-arg", f"RECIPES={recipes()}"]
    if not origin.remote:  # else a copy of the base would stay in the engine's cache
        options.append("--disable-cache")
    if compression is not None:
        options += ["--mksquashfs-args", COMPRESSIONS[compression]]

    def say(line: str) -> None:
        level, _, text = line.partition(":")
        if level == "INFO":
            progress.step(text.strip())
        else:
            progress.line(line)

    started = time.monotonic()
    try:
        with _workplace(docker_host):
            spython_client.build(recipes() / "workloads.def", target, say, options)
    except NotAvailable as error:
        raise _failed(error.message, target) from error
    finally:
        _part(target).unlink(missing_ok=True)
    seconds = time.monotonic() - started
    size = target.stat().st_size
    image_records.remember(
        str(target), "build", seconds, bytes=size, base=f"{origin.bootstrap}:{origin.source}"
    )
    return Built(str(target), None, seconds, size)


def parse(base: str) -> Base:
    """``--base``: a SIF or folder, ``docker-daemon:NAME``, ``docker-archive:FILE``, or an image of
    a registry, with ``docker://`` or without."""
    scheme, separator, rest = base.partition("://")
    if separator:
        return Base(scheme, rest)
    kind, _, rest = base.partition(":")
    if kind == "docker-daemon":
        tagged = ":" in rest.rpartition("/")[2] or "@" in rest
        return Base(kind, rest if tagged else f"{rest}:latest")
    if kind in ("docker-archive", "oci", "oci-archive"):
        return Base(kind, os.path.abspath(os.path.expanduser(rest)))
    path = Path(base).expanduser()
    if path.exists() or base.endswith(".sif") or base.startswith((".", "/", "~")):
        return Base("localimage", str(path.absolute()))
    return Base("docker", base)


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


def _check_base(origin: Base, pull: bool) -> str | None:
    """Whether the base is there; returns where Docker's daemon is if it comes from there."""
    if origin.remote and not pull:
        raise NotAvailable(
            f"the base {origin.source} would have to be fetched",
            "let gpuwatch fetch it: add --pull; or name one that is here: "
            "--base docker-daemon:NAME:TAG, --base FILE.sif",
        )
    if origin.bootstrap == "docker-daemon":
        from gpuwatch.runners.docker import images
        from gpuwatch.runners.docker.client import connect

        daemon = connect()
        with daemon.client() as api:
            if images.find(api, origin.source) is None:
                raise NotAvailable(
                    f"Docker has no image {origin.source} here to build on",
                    f"gpuwatch build docker --tag {origin.source}, or name another: --base",
                )
        return daemon.url
    if not origin.remote and not Path(origin.source.partition(":")[0]).exists():
        raise NotAvailable(f"there is no {origin.source} to build on", "name another: --base")
    return None


def _target(out: Path | None) -> Path:
    if out is None:
        paths.private_folder(image_records.images_home())
    target = (out or default_out()).expanduser().absolute()
    if not os.access(target.parent, os.W_OK):
        raise UsageError(
            f"{target.parent} is no folder that can be written to", "name another: --out FILE.sif"
        )
    if target.exists() and not _is_sif(target):
        raise UsageError(f"{target} is there and is no SIF file", "name another: --out FILE.sif")
    return target


def _is_sif(path: Path) -> bool:
    where, magic = _SIF_MAGIC
    try:
        with path.open("rb") as file:
            return file.read(where.stop)[where] == magic
    except OSError:
        return False


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


def _failed(reason: str, target: Path) -> BuildFailed:
    if "no space left" in reason.lower():
        where = os.environ.get("APPTAINER_TMPDIR") or tempfile.gettempdir()
        return BuildFailed(
            f"the image could not be built: the disk with {where} or {target.parent} is full",
            "free some space, or: export APPTAINER_TMPDIR=FOLDER, --out FILE.sif",
        )
    return BuildFailed(f"the image could not be built: {reason}")
