"""Digests of the files in a command, so that a study never continues with a changed program."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from gpuwatch.core.models import JSON, mapping
from gpuwatch.session.study.plan import Plan

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
    by_name = {}
    for name in _named(arguments):
        if (digest := _digest(folder / name)) is not None:
            by_name[name] = digest
    return by_name


def with_programs(plan: Plan, build_archive: Callable[[Path], str] | None) -> Plan:
    """``plan`` with the digests of the programs that it will run from the current folder."""
    digests_by_name: dict[str, JSON] = {}
    for run in plan.runs:
        if run.workload.kind == "command":
            digests_by_name |= digests(run.workload.arguments, Path.cwd())
        elif run.workload.kind == "workload":
            if ARCHIVE not in digests_by_name:
                digests_by_name[ARCHIVE] = _archive(build_archive)
            if run.workload.program is not None:
                path = run.workload.program.rpartition(":")[0]
                digests_by_name |= digests(("", path), Path.cwd())
    return replace(plan, settings={**plan.settings, "programs": digests_by_name})


def changed(plan: Plan, build_archive: Callable[[Path], str] | None) -> list[str]:
    """The files of ``plan`` that have changed since its study was started."""
    folder = Path(str(plan.settings["working_directory"]))
    known = mapping(plan.settings.get("programs"))
    return [
        name
        for name, digest in known.items()
        if digest != (_archive(build_archive) if name == ARCHIVE else _digest(folder / name))
    ]


def _archive(build_archive: Callable[[Path], str] | None) -> str:
    """The digest of gpuwatch's own workloads as they are now."""
    assert build_archive is not None
    with tempfile.TemporaryDirectory() as folder:
        return build_archive(Path(folder, ARCHIVE))


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
        for module in (argument if _MODULE.fullmatch(before) else "", _joined(argument)):
            if module:
                path = module.replace(".", os.sep)
                yield from (f"{path}.py", os.path.join(path, "__main__.py"))
        if any(character.isspace() for character in argument):  # the line of `bash -c`
            yield from _named(["", *_WORDS.findall(argument)])
        before = argument


_MODULE = re.compile(r"-[A-Za-z]*m")
_WORDS = re.compile(r"[^\s'\"|&;<>()]+")


def _joined(argument: str) -> str:
    """The module of ``-mNAME``."""
    return argument[2:] if argument.startswith("-m") else ""


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
