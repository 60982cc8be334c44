"""Writing one session file: creation, transactions, and nothing of threads."""

from __future__ import annotations

import contextlib
import enum
import errno
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from gpuwatch.core import output
from gpuwatch.core.errors import StorageError
from gpuwatch.session import schema
from gpuwatch.session.rows import NOT_KNOWN
from gpuwatch.session.writing.statements import Row
from gpuwatch.session.writing.write_hints import room
from gpuwatch.telemetry.base import Channel

_CACHE_KIB = 512
"""Of pages that a writer keeps; it goes back to few, and SQLite's own 2 MiB fill up in hours."""


class Durability(enum.Enum):
    """What a commit survives beside the end of its recorder, which all survive."""

    MACHINE = "PRAGMA synchronous=FULL"
    """A failure of the machine."""
    NEARLY = "PRAGMA synchronous=NORMAL"
    """That too, but for the last commit before it."""
    RECORDER = "PRAGMA synchronous=OFF"
    """Nothing else: of a recording that nobody keeps."""


class SessionStore:
    """A session file open for writing. Used by one thread at a time."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._file = _file(path)
        self._held: sqlite3.Cursor | None = None

    @property
    def gone(self) -> bool:
        """Whether the file was deleted, or another one has its name by now; ``False`` while that
        cannot be seen."""
        try:
            return _file(self.path) != self._file
        except OSError:  # a folder that may not be entered: that can be fixed
            return False

    @classmethod
    def create(
        cls,
        path: Path,
        channels: Sequence[tuple[Channel, str, str]],
        rows: Iterable[Row] = (),
        safety: Durability = Durability.MACHINE,
    ) -> SessionStore:
        """Make a new file, readable by its owner alone, that holds ``rows`` from the start.

        ``channels`` gives each channel with its unit and kind; their order is that of the columns.
        The file appears under its name only once it is a session.

        Raises:
            StorageError: the file exists, or cannot be made or written.
        """
        new, journal = path.with_name(f".{path.name}.new"), path.with_name(f"{path.name}-journal")
        statements: list[Row] = [(sql, ()) for sql in schema.TABLES.values()]
        statements += [(schema.wide_table(name, len(channels)), ()) for name in ("tick", "tier")]
        for index, (channel, unit, kind) in enumerate(channels):
            statements.append(_channel_row(index, channel, unit, kind))
        try:
            if path.exists():
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
            new.unlink(missing_ok=True)  # of one that crashed
            os.close(output.private_file(str(new), os.O_CREAT | os.O_EXCL))
            making = cls(new, _connect(new, safety))
            try:
                making._connection.execute(f"PRAGMA application_id={schema.APPLICATION_ID}")
                making._connection.execute(f"PRAGMA user_version={schema.VERSION}")
                making.write([*statements, *rows])
            finally:
                making.close()
            # Without a journal beside it a file that is not closed looks like a copy.
            os.close(output.private_file(str(journal), os.O_CREAT))
            new.rename(path)
        except (OSError, sqlite3.Error) as error:
            left = [new, Path(f"{new}-journal")]
            if not os.path.exists(path):  # else the journal is of the session that is there
                left.append(journal)
            for each in left:
                with contextlib.suppress(OSError):
                    each.unlink()
            raise StorageError(
                f"cannot write {path}: {getattr(error, 'strerror', None) or error}",
                f"{room(path, error)} or choose another --out",
            ) from error
        return cls.reopen(path, safety)

    @classmethod
    def reopen(cls, path: Path, safety: Durability = Durability.MACHINE) -> SessionStore:
        """Open an existing file to go on writing; a broken transaction is rolled back.

        A file of an older schema becomes one of the present schema.
        """
        try:
            store = cls(path, _connect(path, safety))
            ((version,),) = store._connection.execute("PRAGMA user_version")
            if version in schema.UPGRADES:
                store.write([(sql, ()) for sql in schema.UPGRADES[version]])
            return store
        except sqlite3.Error as error:
            raise StorageError(f"cannot write {path}: {error}", room(path, error)) from error

    def channels(self) -> list[tuple[str, str]]:
        """``(device, metric)`` of every column, in order."""
        return list(self._connection.execute("SELECT device, metric FROM channel ORDER BY id"))

    def channel_states(self) -> list[tuple[str, str, str | None]]:
        """Method, source and reason of every column, in order, as the last change left them."""
        sql = (
            "SELECT coalesce(change.method, channel.method), "
            "coalesce(change.source, channel.source), "
            "CASE WHEN change.n IS NULL THEN channel.reason ELSE change.reason END "
            "FROM channel LEFT JOIN change ON change.n = "
            "(SELECT max(n) FROM change AS later WHERE later.channel = channel.id) ORDER BY id"
        )
        return list(self._connection.execute(sql))

    def add_channels(self, start: int, channels: Sequence[tuple[Channel, str, str]]) -> None:
        """Append columns, the first numbered ``start``."""
        rows: list[Row] = []
        for index, (channel, unit, kind) in enumerate(channels, start):
            rows.append((f"ALTER TABLE tick ADD COLUMN c{index}", ()))
            rows.append((f"ALTER TABLE tier ADD COLUMN c{index}", ()))
            rows.append(_channel_row(index, channel, unit, kind))
        self.write(rows)

    def last(self, table: str) -> int:
        """The highest ``n`` of a table, -1 when it is empty."""
        value = self._connection.execute(f"SELECT max(n) FROM {table}").fetchone()[0]  # noqa: S608
        return -1 if value is None else int(value)

    def gpus_used(self) -> dict[str, bool | None]:
        """Of each GPU what is known of its use."""
        rows = self._connection.execute("SELECT id, used FROM device WHERE kind = 'gpu'")
        return {id_: None if used == NOT_KNOWN else bool(used) for id_, used in rows}

    def gpus_seen(self) -> set[str]:
        """The GPUs on which a process of the run was listed."""
        sql = "SELECT DISTINCT device FROM gpu_process WHERE owned = 1"
        return {device for (device,) in self._connection.execute(sql)}

    def log_lengths(self) -> list[tuple[int, int]]:
        """Number and length in bytes of the log lines."""
        sql = "SELECT n, length(CAST(text AS BLOB)) FROM log ORDER BY n"
        return self._connection.execute(sql).fetchall()

    def ticks_since(self, t: int) -> Iterator[tuple[int, list[int | float | None]]]:
        """``(t, values)`` of the ticks from ``t`` nanoseconds on: what the tier still lacks."""
        rows = self._connection.execute("SELECT * FROM tick WHERE t >= ? ORDER BY n", (t,))
        return ((row[1], list(row[2:])) for row in rows.fetchall())

    def write(self, rows: Iterable[Row]) -> None:
        """One transaction: all of ``rows`` or none.

        From the first one on the lock that readers share is held: SQLite keeps the journal open
        then, and saves a look at the file and a wait for its folder in each transaction.

        Raises:
            sqlite3.Error: the rows are not in the file and may be written again later.
        """
        execute = self._connection.execute
        if self.gone:  # SQLite looks for that only where it opens a journal
            raise sqlite3.OperationalError("the file was deleted or replaced")
        execute("BEGIN IMMEDIATE")
        try:
            for sql, values in rows:
                execute(sql, values)
            execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                execute("ROLLBACK")
            self._release()  # SQLite gets over a full disk only once nothing reads any more
            raise
        if self._held is None:
            self._held = execute("SELECT 1 FROM sqlite_master")

    def close(self, *, whole: bool = True) -> None:
        """Close it; a finished session is one file, without a journal beside it.

        One that is not ``whole`` keeps its journal, by which it is known from a lone copy.
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
    return (
        "INSERT INTO channel VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            index,
            channel.device,
            channel.metric,
            unit,
            kind,
            channel.method.value,
            channel.source,
            channel.reason,
        ),
    )


def _file(path: Path) -> tuple[int, int] | None:
    """What tells the file from another of its name; ``None`` where there is none."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


def _connect(path: Path, safety: Durability) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, timeout=0.5, isolation_level=None, check_same_thread=False, cached_statements=64
    )
    connection.execute("PRAGMA trusted_schema=OFF")
    connection.execute("PRAGMA journal_mode=TRUNCATE")
    connection.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
    connection.execute(safety.value)
    return connection
