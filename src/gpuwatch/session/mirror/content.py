"""What a session holds, as digests: of a row, and of the whole."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from gpuwatch.session.mirror.tables import KEYED, LOCAL, NUMBERED, Row
from gpuwatch.session.reading.bounded_connection import BoundedConnection
from gpuwatch.session.reading.open import open_session

_PIECE = 500
"""Rows digested at once; part of the definition."""
_ORDERS = {
    "channel": "id",
    **{table: ", ".join(keys) for table, keys in KEYED.items()},
    **dict.fromkeys(NUMBERED, "n"),
}
_encode = json.JSONEncoder(default=bytes.hex, separators=(",", ":")).encode


def row_digest(rows: Sequence[Row]) -> str:
    """A short digest of some rows."""
    return hashlib.blake2b(_encode(rows).encode(), digest_size=8).hexdigest()


def digest(connection: BoundedConnection, between: Callable[[], None] = lambda: None) -> str:
    """A digest over all tables in the order of their keys, without the keys of ``meta`` that
    :data:`LOCAL` names. ``between`` is called after every few rows.

    Raises:
        sqlite3.Error: the file is damaged.
    """
    total = hashlib.blake2b(digest_size=16)
    for table in sorted(_ORDERS):
        total.update(table.encode())
        sql = f"SELECT * FROM {table}{_CONDITIONS.get(table, '')} ORDER BY {_ORDERS[table]}"  # noqa: S608
        connection.effort.begin()
        with closing(connection.execute(sql)) as cursor:
            while rows := cursor.fetchmany(_PIECE):
                total.update(_encode(rows).encode())
                between()
    return total.hexdigest()


_CONDITIONS = {"meta": f" WHERE key NOT IN ({', '.join(map(repr, sorted(LOCAL)))})"}


def digest_of(path: Path, between: Callable[[], None] = lambda: None) -> str:
    """The digest of a session file that nobody writes.

    Raises:
        GpuwatchError: it cannot be read.
        sqlite3.Error: it is damaged.
    """
    with closing(open_session(path, lambda _: False)) as opened:
        return digest(opened.connection, between)
