"""The cost of pulling or building each image, kept beside the studies for later sessions."""

from __future__ import annotations

import contextlib
import json
import re
import time
from pathlib import Path

from gpuwatch.core import output, paths
from gpuwatch.core.errors import StorageError
from gpuwatch.core.models import JSON


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
