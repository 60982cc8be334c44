"""The row with the position in the session: pure functions of the snapshot."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.core.units import NS, clock_time
from gpuwatch.session.rows import EventRow
from gpuwatch.tui.feed.snapshot import Replay, Snapshot
from gpuwatch.tui.widgets.line import Line

_ROUTINE = "epoch"
"""Kind of frequent events, which are skipped if there are others."""


def position_row(snapshot: Snapshot, width: int) -> Line:
    """The session as a bar with its events, the position, length and speed; empty without
    ``snapshot.replay``."""
    replay = snapshot.replay
    if replay is None:
        return Line(width)
    left, right = _side_texts(replay, width)
    columns = slider(snapshot, width)
    row = Line(width).add(f" {left} ", "strong")
    at = _column(replay.position_ns, replay.length_ns, len(columns))
    marks = {_column(event.t, replay.length_ns, len(columns)) for event in notable(snapshot.events)}
    for column in range(len(columns)):
        if column == at:
            row.add("●", "key")
        elif column < at:
            row.add(*(("╋", "warn") if column in marks else ("━", "progress")))
        else:
            row.add(*(("┼", "warn") if column in marks else ("─", "faint")))
    return row.add(f" {right} ", "muted")


def slider(snapshot: Snapshot, width: int) -> range:
    """The columns of the bar in :func:`position_row`."""
    if snapshot.replay is None:
        return range(0)
    left, right = _side_texts(snapshot.replay, width)
    return range(len(left) + 2, max(len(left) + 3, width - len(right) - 2))


def _side_texts(replay: Replay, width: int) -> tuple[str, str]:
    """The texts left and right of the bar; their width is the same for every position."""
    length = clock_time(replay.length_ns / NS)
    position = clock_time(replay.position_ns / NS).rjust(len(length))
    playing = "playing" if replay.playing else "stopped"
    if width < 100:
        return f"at {position}", f"{length}  {playing} {speed_text(replay.speed):<4}"
    word = "looking back" if replay.live else "replay"
    return f"{word} at {position}", f"of {length}  {playing}, speed {speed_text(replay.speed):<4}"


def _column(t: int, length: int, columns: int) -> int:
    return max(0, min(columns - 1, int(t / max(1, length) * columns)))


def speed_text(speed: float | None) -> str:
    """``4x``, ``1/4x``, or ``max``: as fast as possible."""
    if speed is None:
        return "max"
    return f"{speed:g}x" if speed >= 1 else f"1/{1 / speed:g}x"


def notable(events: Sequence[EventRow]) -> Sequence[EventRow]:
    """The events without frequent ones, if there are others."""
    notable_events = [event for event in events if event.kind != _ROUTINE]
    return notable_events or events


def age_text(snapshot: Snapshot) -> str:
    """``2:10 ago`` for a live run, ``replay`` for a finished one; empty at the newest moment."""
    replay = snapshot.replay
    if replay is None:
        return ""
    if not replay.live:
        return "replay"
    return f"{clock_time(max(0, replay.length_ns - replay.position_ns) / NS)} ago"
