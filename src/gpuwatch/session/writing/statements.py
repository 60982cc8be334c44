"""Every statement that writes a row of a session file, with its parameters."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial

from gpuwatch.core.models import JSON
from gpuwatch.session.rows import NOT_KNOWN, SAMPLED, RankRow
from gpuwatch.telemetry.base import Device

Row = tuple[str, tuple[object, ...]]
"""One statement and its parameters."""


def meta(key: str, value: JSON) -> Row:
    """A row of ``meta``: written once or replaced."""
    return "INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, json.dumps(value))


def fact(scope: str, key: str, value: JSON) -> Row:
    """A fact of the fingerprint: ``scope`` is ``host``, ``process`` or ``workload``."""
    return "INSERT OR REPLACE INTO fact VALUES (?, ?, ?)", (scope, key, json.dumps(value))


def _numbered(table: str, *values: object) -> Row:
    """The next row of a table whose rows are numbered: its columns but the number, in their
    order."""
    return f"INSERT INTO {table} VALUES (NULL{', ?' * len(values)})", values  # noqa: S608


step = partial(_numbered, "step")
"""One step line."""
rank_step = partial(_numbered, "rank_step")
"""Some steps of one rank."""
process = partial(_numbered, "process")
"""A process that appeared or ended."""
process_use = partial(_numbered, "process_use")
"""What a process uses."""


def event(t: int, kind: str, text: str, device: str | None = None) -> Row:
    """An event ``t`` nanoseconds after the session's start."""
    return _numbered("event", t, kind, device, text)


def device_row(device: Device, used: bool | None) -> Row:
    return (
        "INSERT OR REPLACE INTO device VALUES (?, ?, ?, ?, ?, ?)",
        (
            device.id,
            device.kind,
            device.name,
            device.uuid,
            NOT_KNOWN if used is None else int(used),
            json.dumps(dict(device.attributes)),
        ),
    )


def insert(table: str, columns: int, *leading: object) -> str:
    """``INSERT`` into a wide table whose columns behind ``leading`` are the channels."""
    marks = ", ".join("?" for _ in range(len(leading) + columns))
    return f"INSERT OR REPLACE INTO {table} VALUES ({marks})"  # noqa: S608


def without_meta(key: str) -> Row:
    """Removes a row of ``meta``."""
    return "DELETE FROM meta WHERE key = ?", (key,)


def without_facts(scope: str) -> Row:
    """Removes all facts of one scope."""
    return "DELETE FROM fact WHERE scope = ?", (scope,)


def device_used(device: str, used: bool) -> Row:
    """Whether the run uses a device."""
    return "UPDATE device SET used = ? WHERE id = ?", (used, device)


def change(t: int, channel: int, method: str, source: str, reason: str | None) -> Row:
    """How a channel is obtained from ``t`` on."""
    return _numbered("change", t, channel, method, source, reason)


def phases_text(phases: Mapping[str, float], count: int, sampled: float) -> str | None:
    """The column ``phases`` of ``count`` steps, if it is that of ``sampled`` of them."""
    of = {SAMPLED: sampled} if sampled < count else {}
    return json.dumps({**phases, **of}) if phases or of else None


def rank(row: RankRow) -> Row:
    """A rank of the run: written once or replaced."""
    nodes = json.dumps(row.cpu_nodes) if row.cpu_nodes else None
    columns = {**vars(row), "cpu_nodes": nodes}
    return "INSERT OR REPLACE INTO rank VALUES (?, ?, ?, ?, ?, ?, ?, ?)", tuple(columns.values())


def log_line(n: int, t: int, stream: str, text: str) -> Row:
    """Line ``n`` of the log."""
    return "INSERT INTO log VALUES (?, ?, ?, ?)", (n, t, stream, text)


def without_log(first: int, end: int) -> Row:
    """Removes the lines from ``first`` up to, not including, ``end``."""
    return "DELETE FROM log WHERE n >= ? AND n < ?", (first, end)


def gpu_process(*values: object) -> Row:
    """What a process has of one GPU, in the order of the statement."""
    return (
        "INSERT INTO gpu_process (t, device, pid, name, owned, bytes, running, kind, share, "
        "memory_share, reason) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        values,
    )
