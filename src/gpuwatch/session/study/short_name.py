"""What finds a session or a study again in a command, as short as it can be."""

from __future__ import annotations

import os
from pathlib import Path

from gpuwatch.core import paths
from gpuwatch.core.models import mapping
from gpuwatch.session.schema import SUFFIX
from gpuwatch.session.study.estimate import known_meta
from gpuwatch.session.study.labels import read


def short_name(path: Path) -> str:
    """Its name, else the start of a session's id, or the name of a study's folder; the path of what
    is found by nothing else."""
    real, home = Path(os.path.realpath(path)), os.path.realpath(paths.data_home())
    one = real.suffix == SUFFIX
    study = real.parent if one else real
    here = str(study.parent) == home
    if not here and str(study) not in map(os.path.realpath, paths.studies_elsewhere()):
        return str(path)
    if (label := read(study).get(real.name if one else "")) and label.name:
        return label.name
    if one:
        own = mapping((known_meta(real) or {}).get("session")).get("id")
        return str(own)[:8] if own else str(path)
    return real.name if here else str(path)
