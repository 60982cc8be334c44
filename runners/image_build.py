"""Building images from gpuwatch's recipes: what every engine's build shares."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Protocol

from gpuwatch.core.errors import GpuwatchError


@dataclass(frozen=True)
class BuiltImage:
    """An image that is there now."""

    image: str
    """The name or the path to give to ``--env``."""
    id: str | None
    """The engine's own identifier."""
    seconds: float
    bytes: int
    layers: int | None = None
    cached: bool = False
    """Nothing had to be done anew: ``seconds`` is not what a build costs."""


class Progress(Protocol):
    """Hears of a build while it goes on."""

    def step(self, text: str) -> None:
        """A new step begins."""
        ...

    def line(self, text: str) -> None:
        """The step says something."""
        ...


class BuildFailed(GpuwatchError):
    """The engine could not build the image."""


def recipes() -> Path:
    """The folder with ``Dockerfile``, ``workloads.def`` and ``prepare.py``."""
    with as_file(files("gpuwatch") / "recipes") as folder:
        return folder


def default_base() -> str:
    """The base that the recipes themselves name."""
    text = (recipes() / "Dockerfile").read_text(encoding="utf-8")
    found = re.search(r"^ARG BASE=(\S+)$", text, re.MULTILINE)
    assert found, "recipes/Dockerfile names no base"
    return found[1]
