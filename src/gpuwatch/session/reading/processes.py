"""Finds the processes at a moment of a session, in the rows of the minute before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from gpuwatch.core.models import JSON, number
from gpuwatch.session.reading.limits import STRANGERS
from gpuwatch.session.reading.validation import in_order, whole
from gpuwatch.session.rows import GpuPresence, GpuProcessRow, Processes, ProcessRow, Query
from gpuwatch.session.schema import RESTATED_SECONDS

RowAt = Callable[[str, int], int]
"""Gives the number of a table's last row up to a time."""

_WINDOW_NS = (RESTATED_SECONDS + 5) * 1_000_000_000
_CHUNK = 500
_MOST = 20_000
"""Most rows to read; a file from elsewhere may hold any number."""
_SANE = "typeof(t) = 'integer' AND typeof(pid) = 'integer'"
_GPU_COLUMNS = "t, device, pid, name, owned, bytes, running"


def processes_at(query: Query, row_at: RowAt, upto: int | None) -> Processes:
    """The newest row of each process at ``upto`` (session nanoseconds; ``None``: the end)."""

    def recent(table: str, columns: str) -> Iterator[tuple[JSON, ...]]:
        below = 2**62 if upto is None else row_at(table, upto) + 1
        return _recent(query, table, columns, below)

    use_by_pid: dict[int, tuple[JSON, ...]] = {}
    for _, t, pid, cores, resident in recent("process_use", "pid, cores, resident"):
        use_by_pid.setdefault(pid, (t, number(cores), _whole(resident)))
    by_pid: dict[int, ProcessRow] = {}
    columns = "pid, started, name, user, place, owned, running, reason"
    for _, t, pid, started, name, user, place, owned, running, reason in recent("process", columns):
        if pid in by_pid:
            continue
        _, cores, resident = use_by_pid.get(pid, (0, None, None))
        by_pid[pid] = ProcessRow(
            t,
            pid,
            _whole(started),
            _text(name),
            _text(user),
            _text(place),
            None if owned is None else bool(owned),
            bool(running),
            _text(reason),
            cores,
            resident,
        )
    on_gpus: dict[tuple[str, int], GpuProcessRow] = {}
    columns = f"{_GPU_COLUMNS[3:]}, kind, share, memory_share, reason"
    for _, *row in recent("gpu_process", columns):
        gpu = gpu_process(row)
        on_gpus.setdefault((gpu.device, gpu.pid), gpu)
    return Processes(tuple(by_pid.values()), tuple(on_gpus.values()))


def presences(
    query: Query, start: int, end: int, leave_out: Callable[[str], None]
) -> tuple[GpuPresence, ...]:
    """How long each foreign process was on a GPU between ``start`` and ``end`` (session ns).

    A process counts from its first row to the row in which it left. ``leave_out`` gets a sentence
    if there are too many.
    """

    def within(begun: int, left: int) -> int:
        return max(0, min(left, end) - max(begun, start))

    since: dict[tuple[str, int], int] = {}
    by_key: dict[tuple[str, int], GpuPresence] = {}
    after = -1
    while rows := query(
        f"SELECT n, {_GPU_COLUMNS}, kind, share FROM gpu_process WHERE n > ? AND owned = 0 "  # noqa: S608
        f"AND {_SANE} AND pid NOT IN (SELECT pid FROM gpu_process WHERE owned = 1) "
        "ORDER BY n LIMIT ?",
        (after, _MOST),
    ):
        for n, t, device, pid, name, _, size, running, kind, share in rows:
            in_order((n,), after)
            after = n
            key = str(device), int(pid)
            if key not in by_key and len(by_key) >= STRANGERS:
                leave_out(f"only the first {STRANGERS:,} foreign processes are read")
                continue
            previous = by_key.get(key) or GpuPresence(*key, None, None, None, None, None, None, 0)
            begun = since.pop(key, None)
            if running:
                since[key] = t
            by_key[key] = replace(
                previous,
                name=_text(name) or previous.name,
                kind=_text(kind) or previous.kind,
                bytes=_largest(previous.bytes, _whole(size)),
                share=_largest(previous.share, number(share)),
                ns=previous.ns + (0 if begun is None else within(begun, t)),
            )
    owners = _whose(query, {pid for _, pid in by_key})
    return tuple(
        replace(each, user=user, place=place, ns=each.ns + within(since.get(key, end), end))
        for key, each in by_key.items()
        for user, place in [owners.get(each.pid, (None, None))]
    )


def gpu_process(row: Sequence[JSON]) -> GpuProcessRow:
    """Parse a row of ``gpu_process`` from column ``t`` on; it may end with ``running``."""
    t, device, pid, name, owned, size, running, *rest = row
    kind, share, memory_share, reason = rest if rest else (None, None, None, None)
    return GpuProcessRow(
        whole(t),
        str(device)[:1000],
        whole(pid),
        _text(name),
        None if owned is None else bool(owned),
        _whole(size),
        bool(running),
        _text(kind),
        number(share),
        number(memory_share),
        _text(reason),
    )


def _recent(query: Query, table: str, columns: str, below: int) -> Iterator[tuple[JSON, ...]]:
    """Rows ``(n, t, ...)`` with ``n < below`` of one minute, newest first."""
    oldest: int | None = None
    for _ in range(_MOST // _CHUNK):
        rows = query(
            f"SELECT n, t, {columns} FROM {table} WHERE n < ? "  # noqa: S608
            f"AND {_SANE} ORDER BY n DESC LIMIT ?",
            (below, _CHUNK),
        )
        for row in rows:
            below, t = row[0], row[1]
            oldest = t - _WINDOW_NS if oldest is None else oldest
            if t < oldest:
                return
            yield row
        if len(rows) < _CHUNK:
            return


def _whose(query: Query, pids: set[int]) -> dict[int, tuple[str | None, str | None]]:
    """User and place by PID."""
    owners = {}
    for pid in list(pids)[:100]:
        rows = query(
            "SELECT user, place FROM process WHERE pid = ? ORDER BY n DESC LIMIT 1", (pid,)
        )
        for user, place in rows:
            owners[pid] = _text(user), _text(place)
    return owners


def _largest(one: JSON, other: JSON) -> JSON:
    return max((value for value in (one, other) if value is not None), default=None)


def _whole(value: JSON) -> int | None:
    known = number(value)
    return None if known is None else int(known)


def _text(value: JSON) -> str | None:
    return None if value is None else str(value)[:1000]
