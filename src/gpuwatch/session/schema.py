"""The tables of a session file. ``docs/session-format.md`` explains every column."""

from __future__ import annotations

import re

APPLICATION_ID = 0x67707577
"""``gpuw``: marks the SQLite file as a gpuwatch session."""

VERSION = 5
"""``user_version``: incremented when a table changes; older versions stay readable."""

SUFFIX = ".gpuwatch"

TIER_SECONDS = 10
"""Length of a bucket in the coarse tier."""

TIER_STATS = ("count", "min", "mean", "max")
"""Statistics that the tier keeps for each channel and bucket; ``stat`` is the index."""

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
    "step_tier": (
        "CREATE TABLE step_tier (n INTEGER PRIMARY KEY, lines INTEGER NOT NULL, "
        "t INTEGER NOT NULL, start INTEGER NOT NULL, step INTEGER NOT NULL, "
        "count INTEGER NOT NULL, warmup INTEGER NOT NULL, partial INTEGER NOT NULL, "
        "samples REAL, taken REAL NOT NULL, times BLOB, weights BLOB, loss BLOB, phases TEXT, "
        "flop REAL, bytes REAL)"
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
"""Tables whose columns do not depend on the machine."""

_GPU_PROCESS_1 = (
    "CREATE TABLE gpu_process (n INTEGER PRIMARY KEY, t INTEGER NOT NULL, "
    "device TEXT NOT NULL, pid INTEGER NOT NULL, name TEXT, owned INTEGER NOT NULL, "
    "bytes INTEGER, running INTEGER NOT NULL)"
)
_GPU_PROCESS_2 = (
    "CREATE TABLE gpu_process (n INTEGER PRIMARY KEY, t INTEGER NOT NULL, "
    "device TEXT NOT NULL, pid INTEGER NOT NULL, name TEXT, owned INTEGER, "
    "bytes INTEGER, running INTEGER NOT NULL, kind TEXT, share REAL, reason TEXT)"
)
_SINCE = {"process": 2, "process_use": 2, "step_tier": 3, "rank": 5, "rank_step": 5}
"""Tables that older schemas lack, with their first version."""

_ADD_MEMORY_SHARE = "ALTER TABLE gpu_process ADD COLUMN memory_share REAL"
_ADD_RANKS = (TABLES["rank"], TABLES["rank_step"], f"PRAGMA user_version={VERSION}")

UPGRADES: dict[int, tuple[str, ...]] = {
    1: (
        "ALTER TABLE gpu_process RENAME TO gpu_process_1",
        TABLES["gpu_process"],
        "INSERT INTO gpu_process (n, t, device, pid, name, owned, bytes, running) "
        "SELECT n, t, device, pid, name, owned, bytes, running FROM gpu_process_1",
        "DROP TABLE gpu_process_1",
        TABLES["process"],
        TABLES["process_use"],
        TABLES["step_tier"],
        *_ADD_RANKS,
    ),
    2: (TABLES["step_tier"], _ADD_MEMORY_SHARE, *_ADD_RANKS),
    3: (_ADD_MEMORY_SHARE, *_ADD_RANKS),
    4: _ADD_RANKS,
}
"""By schema version: statements that upgrade a file to the present one, in one transaction."""

RESTATED_SECONDS = 60
"""A recorder writes every running process at least this often, so that the rows of one minute show
all processes at its end."""
MOST_PROCESSES = 64
"""Most processes that a recorder watches: those on GPUs first, then those with the most memory."""

_WIDE = {
    "tick": "CREATE TABLE tick (n INTEGER PRIMARY KEY, t INTEGER NOT NULL{columns})",
    "tier": (
        "CREATE TABLE tier (n INTEGER NOT NULL, stat INTEGER NOT NULL{columns}, "
        "PRIMARY KEY (n, stat)) WITHOUT ROWID"
    ),
}

# ALTER TABLE ADD COLUMN puts the new column after the table's constraints.
_WIDE_PATTERNS = {
    "tick": r"CREATE TABLE tick \(n INTEGER PRIMARY KEY, t INTEGER NOT NULL(, c\d+)*\)",
    "tier": (
        r"CREATE TABLE tier \(n INTEGER NOT NULL, stat INTEGER NOT NULL(, c\d+)*, "
        r"PRIMARY KEY \(n, stat\)(, c\d+)*\) WITHOUT ROWID"
    ),
}


def wide_table(name: str, channels: int) -> str:
    """``CREATE TABLE`` for ``tick`` or ``tier``, with a column ``cI`` for channel ``I``."""
    return _WIDE[name].format(columns="".join(f", c{index}" for index in range(channels)))


def tables(version: int) -> dict[str, str]:
    """:data:`TABLES` as a file of that schema has them."""
    tables = {name: sql for name, sql in TABLES.items() if version >= _SINCE.get(name, 1)}
    if version < 4:
        tables["gpu_process"] = _GPU_PROCESS_2 if version >= 2 else _GPU_PROCESS_1
    return tables


def is_expected(name: str, sql: str, version: int = VERSION) -> bool:
    """Whether a table of this name and definition belongs to this schema version."""
    known = tables(version)
    if name in known:
        return sql == known[name]
    return name in _WIDE_PATTERNS and re.fullmatch(_WIDE_PATTERNS[name], sql) is not None
