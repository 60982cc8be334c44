"""Documents of measured ceilings: what `gpuwatch calibrate` stores, and which one a run may use.

A document belongs to one device, driver and torch version, and on a CPU to a number of threads: a
rate that was reached with another kernel library or fewer threads is no ceiling of this run.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass
from pathlib import Path

from gpuwatch import paths
from gpuwatch.errors import StorageError
from gpuwatch.models import JSON, mapping

SCHEMA = 1

Document = Mapping[str, JSON]
"""As docs/session-format.md has it: rates in By/s and FLOP/s, ``null`` with a reason."""


@dataclass(frozen=True)
class Identity:
    """What a document is of, or what a run uses."""

    kind: str
    """``gpu`` or ``cpu``."""
    name: str
    """The product as NVML or ``/proc/cpuinfo`` writes it."""
    uuid: str | None
    host: str
    driver: str | None
    """Of a GPU."""
    torch: str | None
    """``None``: not known, as of a program of the user's."""
    threads: int | None
    """Of a CPU: what torch computes with; ``None``: not known."""

    def same_device(self, other: Identity) -> bool:
        """The same device and driver; a CPU is told by its host and its name."""
        if self.kind != other.kind:
            return False
        if self.kind == "cpu":
            return (self.host, self.name) == (other.host, other.name)
        return self.uuid is not None and self.uuid == other.uuid and self.driver == other.driver


def document(
    of: Identity, found: Mapping[str, JSON], *, when: str, seconds: float
) -> dict[str, JSON]:
    """The document of ceilings ``found`` by name, measured at ``when`` (ISO 8601)."""
    return {
        "schema": SCHEMA,
        "device": {"kind": of.kind, "uuid": of.uuid, "name": of.name},
        "host": of.host,
        "driver": of.driver,
        "torch": of.torch,
        "threads": of.threads,
        "when": when,
        "seconds": seconds,
        "ceilings": dict(found),
    }


def identity(of: Document) -> Identity:
    """What a document is of."""
    device = mapping(of.get("device"))
    threads = of.get("threads")
    return Identity(
        kind=str(device.get("kind")),
        name=str(device.get("name")),
        uuid=_text(device.get("uuid")),
        host=str(of.get("host")),
        driver=_text(of.get("driver")),
        torch=_text(of.get("torch")),
        threads=threads if isinstance(threads, int) else None,
    )


def store(measured: Document) -> Path:
    """Write a document, in place of an older one of the same device, driver, torch and threads.

    Raises:
        StorageError: it cannot be written.
    """
    folder = paths.private_folder(paths.ceilings_home())
    target = folder / _file_name(identity(measured))
    try:
        handle, temporary = tempfile.mkstemp(prefix=".", suffix=".part", dir=folder)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(json.dumps(measured, indent=1) + "\n")
            Path(temporary).replace(target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
    except OSError as error:
        raise StorageError(
            f"cannot write {target}: {error.strerror}",
            "free some space, or set XDG_DATA_HOME to a folder of yours",
        ) from error
    return target


def stored() -> tuple[Document, ...]:
    """All documents of this user, the latest first; files that are none are passed over."""
    found = []
    try:
        files = sorted(paths.ceilings_home().glob("*.json"))
    except OSError:
        return ()
    for path in files:
        with contextlib.suppress(OSError, ValueError):
            read = json.loads(path.read_text(encoding="utf-8"))
            if isinstance(read, dict) and read.get("schema") == SCHEMA:
                found.append(read)
    return tuple(sorted(found, key=lambda each: str(each.get("when")), reverse=True))


def matching(documents: Iterable[Document], used: Identity) -> Document | None:
    """The document that holds for what a run uses.

    Where torch, or the threads of a CPU, are not known, it is that of the device if there is only
    one: with two, nobody can say which holds.
    """
    found = []
    for each in documents:
        of = identity(each)
        threads = used.kind != "cpu" or used.threads in (None, of.threads)
        if of.same_device(used) and used.torch in (None, of.torch) and threads:
            found.append(each)
    return found[0] if len(found) == 1 else None


def _file_name(of: Identity) -> str:
    key = of if of.uuid is None else Identity(of.kind, "", of.uuid, "", of.driver, of.torch, None)
    digest = hashlib.sha256(json.dumps(astuple(key)).encode()).hexdigest()[:12]
    words = re.sub(r"[^a-z0-9]+", "-", of.name.lower()).strip("-")[:40]
    return f"{of.kind}-{words}-{digest}.json"


def _text(value: JSON) -> str | None:
    return None if value is None else str(value)
