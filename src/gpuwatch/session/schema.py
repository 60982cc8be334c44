"""The tables of a session file. ``docs/session-format.md`` explains every column."""

from __future__ import annotations

APPLICATION_ID = 0x67707577
"""``gpuw``: marks the SQLite file as a gpuwatch session."""

VERSION = 7
"""``user_version``: incremented when a table changes."""

SUFFIX = ".gpuwatch"

MINUTE_NS = 60_000_000_000
"""Samples are kept by minute, ``t // MINUTE_NS``."""
MOST_CHANNELS = 2048
"""A row of ``sample`` has the number of its minute times this, plus the channel's."""
BUCKET_SECONDS = 10
"""Time whose step lines, where they are very many, are read together."""

WARMUP = (
    "(warmup OR t <= (SELECT coalesce(max(CAST(value AS INTEGER)), -1) FROM meta "
    "WHERE key = 'evaluated_until'))"
)
"""Whether a row of steps is in no statistic: of the warm-up, or of what was taken for inference
before a training began."""

TABLES: dict[str, str] = {
    "meta": "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "device": (
        "CREATE TABLE device (id TEXT PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL, "
        "uuid TEXT, used INTEGER NOT NULL, attributes TEXT NOT NULL) WITHOUT ROWID"
    ),
    "channel": (
        "CREATE TABLE channel (id INTEGER PRIMARY KEY, device TEXT NOT NULL, metric TEXT NOT NULL, "
        "unit TEXT NOT NULL, kind TEXT NOT NULL, method TEXT NOT NULL, source TEXT NOT NULL, "
        "reason TEXT)"
    ),
    "change": (
        "CREATE TABLE change (n INTEGER PRIMARY KEY, t INTEGER NOT NULL, channel INTEGER NOT NULL, "
        "method TEXT NOT NULL, source TEXT NOT NULL, reason TEXT)"
    ),
    "minute": (
        "CREATE TABLE minute (n INTEGER PRIMARY KEY, last INTEGER NOT NULL, times BLOB NOT NULL)"
    ),
    "sample": "CREATE TABLE sample (n INTEGER PRIMARY KEY, samples BLOB NOT NULL)",
    "step": (
        "CREATE TABLE step (n INTEGER PRIMARY KEY, t INTEGER NOT NULL, step INTEGER NOT NULL, "
        "count INTEGER NOT NULL, warmup INTEGER NOT NULL, samples REAL, seconds BLOB, loss BLOB, "
        "acc1 BLOB, acc5 BLOB, phases TEXT, partial TEXT, flop REAL, bytes REAL)"
    ),
    "log": (
        "CREATE TABLE log (n INTEGER PRIMARY KEY, t INTEGER NOT NULL, stream TEXT NOT NULL, "
        "text TEXT NOT NULL)"
    ),
    "event": (
        "CREATE TABLE event (n INTEGER PRIMARY KEY, t INTEGER NOT NULL, kind TEXT NOT NULL, "
        "device TEXT, text TEXT NOT NULL)"
    ),
    "fact": (
        "CREATE TABLE fact (scope TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, "
        "PRIMARY KEY (scope, key)) WITHOUT ROWID"
    ),
    "gpu_process": (
        "CREATE TABLE gpu_process (n INTEGER PRIMARY KEY, t INTEGER NOT NULL, "
        "device TEXT NOT NULL, pid INTEGER NOT NULL, name TEXT, owned INTEGER, "
        "bytes INTEGER, running INTEGER NOT NULL, kind TEXT, share REAL, reason TEXT, "
        "memory_share REAL)"
    ),
    "process": (
        "CREATE TABLE process (n INTEGER PRIMARY KEY, t INTEGER NOT NULL, pid INTEGER NOT NULL, "
        "started INTEGER, name TEXT, user TEXT, place TEXT, owned INTEGER, "
        "running INTEGER NOT NULL, reason TEXT)"
    ),
    "process_use": (
        "CREATE TABLE process_use (n INTEGER PRIMARY KEY, t INTEGER NOT NULL, "
        "pid INTEGER NOT NULL, cores REAL, resident INTEGER)"
    ),
    "rank": (
        "CREATE TABLE rank (rank INTEGER PRIMARY KEY, local_rank INTEGER, world_size INTEGER, "
        "pid INTEGER, device TEXT, cpu_nodes TEXT, gpu_node INTEGER, sharded INTEGER)"
    ),
    "rank_step": (
        "CREATE TABLE rank_step (n INTEGER PRIMARY KEY, t INTEGER NOT NULL, "
        "rank INTEGER NOT NULL, step INTEGER NOT NULL, count INTEGER NOT NULL, "
        "warmup INTEGER NOT NULL, samples REAL, tokens REAL, seconds REAL, phases TEXT, "
        "flop REAL)"
    ),
}
"""Tables whose columns do not depend on the machine: all but ``tick``."""

RESTATED_SECONDS = 60
"""A recorder writes every running process at least this often, so that the rows of one minute show
all processes at its end."""
MOST_PROCESSES = 64
"""Most processes that a recorder watches: those on GPUs first, then those with the most memory."""


def tick_table(channels: int) -> str:
    """``CREATE TABLE`` for ``tick``, with a column ``cI`` for channel ``I``."""
    columns = "".join(f", c{index}" for index in range(channels))
    return f"CREATE TABLE tick (n INTEGER PRIMARY KEY, t INTEGER NOT NULL{columns})"


def is_expected(name: str, sql: str) -> bool:
    """Whether a session has a table of this name and definition."""
    if name == "tick":
        return sql == tick_table(sql.count(", c"))
    return TABLES.get(name) == sql
