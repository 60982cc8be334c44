"""Apptainer images: where they are, whether they are valid, and what identifies them."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gpuwatch.core import output, paths
from gpuwatch.core.errors import StorageError
from gpuwatch.core.models import JSON, Environment, Problem
from gpuwatch.core.text import shell
from gpuwatch.runners import image_records
from gpuwatch.runners.mounting import is_root

_URI = re.compile(r"(docker|oras|library|shub|https?)://(.+)")
_MAGIC = b"SIF_MAGIC\0"
_MAGIC_AT = 32
"""A SIF file begins with 32 bytes of launch script. Source: github.com/apptainer/sif, header."""
_ARCHITECTURES = {b"02": "x86_64", b"04": "aarch64", b"06": "ppc64le", b"11": "s390x"}
_CHUNK = 1 << 22


@dataclass(frozen=True)
class Image:
    path: Path
    uri: str | None = None
    """The URI, if the image was given as one."""


@dataclass(frozen=True)
class SIF:
    """The header of a SIF file."""

    id: str
    """UUID of this build of the image."""
    architecture: str | None
    """As in ``uname -m``; ``None`` for any other, or for several machines."""


def image_of(environment: Environment, working_directory: str) -> Image:
    """Location of an environment's image; for a URI, where it is stored once pulled."""
    name = environment.image
    if name is None:
        return Image(image_records.images_home() / "workloads.sif")
    if "://" in name:
        return Image(image_records.images_home() / _file_name(name), name)
    return Image(Path(working_directory, os.path.expanduser(name)))


def problem(image: Image, environment: Environment, program: str) -> Problem | None:
    """Why the image cannot run; ``None`` if it can, or may be pulled."""
    if image.uri and not _URI.fullmatch(image.uri):
        return Problem(
            "image-source",
            f"{image.uri} is not a fetchable image",
            "name docker://..., oras://..., library://... or a SIF file",
        )
    if not os.path.exists(image.path):
        return None if image.uri and environment.pull else _missing(image, environment, program)
    if not os.access(image.path, os.R_OK):
        hint = f"ask its owner, or: chmod -R a+rX {shell(image.path)}"
        return Problem("image-unreadable", f"{image.path} cannot be read by you", hint)
    if os.path.isdir(image.path):
        return None if is_root(image.path) else _no_image(image, "a folder without /bin/sh")
    try:
        header = read_header(image.path)
    except OSError as error:
        return _no_image(image, error.strerror or "it cannot be read")
    if header is None:
        return _no_image(image, "not a SIF file")
    machine = platform.machine()
    if header.architecture not in (None, machine):
        return Problem(
            "image-architecture",
            f"{image.path} is for {header.architecture}, this machine is {machine}",
            "name an image for this machine",
        )
    return None


def read_header(path: Path) -> SIF | None:
    """The header of a SIF file; ``None`` if it is not one.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        start = file.read(64)
    if len(start) < 64 or start[_MAGIC_AT:42] != _MAGIC:
        return None
    return SIF(str(uuid.UUID(bytes=start[48:64])), _ARCHITECTURES.get(start[45:47]))


def facts(image: Image, say: Callable[[str], None]) -> dict[str, JSON]:
    """Identity and cost of the image; empty for a sandbox.

    The first time, a large SIF file is read completely for its SHA-256.
    """
    result: dict[str, JSON] = {}
    if os.path.isdir(image.path):
        return result
    with contextlib.suppress(OSError):
        header = read_header(image.path)
        if header is not None:
            result["image_id"] = header.id
            recall = image_records.recall
            result |= recall(header.id) or recall(str(image.path))
        result["image_bytes"] = image.path.stat().st_size
        result["image_digest"] = f"sha256:{sha256(image.path, say)}"
    return result


def sha256(path: Path, say: Callable[[str], None]) -> str:
    """The file's SHA-256, cached by path, size and modification time.

    Raises:
        OSError: the file cannot be read.
    """
    info = path.stat()
    key = [str(path.resolve()), info.st_size, info.st_mtime_ns]
    cached = _remembered()
    for entry in cached:
        if entry[:3] == key:
            return str(entry[3])
    if info.st_size > 1 << 30:
        say(f"reading {path.name} once for its SHA-256")
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    text = digest.hexdigest()
    with contextlib.suppress(OSError, StorageError):
        kept = [entry for entry in cached if entry[0] != key[0]][-100:]
        paths.private_folder(_digests().parent)
        output.write_text(_digests(), json.dumps([*kept, [*key, text]]))
    return text


def _digests() -> Path:
    return image_records.images_home() / "sha256-of-files"


def _remembered() -> list[list[JSON]]:
    try:
        entries = json.loads(_digests().read_text())
    except (OSError, ValueError):
        return []
    if not isinstance(entries, list):
        return []
    return [entry for entry in entries if isinstance(entry, list) and len(entry) == 4]


def _file_name(uri: str) -> str:
    """A readable file name for the image of a URI, unique per URI."""
    readable = re.sub(r"[^A-Za-z0-9._]+", "-", uri)[-80:].strip("-.")
    return f"{readable}-{hashlib.sha256(uri.encode()).hexdigest()[:8]}.sif"


def _missing(image: Image, environment: Environment, program: str) -> Problem:
    if environment.image is None:
        return Problem(
            "image-missing",
            "there is no image with the workloads here yet",
            f"gpuwatch build apptainer --pull, or name one: --env {environment.kind}=IMAGE.sif",
        )
    if image.uri is None:
        return Problem(
            "image-missing",
            f"there is no {image.path}",
            f"name a SIF file, a sandbox folder, or docker://NAME: --env {environment.kind}=IMAGE",
        )
    pull = f"{program} pull {shell(image.path)} {shell(image.uri)}"
    command = f"mkdir -p {shell(image.path.parent)} && {pull}"
    return Problem(
        "image-missing", f"{image.uri} is not on this machine", f"add --pull, or: {command}"
    )


def _no_image(image: Image, why: str) -> Problem:
    return Problem(
        "image-invalid",
        f"{image.path} is not an image: {why}",
        "name a SIF file or a folder with a root file system; an image of an old kind becomes a "
        "SIF with: apptainer build NEW.sif OLD",
    )
