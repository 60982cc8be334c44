"""How much of a session a copy has: all that decides what is carried next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON, mapping
from gpuwatch.session.mirror.content import row_digest
from gpuwatch.session.mirror.tables import KEYED, LOCAL, NUMBERED, REPLACED, Batch, Key, Row
from gpuwatch.session.reading.bounded_connection import BoundedConnection
from gpuwatch.session.reading.parsed import json_of

Piece = tuple[int, int]
"""First and last number of consecutive rows."""


@dataclass
class Cursor:
    """Begins empty, and goes on with every batch, in the same way on both sides."""

    session: str
    channels: int = 0
    last: dict[str, int] = field(default_factory=dict)
    """The last row number by numbered table."""
    newest: dict[str, str] = field(default_factory=dict)
    """The digest of the rows with that number, of tables that may write them again."""
    log: list[Piece] = field(default_factory=list)
    """The lines of the log."""
    keyed: dict[str, dict[Key, str]] = field(default_factory=lambda: {name: {} for name in KEYED})
    """The digest of each row, by keyed table and key."""

    def advance(self, batch: Batch) -> None:
        """Go on by what ``batch`` carries."""
        self.channels += len(batch.channels)
        if batch.removed:
            self.log = without(self.log, batch.removed)
        for table, rows in batch.rows.items():
            self.last[table] = last = rows[-1][0]
            if table == "minute":  # its ticks are gone
                self.last["tick"] = max(self.last.get("tick", -1), rows[-1][1])
            elif table in REPLACED:
                self.newest[table] = row_digest([row for row in rows if row[0] == last])
            elif table == "log":
                self.log = joined([*self.log, *((row[0], row[0]) for row in rows)])
        for table, keys in batch.gone.items():
            for key in keys:
                self.keyed[table].pop(key, None)
        for table, rows in batch.put.items():
            width = len(KEYED[table])
            self.keyed[table].update((row[:width], row_digest([row])) for row in rows)

    def document(self) -> dict[str, JSON]:
        """As JSON."""
        keyed = {
            table: [[*key, digest] for key, digest in digests.items()]
            for table, digests in self.keyed.items()
        }
        return {**vars(self), "keyed": keyed}


def parse(document: JSON) -> Cursor:
    """A cursor from :meth:`Cursor.document`.

    Raises:
        ValueError, TypeError, KeyError: it is none.
    """
    keyed = {
        table: {tuple(key): str(digest) for *key, digest in document["keyed"][table]}
        for table in KEYED
    }
    return Cursor(
        session=str(document["session"]),
        channels=int(document["channels"]),
        last={str(table): int(n) for table, n in mapping(document["last"]).items()},
        newest={str(table): str(text) for table, text in mapping(document["newest"]).items()},
        log=[(int(first), int(last)) for first, last in document["log"]],
        keyed=keyed,
    )


def cursor_of(connection: BoundedConnection) -> Cursor:
    """The cursor of a copy.

    Raises:
        sqlite3.Error: the file is damaged.
    """
    ((channels,),) = connection.rows("SELECT count(*) FROM channel")
    cursor = Cursor(session_id(connection) or "", channels)
    for table in NUMBERED:
        ((last,),) = connection.rows(f"SELECT max(n) FROM {table}")  # noqa: S608
        if last is None:
            continue
        cursor.last[table] = last
        if table in REPLACED:
            sql = f"SELECT * FROM {table} WHERE n = ?"  # noqa: S608
            cursor.newest[table] = row_digest(connection.rows(sql, (last,)))
    ((packed,),) = connection.rows("SELECT max(last) FROM minute")
    if packed is not None:
        cursor.last["tick"] = max(cursor.last.get("tick", -1), packed)
    cursor.log = log_pieces(connection)
    for table in KEYED:
        cursor.keyed[table] = {
            row[: len(KEYED[table])]: row_digest([row]) for row in keyed_rows(connection, table)
        }
    return cursor


def session_id(connection: BoundedConnection) -> str | None:
    """The id of a session; ``None``: it has none yet."""
    rows = connection.rows("SELECT value FROM meta WHERE key = 'session'")
    return id_in(rows[0][0]) if rows else None


def id_in(value: JSON) -> str | None:
    """The id in the value of ``session`` in ``meta``."""
    found = mapping(json_of(value)).get("id")
    return found if isinstance(found, str) and found else None


def keyed_rows(connection: BoundedConnection, table: str) -> list[Row]:
    """The rows of a keyed table that are carried."""
    rows = connection.rows(f"SELECT * FROM {table} ORDER BY {', '.join(KEYED[table])}")  # noqa: S608
    return [row for row in rows if table != "meta" or row[0] not in LOCAL]


def log_pieces(connection: BoundedConnection) -> list[Piece]:
    """The numbers of the log's lines, as pieces of consecutive ones."""
    return [
        (first, last)
        for first, last in connection.rows(
            "SELECT min(n), max(n) FROM "
            "(SELECT n, n - row_number() OVER (ORDER BY n) AS piece FROM log) "
            "GROUP BY piece ORDER BY 1"
        )
    ]


def joined(pieces: Sequence[Piece]) -> list[Piece]:
    """Pieces in order, with neighbours made one."""
    result: list[Piece] = []
    for first, last in pieces:
        if result and result[-1][1] + 1 >= first:
            result[-1] = result[-1][0], max(last, result[-1][1])
        else:
            result.append((first, last))
    return result


def without(pieces: Sequence[Piece], removed: Sequence[Piece]) -> list[Piece]:
    """What is left of ``pieces`` without ``removed``; both are in order."""
    for first, last in removed:
        pieces = [
            rest
            for piece in pieces
            for rest in ((piece[0], min(piece[1], first - 1)), (max(piece[0], last + 1), piece[1]))
            if rest[0] <= rest[1]
        ]
    return list(pieces)
