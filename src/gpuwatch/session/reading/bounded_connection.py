"""A connection to a file that may be anybody's: what SQLite does for it, and gives, is bounded."""

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
"""Of all texts and blobs of one answer."""
_PIECE = 8
"""Rows that are taken before their size is looked at."""
_STRIDE = 100_000
"""Instructions of SQLite's machine between two looks at how many there were."""
_INSTRUCTIONS, _PER_BYTE = 20_000_000, 10
"""A statement may take so many, and so many more for each byte of the file. Reading a whole table
takes less than two for a byte; pages that lead in a circle take any number."""
_PATIENCE_SECONDS = 10.0
"""For a file that is locked: a recorder locks it until its commit is on the disk, which takes
seconds where others write to that disk as well."""
_NO_TEXT = "a name in it is no text"
"""Of a name that SQLite has words about, which Python cannot read."""
_NUMBERS = frozenset({int, float, type(None)})


class BoundedConnection(sqlite3.Connection):
    """Made by :func:`connect`."""

    effort: _Effort

    def execute(self, sql: str, values: Any = (), /) -> sqlite3.Cursor:
        """As SQLite's, and of the same errors alone."""
        try:
            return super().execute(sql, values)
        except UnicodeDecodeError:
            raise sqlite3.DatabaseError(_NO_TEXT) from None

    def rows(
        self,
        sql: str,
        values: Sequence[object] = (),
        *,
        cut: bool = False,
        most: int = MOST_BYTES,
    ) -> list[tuple[JSON, ...]]:
        """The rows of one statement; with ``cut`` the first of them, one at least, where their
        texts and blobs have more than ``most`` bytes.

        Raises:
            sqlite3.Error: whatever SQLite finds; an answer that is too large, or takes too long.
        """
        self.effort.begin()
        try:
            return self._found(sql, values, cut=cut, most=most)
        except MemoryError:  # SQLite asked for as much as a damaged length says
            raise sqlite3.DataError("a value is larger than the memory") from None
        except UnicodeDecodeError:
            raise sqlite3.DatabaseError(_NO_TEXT) from None

    def _found(
        self, sql: str, values: Sequence[object], *, cut: bool, most: int
    ) -> list[tuple[JSON, ...]]:
        found: list[tuple[JSON, ...]] = []
        size = 0
        # Closed at once: a statement that is not done keeps the file open.
        with closing(self.execute(sql, tuple(values))) as cursor:
            while piece := cursor.fetchmany(_PIECE):
                found += piece
                if _numbers(piece):
                    continue
                size += sum(len(v) for row in piece for v in row if isinstance(v, (str, bytes)))
                if size > most:
                    if not cut:
                        raise sqlite3.DataError("what stands in a table is too large")
                    break
        return found


def _numbers(rows: list[tuple[JSON, ...]]) -> bool:
    """Whether nothing else stands in them."""
    try:
        sum(chain.from_iterable(rows))  # a third of the time of looking at each type
    except TypeError:
        return _NUMBERS.issuperset(map(type, chain.from_iterable(rows)))
    return True


class _Effort:
    """SQLite's progress handler: ends a statement that does more than its file has room for."""

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
    """Open a file that is there: ``mode`` is ``"ro"``, or ``"rw"`` to roll its journal back.

    ``alone``: whatever lies beside it, SQLite neither looks at it nor removes it.
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
