"""The files that a command is made of: so that a study does not go on with another program."""

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
"""Bytes of a file; what is larger is taken for data."""
_SOURCES = frozenset({".py", ".sh", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf"})
"""What a run reads and does not write, as it may a log, a table or a checkpoint."""


def digests(arguments: Sequence[str], folder: Path) -> dict[str, str]:
    """SHA-256 in hex of each file in ``folder`` that the command ``arguments`` names, by its name.

    Scripts, modules behind ``-m``, configurations (``--config=a.yaml``), and what stands in the
    line of ``bash -c``. A program that is found by the ``PATH`` is not among them, nor is what a
    script imports.
    """
    found = {}
    for name in _named(arguments):
        if (digest := _digest(folder / name)) is not None:
            found[name] = digest
    return found


def with_programs(plan: Plan, build_archive: Callable[[Path], str] | None) -> Plan:
    """``plan`` with the digests of what it is going to run, from the present folder."""
    found: dict[str, JSON] = {}
    for run in plan.runs:
        if run.workload.kind == "command":
            found |= digests(run.workload.arguments, Path.cwd())
        elif run.workload.kind == "workload" and ARCHIVE not in found:
            found[ARCHIVE] = _archive(build_archive)
    return replace(plan, settings={**plan.settings, "programs": found})


def changed(plan: Plan, build_archive: Callable[[Path], str] | None) -> list[str]:
    """The files of ``plan`` that are not what they were when its study was started."""
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


def text(found: dict[str, str]) -> str:
    """``train.py 3fa1c0e2b7d4, a.yaml 9b1d...``."""
    return ", ".join(f"{name} {digest[:12]}" for name, digest in found.items())


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
        if any(each.isspace() for each in argument):  # the line of `bash -c`
            yield from _named(["", *_WORDS.findall(argument)])
        before = argument


_MODULE = re.compile(r"-[A-Za-z]*m")
_WORDS = re.compile(r"[^\s'\"|&;<>()]+")


def _joined(argument: str) -> str:
    """The module of ``-mNAME``."""
    return argument[2:] if argument.startswith("-m") else ""


def _digest(path: Path) -> str | None:
    """``None`` where there is no such file, none that can be read, or one of data."""
    from hashlib import sha256  # with it come 3 MiB of OpenSSL

    try:
        known = path.stat()
        source = path.suffix in _SOURCES or bool(known.st_mode & 0o111)
        if not path.is_file() or not source or known.st_size > LARGEST:
            return None
        return sha256(path.read_bytes()).hexdigest()
    except (OSError, ValueError):  # a name with a NUL, or one that is too long
        return None
