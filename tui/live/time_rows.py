"""The row that says which moment of a session is looked at: pure functions of the snapshot."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.core.units import NS, clock_time
from gpuwatch.session.rows import EventRow
from gpuwatch.tui.feed.snapshot import Snapshot
from gpuwatch.tui.feed.view import Replay
from gpuwatch.tui.widgets.line import Line

_ROUTINE = "epoch"
"""Events of so many that they are passed over where there are others."""


def position_row(snapshot: Snapshot, width: int) -> Line:
    """The whole session as a bar with its events, the position, the length and the speed.

    For a snapshot with ``replay``.
    """
    replay = snapshot.replay
    if replay is None:
        return Line(width)
    left, right = _beside(replay, width)
    columns = slider(snapshot, width)
    row = Line(width).add(f" {left} ", "strong")
    at = _column(replay.position_ns, replay.length_ns, len(columns))
    marks = {_column(each.t, replay.length_ns, len(columns)) for each in notable(snapshot.events)}
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
    left, right = _beside(snapshot.replay, width)
    return range(len(left) + 2, max(len(left) + 3, width - len(right) - 2))


def _beside(replay: Replay, width: int) -> tuple[str, str]:
    """What stands on both sides of the bar, as wide for every position."""
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
    """``4x``, ``1/4x``, or ``max``: as fast as it draws."""
    if speed is None:
        return "max"
    return f"{speed:g}x" if speed >= 1 else f"1/{1 / speed:g}x"


def notable(events: Sequence[EventRow]) -> Sequence[EventRow]:
    """The events without the routine ones, if there are others."""
    found = [event for event in events if event.kind != _ROUTINE]
    return found or events


def ago(snapshot: Snapshot) -> str:
    """For the title: ``2:10 ago`` of a run that goes on, ``replay`` of one that is over.

    Empty for a snapshot of now.
    """
    replay = snapshot.replay
    if replay is None:
        return ""
    if not replay.live:
        return "replay"
    return f"{clock_time(max(0, replay.length_ns - replay.position_ns) / NS)} ago"
