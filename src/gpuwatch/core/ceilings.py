"""What `gpuwatch calibrate` measured on this machine: stored, looked up, matched to a run.

One JSON document for each device, driver and torch (`docs/calibration.md` has its keys), in
``$XDG_DATA_HOME/gpuwatch/ceilings``. Of two measurements of the same the higher ceilings stay:
disturbances only ever slow down.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from gpuwatch.core import output, paths
from gpuwatch.core.errors import StorageError
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON, mapping, number

SCHEMA = 1
_LARGEST = 1 << 20
"""Bytes of a file that is still taken for a document."""

Document = Mapping[str, JSON]


@dataclass(frozen=True)
class CeilingQuery:
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


def store(document: Document, *, fresh: bool = False) -> Document:
    """Keep a document, :func:`merged` with an older one of the same device, driver and torch.

    ``fresh``: the older one is forgotten. Returns what is stored now.

    Raises:
        StorageError: the folder cannot be written.
    """
    folder = paths.private_folder(paths.ceilings_home())
    path = folder / _file_name(document)
    older = None if fresh or not path.exists() else _read(path).document
    if older is not None:
        document = merged(older, document)
    try:
        output.write_text(path, json.dumps(document, indent=2))
    except OSError as error:
        raise StorageError(
            f"cannot write {path}: {error.strerror}", "free some space, or set XDG_DATA_HOME"
        ) from error
    return document


def merged(older: Document, newer: Document) -> Document:
    """The newer document with the higher one of each ceiling: what was reached can be reached.

    Each keeps its ``when``, ``how`` and ``warnings``. A ceiling loses its warnings where the other
    measurement was not disturbed and did not give more.
    """
    entries = {}
    of_older, of_newer = mapping(older.get("ceilings")), mapping(newer.get("ceilings"))
    for name in (*of_newer, *(name for name in of_older if name not in of_newer)):
        measured = [
            {**entry, "when": when_of(entry, document), "warnings": warnings_of(entry, document)}
            for document, entry in (
                (older, mapping(of_older.get(name))),
                (newer, mapping(of_newer.get(name))),
            )
            if entry
        ]
        *lower, higher = sorted(measured, key=lambda entry: number(entry.get("value")) or 0.0)
        if any(number(entry.get("value")) and not entry["warnings"] for entry in lower):
            higher["warnings"] = []
        entries[name] = higher
    return {**newer, "ceilings": entries}


def warnings_of(entry: Document, document: Document) -> list[str]:
    """What disturbed the measurement of one ceiling; what its document says where it has none."""
    told = entry.get("warnings", document.get("warnings"))
    return [str(each) for each in told if each] if isinstance(told, list) else []


def when_of(entry: Document, document: Document) -> JSON:
    """When a ceiling was measured; when its document was where it does not say."""
    return entry.get("when") or document.get("when")


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


def matching(among: Iterable[Document], sought: CeilingQuery) -> Document | None:
    """The one document that fits; ``None`` where none does, or more than one.

    More than one fits only where something is not known: a program that does not tell its torch;
    see :func:`undecided`.
    """
    fitting = [document for document in among if _fits(document, sought)]
    return fitting[0] if len(fitting) == 1 else None


def of_another_torch(among: Iterable[Document], sought: CeilingQuery) -> Document | None:
    """The document that fits in all but its torch, with ``run_torch`` beside it, the last measured.

    A container seldom has the torch of the bare machine: its device reaches about the same, and a
    reader is told whose torch measured it. ``None`` where documents differ in what is not known.
    """
    if sought.torch is None:
        return None
    fitting = [document for document in among if _fits(document, replace(sought, torch=None))]
    if not fitting or _unknown(fitting, sought):
        return None
    newest: Document = max(fitting, key=lambda each: str(each.get("when")))
    return {**newest, "run_torch": sought.torch}


@dataclass(frozen=True)
class AmbiguousCeilings:
    """Why a run gets no document although its device was measured."""

    reason: str
    hint: str


def undecided(among: Iterable[Document], sought: CeilingQuery) -> AmbiguousCeilings | None:
    """Why neither :func:`matching` nor :func:`of_another_torch` gave one of those of this device.

    ``None`` where the device was never measured.
    """
    known = [
        document
        for document in among
        if _fits(document, replace(sought, driver=None, torch=None, threads=None))
    ]
    if not known:
        return None
    fitting = [document for document in known if _fits(document, replace(sought, torch=None))]
    unknown = _unknown(fitting, sought)
    if unknown:
        keys = " and ".join(unknown)
        stored = "; ".join(
            ", ".join(f"{key} {document.get(key)}" for key in unknown) for document in fitting
        )
        return AmbiguousCeilings(
            f"{len(fitting)} calibrations of {sought.name} are stored ({stored}), and the run"
            f" does not tell its {keys}",
            f"a `versions` line with {' and '.join(f'`{key}`' for key in unknown)}"
            " tells which (docs/step-lines.md)",
        )
    key = "driver" if sought.kind == "gpu" else "threads"
    has = sorted({str(document.get(key)) for document in known})
    runs = sought.driver if sought.kind == "gpu" else sought.threads
    hint = "`gpuwatch calibrate`"
    if sought.kind == "cpu":
        hint = f"`OMP_NUM_THREADS={runs} gpuwatch calibrate --device cpu`"
    return AmbiguousCeilings(
        f"{sought.name} is calibrated with {key} {', '.join(has)}, and the run has {runs}",
        f"{hint} measures these ceilings",
    )


def _unknown(documents: Iterable[Document], sought: CeilingQuery) -> list[str]:
    """What the run does not tell and documents differ in."""
    several = list(documents)
    of_kind = ("driver", sought.driver) if sought.kind == "gpu" else ("threads", sought.threads)
    return [
        key
        for key, told in (("torch", sought.torch), of_kind)
        if told is None and len({str(document.get(key)) for document in several}) > 1
    ]


def _fits(document: Document, sought: CeilingQuery) -> bool:
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
        content = paths.read_regular(path, _LARGEST)
        if len(content) > _LARGEST:
            return Stored(path, None, "too large")
        document = json.loads(content)
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
    from hashlib import sha256  # with it come 3 MiB of OpenSSL, which a recorder needs not

    digest = sha256(json.dumps(of).encode()).hexdigest()[:12]
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40]
    return f"{slug or 'device'}-{digest}.json"
