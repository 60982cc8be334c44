"""Images that gpuwatch builds or fetches: the recipes, the progress, and what each one cost."""

from __future__ import annotations

import contextlib
import json
import re
import time
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Protocol

from gpuwatch.core import output, paths
from gpuwatch.core.errors import GpuwatchError, StorageError
from gpuwatch.core.models import JSON


@dataclass(frozen=True)
class BuiltImage:
    """An image that was built."""

    image: str
    """The name or path for ``--env``."""
    id: str | None
    """The engine's own identifier."""
    seconds: float
    bytes: int
    layers: int | None = None
    cached: bool = False
    """Whether every step came from the cache, so that ``seconds`` is not the cost of a build."""
    pushed: str | None = None
    """Where it was pushed, with the registry's digest: ``REGISTRY/NAME@sha256:...``."""


class Progress(Protocol):
    """Gets the progress of a build."""

    def step(self, text: str) -> None:
        """A new step begins."""
        ...

    def line(self, text: str) -> None:
        """A line of the step's output."""
        ...


class BuildFailed(GpuwatchError):
    """The engine could not build the image."""


def recipes() -> Path:
    """The folder of ``Dockerfile``, ``workloads.def`` and ``prepare.py``."""
    with as_file(files("gpuwatch") / "recipes") as folder:
        return folder


def default_base() -> str:
    """The base image named in the recipes."""
    text = (recipes() / "Dockerfile").read_text(encoding="utf-8")
    match = re.search(r"^ARG BASE=(\S+)$", text, re.MULTILINE)
    assert match, "recipes/Dockerfile names no base"
    return match[1]


def images_home() -> Path:
    """The folder of images that gpuwatch built or fetched, and of the notes on them."""
    return paths.data_home().parent / "images"


def remember(image: str, how: str, seconds: float, **more: JSON) -> None:
    """Record the cost of ``image`` (its id); ``how`` is ``pull`` or ``build``. Best effort."""
    note = {"image": image, "how": how, "seconds": seconds, "unix_seconds": time.time(), **more}
    with contextlib.suppress(OSError, StorageError):
        folder = paths.private_folder(images_home())
        output.write_text(_path(folder, image), json.dumps(note, indent=2) + "\n")


def recall(image: str) -> dict[str, JSON]:
    """Facts for a session: ``image_pull_seconds`` or ``image_build_seconds``, if recorded."""
    try:
        note = json.loads(_path(images_home(), image).read_text())
        how, seconds = note["how"], float(note["seconds"])
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return {f"image_{how}_seconds": seconds} if how in ("pull", "build") else {}


def _path(folder: Path, image: str) -> Path:
    return folder / f"{re.sub(r'[^A-Za-z0-9._-]+', '-', image)[-120:]}.json"
