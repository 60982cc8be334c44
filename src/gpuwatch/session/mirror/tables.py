"""Which tables of a session are carried in which way, and what their rows may hold."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cache
from itertools import chain

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON
from gpuwatch.session import schema
from gpuwatch.session.reading import limits

Row = tuple[JSON, ...]
Key = tuple[JSON, ...]

NUMBERED = (
    *("change", "sample", "minute", "tick", "step", "rank_step"),
    *("log", "event", "gpu_process", "process", "process_use"),
)
"""Tables whose rows are numbered, in the order in which they are carried: a minute stands after its
samples."""
REPLACED = frozenset({"tick"})
"""Those whose newest number may be written again, by a recorder that takes over a run."""
KEYED: Mapping[str, tuple[str, ...]] = {
    "device": ("id",),
    "fact": ("scope", "key"),
    "meta": ("key",),
    "rank": ("rank",),
}
"""Tables whose rows are replaced and removed, and their keys."""
MOST_KEYS: Mapping[str, int] = {
    "device": limits.DEVICES,
    "fact": limits.FACTS,
    "meta": limits.KEYS,
    "rank": limits.RANKS,
}
LOCAL = frozenset({"handle", "recorder"})
"""Keys of ``meta`` that name processes of the machine where the run is recorded. A copy has none of
them, so that nobody takes them for processes of its own machine."""
CLOSING = frozenset({"result", "closed"})
"""Keys of ``meta`` that are carried last: a session with a result is complete."""
LONGEST_VALUE = 7 << 20
"""Bytes of the texts and blobs of the longest row that is carried."""


class BadRows(Exception):
    """Rows that no recorder writes, or that do not follow from what is in the copy."""


@dataclass(frozen=True)
class Batch:
    """What changed in one session; written in one transaction."""

    file: str
    session: str
    """The id of the session, which tells a file from another of the same name."""
    new: bool = False
    """Whether the file is yet to be created."""
    channels: Sequence[Row] = ()
    """Further rows of ``channel``, each with a further column in ``tick``."""
    removed: Sequence[tuple[int, int]] = ()
    """Lines that were dropped from the log: the first and the last of each piece."""
    rows: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    """Further rows of numbered tables."""
    put: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    """New or changed rows of keyed tables."""
    gone: Mapping[str, Sequence[Key]] = field(default_factory=dict)
    """Keys that keyed tables no longer have."""

    @property
    def meta(self) -> dict[str, str]:
        """The rows of ``meta`` in it."""
        return {str(key): str(value) for key, value in self.put.get("meta", ())}


_TYPES: Mapping[str, frozenset[type]] = {
    "INTEGER": frozenset({int}),
    "REAL": frozenset({int, float}),
    "TEXT": frozenset({str}),
    "BLOB": frozenset({bytes}),
}
_NUMBERS = frozenset({int, float, type(None)})
_OWN_COLUMNS = 2
"""Columns of ``tick`` before those of the channels."""
_NOT_COLUMNS = re.compile(r", PRIMARY KEY \(.*\)$")


@cache
def _columns(table: str) -> tuple[frozenset[type], ...]:
    """The types that a value may have, by column."""
    sql = schema.TABLES[table]
    body = _NOT_COLUMNS.sub("", sql[sql.index("(") + 1 : sql.rindex(")")])
    return tuple(map(_column, body.split(", ")))


def _column(definition: str) -> frozenset[type]:
    _, kind, *rest = definition.split(" ")
    return _TYPES[kind] if rest else _TYPES[kind] | {type(None)}


@cache
def has_blobs(table: str) -> bool:
    """Whether a table has columns for blobs."""
    return table in schema.TABLES and any(bytes in types for types in _columns(table))


def width(table: str, channels: int) -> int:
    """The number of columns of a table in a file with so many channels."""
    return len(_columns(table)) if table in schema.TABLES else _OWN_COLUMNS + channels


def check(table: str, rows: Sequence[Row], channels: int) -> None:
    """Check the types of all values against the schema.

    Raises:
        BadRows: a row is too short or too long, or a value has another type or is too long.
    """
    count = width(table, channels)
    if any(len(row) != count for row in rows):
        raise BadRows(f"a row of {table} with another number of columns")
    if table in REPLACED:
        numbers = chain.from_iterable(row[:_OWN_COLUMNS] for row in rows)
        if not _TYPES["INTEGER"].issuperset(map(type, numbers)) or not _NUMBERS.issuperset(
            map(type, chain.from_iterable(rows))
        ):
            raise BadRows(f"a value of another type in {table}")
        return
    for types, values in zip(_columns(table), zip(*rows, strict=True), strict=False):
        if not types.issuperset(map(type, values)):
            raise BadRows(f"a value of another type in {table}")
        if types & {str, bytes}:
            check_lengths([value for value in values if value is not None], table)


def check_lengths(values: Sequence[str | bytes], table: str) -> None:
    """Raise :class:`BadRows` for a value that is too long, or is not text."""
    if max(map(len, values), default=0) > LONGEST_VALUE:
        raise BadRows(f"a value in {table} that is too long")
    try:
        for value in values:
            if isinstance(value, str) and not value.isascii():
                value.encode()
    except UnicodeEncodeError as error:
        raise BadRows(f"a value in {table} that is not text") from error
