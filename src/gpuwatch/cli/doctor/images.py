"""Local images, in the form of ``--env``. Nothing is fetched or started."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from gpuwatch import runners
from gpuwatch.runners import image_records

Key = TypeVar("Key")
Answer = TypeVar("Answer")

MOST = 12
"""Most images listed of one kind, newest first."""
_STOREHOUSE = "/var/tmp/{user}.ch"  # noqa: S108 where Charliecloud keeps images by default


def images(patience: float) -> list[str]:
    """``docker=NAME``, ``apptainer=FILE.sif``, ``charliecloud=FOLDER``, by kind; at most `MOST` of
    each. A kind that does not answer within ``patience`` s contributes none.

    gpuwatch's default images are left out.
    """
    finders: Mapping[str, Callable[[], list[str]]] = {
        "docker": _docker,
        "apptainer": _sif_files,
        "charliecloud": _root_folders,
    }
    kinds = [kind for kind in runners.kinds(aliases=False) if kind in finders]
    found = answers({kind: finders[kind] for kind in kinds}, patience)
    named = {
        kind: [text for text in texts if text.isprintable() and "," not in text][:MOST]
        for kind, texts in found.items()
    }
    return [f"{kind}={image}" for kind in kinds for image in named.get(kind, ())]


def answers(questions: Mapping[Key, Callable[[], Answer]], patience: float) -> dict[Key, Answer]:
    """The answers to questions that are asked at the same time, so that one that hangs delays none
    of the others; without those that fail, or are not there after ``patience`` s."""
    found: dict[Key, Answer] = {}

    def ask(key: Key, question: Callable[[], Answer]) -> None:
        with contextlib.suppress(Exception, SystemExit):
            found[key] = question()

    threads = [threading.Thread(target=ask, args=each, daemon=True) for each in questions.items()]
    for thread in threads:
        thread.start()
    until = time.monotonic() + patience
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    return dict(found)


def _docker() -> list[str]:
    from gpuwatch.runners.docker import client
    from gpuwatch.runners.docker.images import DEFAULT_IMAGE

    with client.connect().client() as api:
        listed = sorted(api.images(), key=lambda image: -image["Created"])
    names = [name for image in listed for name in image.get("RepoTags") or ()]
    short = [name.removesuffix(":latest") for name in names if "<none>" not in name]
    return [name for name in short if name != DEFAULT_IMAGE]


def _sif_files() -> list[str]:
    """SIF files in the working directory, and those that gpuwatch fetched."""
    home = image_records.images_home()
    fetched = [path for path in home.glob("*.sif") if path.name != "workloads.sif"]
    return [str(path) for path in _newest([*Path().glob("*.sif"), *fetched])]


def _root_folders() -> list[str]:
    """Image folders in the working directory and in Charliecloud's own storage."""
    storage = os.environ.get("CH_IMAGE_STORAGE") or _STOREHOUSE.format(
        user=os.environ.get("USER", "")
    )
    folders = [*Path().glob("*/"), *Path(storage, "img").glob("*/")]
    return [str(path) for path in _newest(folders) if _is_root(path)]


def _is_root(folder: Path) -> bool:
    shells = (folder / name for name in ("bin/sh", "usr/bin/sh"))
    return (folder / "etc").is_dir() and any(map(os.path.lexists, shells))


def _newest(paths: Iterable[Path]) -> list[Path]:
    dated = []
    for path in paths:
        with contextlib.suppress(OSError):
            dated.append((-path.stat().st_mtime, path))
    return [path for _, path in sorted(dated)]
