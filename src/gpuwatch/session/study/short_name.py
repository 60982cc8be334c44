"""What finds a session or a study again in a command, as short as it can be."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from gpuwatch.core import paths
from gpuwatch.core.models import mapping
from gpuwatch.session.reading.reader import known_meta
from gpuwatch.session.schema import SUFFIX
from gpuwatch.session.study.labels import read


def short_name(path: Path) -> str:
    """Its name, else the start of a session's id, or the name of a study's folder; the path of what
    is found by nothing else, as a copy is, or what has the name of a file or folder here."""
    real, home = Path(os.path.realpath(path)), os.path.realpath(paths.data_home())
    one = real.suffix == SUFFIX
    study = real.parent if one else real
    here = str(study.parent) == home
    if not here and str(study) not in map(os.path.realpath, paths.studies_elsewhere()):
        return str(path)
    label = read(study).get(real.name if one else "")
    session = real if one else next(study.glob(f"*{SUFFIX}"), real)
    if _is_copied(session):  # with its labels
        name = real.name if here and not one else ""
    else:
        name = (label and label.name) or (id_of(real)[:8] if one else real.name if here else "")
    return str(path) if not name or os.path.exists(name) else name


def _is_copied(session: Path) -> bool:
    """Whether another study has a session of its file's name and size, and its id."""
    folders = [*Path(paths.data_home()).glob("*"), *paths.studies_elsewhere()]
    with suppress(OSError):
        size = session.stat().st_size
        return any(
            other.stat().st_size == size
            and other.resolve() != session
            and id_of(other) == id_of(session)
            for other in (folder / session.name for folder in folders)
            if other.is_file()
        )
    return False


def id_of(session: Path) -> str:
    """Of a session; empty: it has none, or cannot be read."""
    return str(mapping((known_meta(session) or {}).get("session")).get("id") or "")
