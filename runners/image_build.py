"""Building images from gpuwatch's recipes: the parts shared by all engines."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Protocol

from gpuwatch.core.errors import GpuwatchError


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
