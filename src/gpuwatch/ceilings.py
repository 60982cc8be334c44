"""What `gpuwatch calibrate` measured on this machine: stored, looked up, matched to a run.

One JSON document for each device, driver and torch (`docs/calibration.md` has its keys), in
``$XDG_DATA_HOME/gpuwatch/ceilings``. A new measurement of the same replaces the old one.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from gpuwatch import paths
from gpuwatch.errors import StorageError
from gpuwatch.models import JSON, mapping

SCHEMA = 1
_LARGEST = 1 << 20
"""Bytes of a file that is still taken for a document."""

Document = Mapping[str, JSON]


@dataclass(frozen=True)
class Sought:
    """What a measurement must have been of. ``None`` is not known, and fits everything."""

    kind: str
    """``gpu`` or ``cpu``."""
    name: str
    uuid: str | None = None
    host: str | None = None
    """Of a CPU, and of a GPU without UUID: homes may be shared by machines."""
    driver: str | None = None
    torch: str | None = None
    threads: int | None = None
    """Of a CPU."""


@dataclass(frozen=True)
class Stored:
    """A file of the folder: its document, or why it has none."""

    path: Path
    document: Document | None
    trouble: str | None = None


def store(document: Document) -> Path:
    """Keep a document in place of an older one of the same device, driver, torch and threads.

    Raises:
        StorageError: the folder cannot be written.
    """
    folder = paths.private_folder(paths.ceilings_home())
    path = folder / _file_name(document)
    try:
        handle, temporary = tempfile.mkstemp(prefix=".", suffix=".new", dir=folder)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(document, file, indent=2)
            Path(temporary).replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()
            raise
    except OSError as error:
        raise StorageError(
            f"cannot write {path}: {error.strerror}", "free some space, or set XDG_DATA_HOME"
        ) from error
    return path


def stored() -> list[Stored]:
    """Every file of the folder, the document measured last first; damaged ones at the end."""
    try:
        files = sorted(paths.ceilings_home().glob("*.json"))
    except OSError:
        return []
    found = [_read(path) for path in files]
    found.sort(key=lambda each: str((each.document or {}).get("when") or ""), reverse=True)
    return found


def documents() -> list[Document]:
    """The documents that can be read, the one measured last first."""
    return [each.document for each in stored() if each.document is not None]


def matching(among: Iterable[Document], sought: Sought) -> Document | None:
    """The one document that fits; ``None`` where none does, or more than one.

    More than one fits only where something is not known: a program that does not tell its torch.
    """
    fitting = [document for document in among if _fits(document, sought)]
    return fitting[0] if len(fitting) == 1 else None


def of_another_torch(among: Iterable[Document], sought: Sought) -> Document | None:
    """The document that fits in all but its torch, with ``run_torch`` beside it, the last measured.

    A container seldom has the torch of the bare machine: its device reaches about the same, and a
    reader is told whose torch measured it.
    """
    if sought.torch is None:
        return None
    fitting = [document for document in among if _fits(document, replace(sought, torch=None))]
    if not fitting:
        return None
    newest: Document = max(fitting, key=lambda each: str(each.get("when")))
    return {**newest, "run_torch": sought.torch}


def _fits(document: Document, sought: Sought) -> bool:
    device = mapping(document.get("device"))
    if device.get("kind") != sought.kind:
        return False
    if sought.kind == "gpu" and sought.uuid and device.get("uuid"):
        if device["uuid"] != sought.uuid:
            return False
    elif device.get("name") != sought.name or document.get("host") != sought.host:
        return False
    known: list[tuple[JSON, JSON]] = [(document.get("torch"), sought.torch)]
    if sought.kind == "gpu":
        known.append((document.get("driver"), sought.driver))
    else:
        known.append((document.get("threads"), sought.threads))
    return all(wanted is None or has == wanted for has, wanted in known)


def _read(path: Path) -> Stored:
    try:
        if path.stat().st_size > _LARGEST:
            return Stored(path, None, "too large")
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        return Stored(path, None, f"cannot be read: {error}")
    if not isinstance(document, dict) or not isinstance(document.get("ceilings"), dict):
        return Stored(path, None, "holds no ceilings")
    if document.get("schema") != SCHEMA:
        return Stored(path, None, f"has schema {document.get('schema')!r}, not {SCHEMA}")
    return Stored(path, document)


def _file_name(document: Document) -> str:
    """The device's name for people, and a digest of what tells this document from others."""
    device = mapping(document.get("device"))
    kind, uuid, name = device.get("kind"), device.get("uuid"), str(device.get("name"))
    of = [kind, uuid] if uuid else [kind, name, document.get("host")]
    of += [document.get(key) for key in ("driver", "torch", "threads")]
    digest = hashlib.sha256(json.dumps(of).encode()).hexdigest()[:12]
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40]
    return f"{slug or 'device'}-{digest}.json"
