"""A study's folder here as the mirror of one elsewhere."""

from __future__ import annotations

from pathlib import Path

from gpuwatch.core.models import JSON
from gpuwatch.places.frames import BadFrame, EndFrame
from gpuwatch.session.mirror.apply import Copy
from gpuwatch.session.mirror.tables import BadRows, Batch


class Mirror:
    """The sessions of one study. Not thread-safe.

    It writes its session files and nothing else, whatever arrives.
    """

    def __init__(self, folder: Path, files: frozenset[str]) -> None:
        """``files``: the names of the plan's session files, the only ones that it writes.

        Raises:
            StorageError: one of them cannot be read.
        """
        self._copies = {file: Copy(folder / file) for file in sorted(files)}

    def cursors(self) -> dict[str, JSON]:
        """How much of each session is here, as JSON: what a relay begins with."""
        return {
            file: copy.cursor.document()
            for file, copy in self._copies.items()
            if copy.cursor is not None
        }

    def take(self, batch: Batch) -> None:
        """Write what changed in a session, in one transaction.

        Raises:
            BadFrame: no relay of this study sends that; nothing of it is written.
            StorageError: the file cannot be written.
        """
        copy = self._copies.get(batch.file)
        if copy is None:
            raise BadFrame("rows of a session that is not in the plan")
        try:
            copy.take(batch)
        except BadRows as error:
            raise BadFrame(str(error)) from error

    def differing(self, end: EndFrame) -> list[str]:
        """The sessions whose content here is not that of the other side; empty: all is here.

        Raises:
            BadFrame: it names a session that is not in the plan.
        """
        if not end.digests.keys() <= self._copies.keys():
            raise BadFrame("the digest of a session that is not in the plan")
        return [
            file for file, digest in end.digests.items() if self._copies[file].digest() != digest
        ]

    def drop(self, file: str) -> None:
        """Remove the copy of a session."""
        self._copies[file].drop()

    def close(self) -> None:
        """Let go of the files."""
        for copy in self._copies.values():
            copy.close()
