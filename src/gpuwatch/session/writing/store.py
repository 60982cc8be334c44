"""Creates a session file and writes transactions to it; knows nothing of threads."""

from __future__ import annotations

import contextlib
import enum
import errno
import os
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path

from gpuwatch.core import output
from gpuwatch.core.errors import StorageError
from gpuwatch.session import schema
from gpuwatch.session.rows import NOT_KNOWN
from gpuwatch.session.writing.statements import Row
from gpuwatch.session.writing.write_hints import write_hint
from gpuwatch.telemetry.base import Channel

_CACHE_KIB = 512
"""SQLite's page cache: a writer rereads few pages, and the default 2 MiB fill up within hours."""


class Durability(enum.Enum):
    """What a commit survives besides the death of its recorder."""

    MACHINE = "PRAGMA synchronous=FULL"
    """A crash of the machine."""
    NEARLY = "PRAGMA synchronous=NORMAL"
    """A crash of the machine, except for the last commit before it."""
    RECORDER = "PRAGMA synchronous=OFF"
    """Nothing else; for a recording that nobody keeps."""


class SessionStore:
    """A session file open for writing. One thread at a time may use it."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._file = _file(path)
        self._held: sqlite3.Cursor | None = None

    @property
    def gone(self) -> bool:
        """Whether the file was deleted or replaced; ``False`` if that cannot be checked."""
        try:
            return _file(self.path) != self._file
        except OSError:  # no permission to enter the folder: that can be fixed
            return False

    @classmethod
    def create(
        cls,
        path: Path,
        channels: Sequence[tuple[Channel, str, str]],
        rows: Iterable[Row] = (),
        safety: Durability = Durability.MACHINE,
    ) -> SessionStore:
        """Create a file, mode 0600, that holds ``rows`` from the start.

        ``channels``: each channel with its unit and kind, in the order of the columns. The file
        gets its name only when it is a valid session.

        Raises:
            StorageError: the file exists, or cannot be created or written.
        """
        new, journal = path.with_name(f".{path.name}.new"), path.with_name(f"{path.name}-journal")
        statements: list[Row] = [(sql, ()) for sql in schema.TABLES.values()]
        statements.append((schema.tick_table(len(channels)), ()))
        for index, (channel, unit, kind) in enumerate(channels):
            statements.append(_channel_row(index, channel, unit, kind))
        try:
            if path.exists():
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
            new.unlink(missing_ok=True)  # left by a crash
            os.close(output.private_file(str(new), os.O_CREAT | os.O_EXCL))
            store = cls(new, _connect(new, safety))
            try:
                store._connection.execute(f"PRAGMA application_id={schema.APPLICATION_ID}")
                store._connection.execute(f"PRAGMA user_version={schema.VERSION}")
                store.write([*statements, *rows])
            finally:
                store.close()
            # A file that was never closed and has no journal looks like a lone copy.
            os.close(output.private_file(str(journal), os.O_CREAT))
            new.rename(path)
        except (OSError, sqlite3.Error) as error:
            leftovers = [new, Path(f"{new}-journal")]
            if not os.path.exists(path):  # else the journal belongs to the existing session
                leftovers.append(journal)
            for leftover in leftovers:
                with contextlib.suppress(OSError):
                    leftover.unlink()
            raise StorageError(
                f"cannot write {path}: {getattr(error, 'strerror', None) or error}",
                f"{write_hint(path, error)} or choose another --out",
            ) from error
        return cls.reopen(path, safety)

    @classmethod
    def reopen(cls, path: Path, safety: Durability = Durability.MACHINE) -> SessionStore:
        """Open an existing file to go on writing; rolls back an unfinished transaction."""
        try:
            return cls(path, _connect(path, safety))
        except sqlite3.Error as error:
            raise StorageError(f"cannot write {path}: {error}", write_hint(path, error)) from error

    def channels(self) -> list[tuple[str, str]]:
        """``(device, metric)`` of every column, in order."""
        return list(self._connection.execute("SELECT device, metric FROM channel ORDER BY id"))

    def channel_states(self) -> list[tuple[str, str, str | None]]:
        """Current method, source and reason of every column, in order."""
        sql = (
            "SELECT coalesce(change.method, channel.method), "
            "coalesce(change.source, channel.source), "
            "CASE WHEN change.n IS NULL THEN channel.reason ELSE change.reason END "
            "FROM channel LEFT JOIN change ON change.n = "
            "(SELECT max(n) FROM change AS later WHERE later.channel = channel.id) ORDER BY id"
        )
        return list(self._connection.execute(sql))

    def add_channels(self, start: int, channels: Sequence[tuple[Channel, str, str]]) -> None:
        """Append columns, numbered from ``start`` on."""
        rows: list[Row] = []
        for index, (channel, unit, kind) in enumerate(channels, start):
            rows.append((f"ALTER TABLE tick ADD COLUMN c{index}", ()))
            rows.append(_channel_row(index, channel, unit, kind))
        self.write(rows)

    def last(self, table: str) -> int:
        """The highest ``n`` of a table; -1 if it is empty."""
        value = self._connection.execute(f"SELECT max(n) FROM {table}").fetchone()[0]  # noqa: S608
        return -1 if value is None else int(value)

    def last_steps(self) -> dict[bool, int]:
        """The number of the last step, of the warm-up (``True``) and after it."""
        sql = f"SELECT {schema.WARMUP} AS warm, max(step) FROM step GROUP BY warm"  # noqa: S608
        return {bool(warmup): int(step) for warmup, step in self._connection.execute(sql)}

    def last_rank_steps(self) -> dict[tuple[int, bool], int]:
        """The same by rank."""
        sql = f"SELECT rank, {schema.WARMUP} AS warm, max(step) FROM rank_step GROUP BY rank, warm"  # noqa: S608
        rows = self._connection.execute(sql)
        return {(int(rank), bool(warmup)): int(step) for rank, warmup, step in rows}

    def events_of(self, kind: str) -> frozenset[str]:
        """The texts of the events of a kind."""
        sql = "SELECT DISTINCT text FROM event WHERE kind = ?"
        return frozenset(str(text) for (text,) in self._connection.execute(sql, (kind,)))

    def gpus_used(self) -> dict[str, bool | None]:
        """Whether the run uses each GPU, by its ID; ``None``: not known."""
        rows = self._connection.execute("SELECT id, used FROM device WHERE kind = 'gpu'")
        return {id_: None if used == NOT_KNOWN else bool(used) for id_, used in rows}

    def gpus_seen(self) -> dict[str, int]:
        """By GPU on which a process of the run was seen: the most bytes that one held."""
        sql = "SELECT device, max(bytes) FROM gpu_process WHERE owned = 1 GROUP BY device"
        return {device: most or 0 for device, most in self._connection.execute(sql)}

    def log_lengths(self) -> list[tuple[int, int]]:
        """Number and length in bytes of the log lines."""
        sql = "SELECT n, length(CAST(text AS BLOB)) FROM log ORDER BY n"
        return self._connection.execute(sql).fetchall()

    def open_ticks(self) -> list[tuple[int, int, list[int | float | None]]]:
        """``(n, t, values)`` of the ticks of the open minute."""
        rows = self._connection.execute("SELECT * FROM tick ORDER BY n")
        return [(n, t, values) for n, t, *values in rows]

    def write(self, rows: Iterable[Row]) -> None:
        """Write ``rows`` in one transaction, all or none.

        After the first one, a shared lock is held: SQLite then keeps the journal open, which saves
        a check of the file and a sync of its folder in each transaction.

        Raises:
            sqlite3.Error: none of the rows is in the file; they may be written again later.
        """
        execute = self._connection.execute
        if self.gone:  # SQLite checks that only when it opens a journal
            raise sqlite3.OperationalError("the file was deleted or replaced")
        execute("BEGIN IMMEDIATE")
        try:
            for sql, values in rows:
                execute(sql, values)
            execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                execute("ROLLBACK")
            self._release()  # SQLite recovers from a full disk only if nobody reads
            raise
        if self._held is None:
            self._held = execute("SELECT 1 FROM sqlite_master")

    def close(self, *, whole: bool = True) -> None:
        """Close the file; a complete session has no journal beside it.

        One that is not ``whole`` keeps its journal, which tells it from a lone copy.
        """
        self._release()
        if whole:
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("PRAGMA journal_mode=DELETE")
        with contextlib.suppress(sqlite3.Error):
            self._connection.close()

    def _release(self) -> None:
        if self._held is not None:
            self._held.close()
            self._held = None


def _channel_row(index: int, channel: Channel, unit: str, kind: str) -> Row:
    how = channel.method.value, channel.source, channel.reason
    row = index, channel.device, channel.metric, unit, kind, *how
    return "INSERT INTO channel VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row


def _file(path: Path) -> tuple[int, int] | None:
    """Device and inode, to detect a replaced file; ``None`` for a missing file."""
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_dev, status.st_ino


def _connect(path: Path, safety: Durability) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, timeout=0.5, isolation_level=None, check_same_thread=False, cached_statements=64
    )
    connection.execute("PRAGMA trusted_schema=OFF")
    connection.execute("PRAGMA journal_mode=TRUNCATE")
    connection.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
    connection.execute(safety.value)
    return connection
