"""Study files: the presets, and the user's own files.

A study file is TOML. The presets are such files in this folder.
"""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path

from gpuwatch.core.errors import UsageError
from gpuwatch.core.text import to_paste
from gpuwatch.studies.format import Study as Study
from gpuwatch.studies.format import StudyPart as StudyPart
from gpuwatch.studies.format import load as load
from gpuwatch.studies.format import study_of as study_of
from gpuwatch.studies.format import with_parameters as with_parameters

_ENDING = ".toml"


def presets() -> tuple[str, ...]:
    """The names of the presets, in alphabetical order."""
    names = (file.name for file in files(__name__).iterdir())
    return tuple(sorted(name[: -len(_ENDING)] for name in names if name.endswith(_ENDING)))


def preset_text(name: str) -> str:
    """The TOML text of a preset.

    Raises:
        UsageError: no preset has this name.
    """
    if name not in presets():
        close = get_close_matches(name, presets(), n=2)
        hint = (
            f"did you mean {' or '.join(close)}?" if close else f"there are: {', '.join(presets())}"
        )
        raise UsageError(
            f"no study is named {name!r}: {hint}",
            f"give a file of your own by its path: {to_paste('study', f'./{name}{_ENDING}')}",
        )
    return files(__name__).joinpath(name + _ENDING).read_text(encoding="utf-8")


def find(name: str) -> Study:
    """The study of a preset, or of a file, which ends in ``.toml`` or includes a folder.

    Raises:
        UsageError: the preset does not exist, or the file is not a study file.
        StorageError: the file cannot be read.
    """
    if name.endswith(_ENDING) or "/" in name:
        return load(Path(name).expanduser())
    return replace(study_of(preset_text(name), name), preset=name)
