"""An SQLite connection with bounds on time and size, for files that may come from anybody."""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import quote

from gpuwatch.core.models import JSON

_LONGEST_VALUE = 16 << 20
"""Bytes of a text or blob."""
MOST_BYTES = 128 << 20
"""Total bytes of texts and blobs in one result."""
_PIECE = 8
"""Rows fetched between two checks of their size."""
_STRIDE = 100_000
"""SQLite instructions between two calls of the progress handler."""
_INSTRUCTIONS, _PER_BYTE = 20_000_000, 10
"""Instructions that a statement may take: a base, and an addition for each byte of the file. A full
table scan takes less than two a byte; pages that form a loop never end."""
_PATIENCE_SECONDS = 10.0
"""Longest wait for a lock: a recorder holds it until its commit is on the disk, which takes
seconds on a busy disk."""
_NO_TEXT = "it contains a name that is not valid text"
"""For an SQLite error message with a name that Python cannot decode."""
_SIZED = (str, bytes)
_NUMBERS = frozenset({int, float, type(None)})


class BoundedConnection(sqlite3.Connection):
    """Made by :func:`connect`."""

    effort: _Effort

    def execute(self, sql: str, values: Any = (), /) -> sqlite3.Cursor:
        """As in ``sqlite3``; raises ``sqlite3`` errors only."""
        try:
            return super().execute(sql, values)
        except UnicodeDecodeError:
            raise sqlite3.DatabaseError(_NO_TEXT) from None

    def rows(
        self, sql: str, values: Sequence[object] = (), *, cut: bool = False, most: int = MOST_BYTES
    ) -> list[tuple[JSON, ...]]:
        """The rows of one statement.

        If their texts and blobs exceed ``most`` bytes, ``cut`` returns only the first rows, at
        least one; otherwise that is an error.

        Raises:
            sqlite3.Error: SQLite failed, or the result is too large or takes too long.
        """
        self.effort.begin()
        result: list[tuple[JSON, ...]] = []
        size = 0
        try:
            # Closed at once: a statement that is not done keeps the file open.
            with closing(self.execute(sql, tuple(values))) as cursor:
                while size <= most and (piece := cursor.fetchmany(_PIECE)):
                    result += piece
                    if not _numbers(piece):
                        texts = (each for row in piece for each in row if isinstance(each, _SIZED))
                        size += sum(map(len, texts))
        except MemoryError:  # a damaged length made SQLite allocate too much
            raise sqlite3.DataError("a value does not fit into memory") from None
        except UnicodeDecodeError:
            raise sqlite3.DatabaseError(_NO_TEXT) from None
        if size > most and not cut:
            raise sqlite3.DataError("the rows of a table are too large")
        return result


def _numbers(rows: list[tuple[JSON, ...]]) -> bool:
    """Whether the rows hold nothing but numbers and NULL."""
    try:
        sum(chain.from_iterable(rows))  # three times as fast as checking each type
    except TypeError:
        return _NUMBERS.issuperset(map(type, chain.from_iterable(rows)))
    return True


class _Effort:
    """SQLite's progress handler: aborts a statement that takes too long for its file size."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._spent = 0

    def begin(self) -> None:
        self._spent = 0

    def __call__(self) -> int:
        self._spent += _STRIDE
        if self._spent <= _INSTRUCTIONS:
            return 0
        try:
            size = os.stat(self._path).st_size
        except OSError:
            size = 0
        return int(self._spent > _INSTRUCTIONS + _PER_BYTE * size)


def connect(path: Path, mode: str, *, alone: bool = False) -> BoundedConnection:
    """Open an existing file; ``mode`` is ``"ro"``, or ``"rw"`` to roll back its journal.

    ``alone``: SQLite neither reads nor removes the files beside it.
    """
    uri = f"file:{quote(os.fsencode(path.absolute()))}?mode={mode}{'&immutable=1' * alone}"
    connection = sqlite3.connect(
        uri, uri=True, timeout=_PATIENCE_SECONDS, check_same_thread=False, factory=BoundedConnection
    )
    connection.effort = _Effort(path)
    connection.set_progress_handler(connection.effort, _STRIDE)
    try:
        connection.execute("PRAGMA trusted_schema=OFF")
        connection.execute("PRAGMA cell_size_check=ON")
        connection.execute("PRAGMA mmap_size=0")
    except sqlite3.Error:
        connection.close()
        raise
    if sys.version_info >= (3, 11):
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    return connection
