"""Local images, in the form of ``--env``. Nothing is fetched or started."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from gpuwatch import runners
from gpuwatch.runners import image_records

MOST = 12
"""Most images listed of one kind, newest first."""
_STOREHOUSE = "/var/tmp/{user}.ch"  # noqa: S108 where Charliecloud keeps images by default


def images(patience: float) -> list[str]:
    """``docker=NAME``, ``apptainer=FILE.sif``, ``charliecloud=FOLDER``, by kind; at most `MOST` of
    each. A kind that does not answer within ``patience`` s contributes none.

    gpuwatch's default images are left out.
    """
    finders: Mapping[str, Callable[[], Iterable[str]]] = {
        "docker": _docker,
        "apptainer": _sif_files,
        "charliecloud": _root_folders,
    }
    kinds = [kind for kind in runners.kinds(aliases=False) if kind in finders]
    images_by_kind: dict[str, list[str]] = {}

    def ask(kind: str) -> None:
        with contextlib.suppress(Exception, SystemExit):
            named = [text for text in finders[kind]() if text.isprintable() and "," not in text]
            images_by_kind[kind] = named[:MOST]

    threads = [threading.Thread(target=ask, args=(kind,), daemon=True) for kind in kinds]
    for thread in threads:
        thread.start()
    until = time.monotonic() + patience
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    return [f"{kind}={image}" for kind in kinds for image in images_by_kind.get(kind, ())]


def _docker() -> Iterable[str]:
    from gpuwatch.runners.docker import client
    from gpuwatch.runners.docker.images import DEFAULT_IMAGE

    with client.connect().client() as api:
        listed = sorted(api.images(), key=lambda image: -image["Created"])
    names = [name for image in listed for name in image.get("RepoTags") or ()]
    short = [name.removesuffix(":latest") for name in names if "<none>" not in name]
    return [name for name in short if name != DEFAULT_IMAGE]


def _sif_files() -> Iterable[str]:
    """SIF files in the working directory, and those that gpuwatch fetched."""
    home = image_records.images_home()
    fetched = [path for path in home.glob("*.sif") if path.name != "workloads.sif"]
    return [str(path) for path in _newest([*Path().glob("*.sif"), *fetched])]


def _root_folders() -> Iterable[str]:
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
