"""Stores and looks up the ceilings that `gpuwatch calibrate` measured, and matches them to runs.

One JSON document for each device, driver and torch (keys in `docs/calibration.md`), in
``$XDG_DATA_HOME/gpuwatch/ceilings``. A repeated measurement keeps the higher ceilings:
disturbances only ever slow a device down.
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
from gpuwatch.core.models import JSON, mapping, number, sequence

SCHEMA = 1
_LARGEST = 1 << 20
"""Bytes; a larger file is not read."""

Document = Mapping[str, JSON]


@dataclass(frozen=True)
class CeilingQuery:
    """What a measurement must match. ``None``: not known, matches everything."""

    kind: str
    """``gpu`` or ``cpu``."""
    name: str
    uuid: str | None = None
    host: str | None = None
    """For a CPU, and a GPU without UUID: several machines may share a home."""
    driver: str | None = None
    torch: str | None = None
    threads: int | None = None
    """For a CPU."""

    @property
    def settings(self) -> tuple[tuple[str, JSON], tuple[str, JSON]]:
        """By the documents' keys: the torch, and the driver of a GPU or the threads of a CPU."""
        of_kind = ("driver", self.driver) if self.kind == "gpu" else ("threads", self.threads)
        return ("torch", self.torch), of_kind


@dataclass(frozen=True)
class Stored:
    """A file in the folder: its document, or why it has none."""

    path: Path
    document: Document | None
    trouble: str | None = None


def store(document: Document, *, fresh: bool = False) -> Document:
    """Store a document, :func:`merged` with the older one for the same device, driver and torch.

    ``fresh``: discard the older one. Returns the stored document.

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
    """The newer document with the higher value of each ceiling: what was reached once can be again.

    Each ceiling keeps its ``when``, ``how`` and ``warnings``. It loses the warnings if the other
    measurement was undisturbed and not higher.
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
    """What disturbed the measurement of a ceiling; by default the warnings of its document."""
    warnings = sequence(entry.get("warnings", document.get("warnings")))
    return [str(warning) for warning in warnings if warning]


def when_of(entry: Document, document: Document) -> JSON:
    """When a ceiling was measured; by default the time of its document."""
    return entry.get("when") or document.get("when")


def stored() -> list[Stored]:
    """Every file in the folder, newest measurement first, damaged files last."""
    try:
        files = sorted(paths.ceilings_home().glob("*.json"))
    except OSError:
        return []
    files_read = [_read(path) for path in files]
    files_read.sort(key=lambda file: str((file.document or {}).get("when") or ""), reverse=True)
    return files_read


def documents() -> list[Document]:
    """The readable documents, newest measurement first."""
    return [file.document for file in stored() if file.document is not None]


def matching(documents: Iterable[Document], query: CeilingQuery) -> Document | None:
    """The only document that matches; ``None`` if none or several match.

    Several match only if something is unknown, such as the torch of a program that does not report
    it; see :func:`undecided`.
    """
    fitting = [document for document in documents if _fits(document, query)]
    return fitting[0] if len(fitting) == 1 else None


def matching_except_torch(documents: Iterable[Document], query: CeilingQuery) -> Document | None:
    """The newest document that matches in everything but torch, with ``run_torch`` added.

    A container seldom has the torch of the bare machine, but its device reaches about the same;
    ``run_torch`` shows readers the difference. ``None`` if documents differ in an unknown property.
    """
    if query.torch is None:
        return None
    fitting = [document for document in documents if _fits(document, replace(query, torch=None))]
    if not fitting or _unknown(fitting, query):
        return None
    newest: Document = max(fitting, key=lambda document: str(document.get("when")))
    return {**newest, "run_torch": query.torch}


@dataclass(frozen=True)
class AmbiguousCeilings:
    """Why a run gets no ceilings although its device was measured."""

    reason: str
    hint: str


def undecided(documents: Iterable[Document], query: CeilingQuery) -> AmbiguousCeilings | None:
    """Why neither :func:`matching` nor :func:`matching_except_torch` finds a document for it.

    ``None`` if the device was never measured.
    """
    known = [
        document
        for document in documents
        if _fits(document, replace(query, driver=None, torch=None, threads=None))
    ]
    if not known:
        return None
    fitting = [document for document in known if _fits(document, replace(query, torch=None))]
    unknown = _unknown(fitting, query)
    if unknown:
        keys = " and ".join(unknown)
        choices = "; ".join(
            ", ".join(f"{key} {document.get(key)}" for key in unknown) for document in fitting
        )
        return AmbiguousCeilings(
            f"{len(fitting)} calibrations of {query.name} are stored ({choices}), and the run"
            f" does not report its {keys}",
            f"a `versions` line with {' and '.join(f'`{key}`' for key in unknown)}"
            " selects one (`gpuwatch run --help`)",
        )
    _, (key, runs) = query.settings
    has = sorted({str(document.get(key)) for document in known})
    hint = "`gpuwatch calibrate`"
    if query.kind == "cpu":
        hint = f"`OMP_NUM_THREADS={runs} gpuwatch calibrate --device cpu`"
    return AmbiguousCeilings(
        f"{query.name} is calibrated with {key} {', '.join(has)}, and the run has {runs}",
        f"{hint} measures them for later runs",
    )


def _unknown(documents: Iterable[Document], query: CeilingQuery) -> list[str]:
    """Keys that the run does not report and in which the documents differ."""
    listed = list(documents)
    return [
        key
        for key, known in query.settings
        if known is None and len({str(document.get(key)) for document in listed}) > 1
    ]


def _fits(document: Document, query: CeilingQuery) -> bool:
    device = mapping(document.get("device"))
    if device.get("kind") != query.kind:
        return False
    if query.kind == "gpu" and query.uuid and device.get("uuid"):
        if device["uuid"] != query.uuid:
            return False
    elif device.get("name") != query.name or document.get("host") != query.host:
        return False
    return all(wanted in (None, document.get(key)) for key, wanted in query.settings)


def _read(path: Path) -> Stored:
    try:
        content = paths.read_regular(path, _LARGEST)
        if len(content) > _LARGEST:
            return Stored(path, None, "too large")
        document = json.loads(content)
    except (OSError, ValueError, RecursionError) as error:
        return Stored(path, None, f"cannot be read: {error}")
    if not isinstance(document, dict) or not isinstance(document.get("ceilings"), dict):
        return Stored(path, None, "contains no ceilings")
    if document.get("schema") != SCHEMA:
        return Stored(path, None, f"has schema {document.get('schema')!r}, not {SCHEMA}")
    return Stored(path, document)


def _file_name(document: Document) -> str:
    """A readable device name and a digest of what identifies the document."""
    device = mapping(document.get("device"))
    kind, uuid, name = device.get("kind"), device.get("uuid"), str(device.get("name"))
    identity = [kind, uuid] if uuid else [kind, name, document.get("host")]
    identity += [document.get(key) for key in ("driver", "torch", "threads")]
    from hashlib import sha256  # loads 3 MiB of OpenSSL, which a recorder does not need

    digest = sha256(json.dumps(identity).encode()).hexdigest()[:12]
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40]
    return f"{slug or 'device'}-{digest}.json"
