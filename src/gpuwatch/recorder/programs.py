"""Digests of the files in a command, so that a study never continues with a changed program."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from gpuwatch.session.study.plan import PlannedRun, Settings
from gpuwatch.workloads import archive

ARCHIVE = "workloads.pyz"
LARGEST = 64 << 20
"""Bytes; a larger file counts as data."""
_SOURCES = frozenset({".py", ".sh", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf"})
"""Files that a run reads but does not write, unlike logs, tables or checkpoints."""


def digests(arguments: Sequence[str], folder: Path) -> dict[str, str]:
    """Hex SHA-256 of each file in ``folder`` that the command ``arguments`` names, by name.

    Covers scripts, modules after ``-m``, configurations (``--config=a.yaml``), and the files in a
    ``bash -c`` line; but neither programs found through ``PATH`` nor what a script imports.
    """
    found = {name: _digest(folder / name) for name in _named(arguments)}
    return {name: digest for name, digest in found.items() if digest is not None}


def of_runs(runs: Sequence[PlannedRun]) -> dict[str, str]:
    """The digests of the programs that ``runs`` start from the current folder, by name."""
    here, found = Path.cwd(), dict[str, str]()
    for run in runs:
        if run.workload.kind == "command":
            found |= digests(run.workload.arguments, here)
        elif run.workload.kind == "workload":
            found[ARCHIVE] = found.get(ARCHIVE) or _archive()
            if run.workload.program is not None:
                found |= digests(("", run.workload.program.rpartition(":")[0]), here)
    return found


def changed(settings: Settings) -> list[str]:
    """The programs of a study that have changed since it was started."""
    folder = Path(settings.working_directory)
    return [
        name
        for name, digest in settings.programs.items()
        if digest != (_archive() if name == ARCHIVE else _digest(folder / name))
    ]


def _archive() -> str:
    """The digest of gpuwatch's own workloads as they are now."""
    with tempfile.TemporaryDirectory() as folder:
        return archive.build(Path(folder, ARCHIVE))


def text(digests_by_name: dict[str, str]) -> str:
    """``train.py 3fa1c0e2b7d4, a.yaml 9b1d...``."""
    return ", ".join(f"{name} {digest[:12]}" for name, digest in digests_by_name.items())


def _named(arguments: Sequence[str]) -> Iterator[str]:
    before = ""
    for place, argument in enumerate(arguments):
        if place > 0 or os.sep in argument:
            yield argument
            yield argument.lstrip("@").rpartition("=")[2]
            yield os.path.join(argument, "__main__.py")
        joined = argument[2:] if argument.startswith("-m") else ""
        for module in (argument if _MODULE.fullmatch(before) else "", joined):
            if module:
                path = module.replace(".", os.sep)
                yield from (f"{path}.py", os.path.join(path, "__main__.py"))
        if any(character.isspace() for character in argument):  # the line of `bash -c`
            yield from _named(["", *_WORDS.findall(argument)])
        before = argument


_MODULE = re.compile(r"-[A-Za-z]*m")
_WORDS = re.compile(r"[^\s'\"|&;<>()]+")


def _digest(path: Path) -> str | None:
    """``None`` if the file is missing, unreadable or data."""
    from hashlib import sha256  # loads 3 MiB of OpenSSL

    try:
        status = path.stat()
        is_source = path.suffix in _SOURCES or bool(status.st_mode & 0o111)
        if not path.is_file() or not is_source or status.st_size > LARGEST:
            return None
        return sha256(path.read_bytes()).hexdigest()
    except (OSError, ValueError):  # a name with a NUL, or one that is too long
        return None
