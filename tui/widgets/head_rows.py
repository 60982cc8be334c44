"""The upper rows of the live screen: title, state, errors, warnings, end of the run, position."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from gpuwatch.core.text import clean
from gpuwatch.core.units import NS, clock_time
from gpuwatch.session.reading.status import State
from gpuwatch.session.rows import EventRow
from gpuwatch.session.study.estimate import about
from gpuwatch.session.study.progress import StudyPosition
from gpuwatch.tui.feed.snapshot import Replay, Snapshot, Trouble
from gpuwatch.tui.widgets.cells import fit, wrap
from gpuwatch.tui.widgets.line import Line

_BEFORE_TEXT = " before"
"""After the number of failed runs: this run itself is not included."""
_MIN_NAME = 33
"""Least columns of workload and environment beside the position in the study."""

_ROUTINE = "epoch"
"""Kind of frequent events, which are skipped if there are others."""

MARKS = {
    State.QUEUED: ("…", "muted"),
    State.STARTING: ("…", "muted"),
    State.RUNNING: ("▶", "good"),
    State.FINISHED: ("✓", "good"),
    State.FAILED: ("✗", "bad"),
    State.KILLED: ("✗", "bad"),
    State.STOPPED: ("■", "warn"),
    State.LOST: ("?", "warn"),
    State.IN_PART: ("?", "warn"),
    State.UNKNOWN: ("?", "warn"),
}
"""A mark and a colour role for each state."""


def title_row(snapshot: Snapshot, width: int, *, paused: bool) -> Line:
    """Workload, environment, position in the study, state and time."""
    mark, role = MARKS[snapshot.status.state]
    row = Line(width)
    if snapshot.machine_only and not snapshot.elsewhere:
        row.add("this machine", "strong")
    else:
        row.add(clean(snapshot.name), "strong")
        if snapshot.environment and not snapshot.machine_only:
            row.add(" in ", "muted").add(clean(snapshot.environment), "strong")
        if snapshot.elsewhere:
            row.add(" on ", "muted").add(clean(snapshot.elsewhere), "strong")
    right: list[tuple[str, str]] = []
    if snapshot.replay is not None:
        right.append((f"◀ {age_text(snapshot)}  ", "warn"))
    if paused:
        right.append(("⏸ view paused  ", "warn"))
    if snapshot.silent_seconds is not None:
        right.append((f"! nothing recorded for {clock_time(snapshot.silent_seconds)}  ", "warn"))
    end = [(f"{mark} {snapshot.status.state.value}", role)]
    if snapshot.phase:
        end.append((f", {snapshot.phase}", "muted"))
    end.append((f"  {clock_time(snapshot.t / NS)} ", "strong"))
    if snapshot.place is not None:
        used_columns = sum(len(text) for text, _ in [*right, *end])
        right += _place(snapshot.place, width - used_columns - min(row.used + 10, _MIN_NAME) - 1)
    right += end
    size = sum(len(text) for text, _ in right)
    brand = Line(width).add(" gpuwatch " if row.used + 9 + size < width else " ", "brand")
    left = Line(max(0, width - size - 1)).join(brand.join(row))
    row = Line(width).join(left).to(width - size)
    for text, colour in right:
        row.add(text, colour)
    return row


def _place(place: StudyPosition, width: int) -> list[tuple[str, str]]:
    """Block, run and time left in the longest text that fits, and the failed runs."""
    counts = [(place.failed, "failed"), (place.not_run, "did not run")]
    failures = [(f", {number} {word}", "bad") for number, word in counts if number]
    texts = _place_texts(place)
    width -= sum(len(text) for text, _ in failures) + 2
    if place.failed and len(texts[-1]) + len(_BEFORE_TEXT) <= width:
        failures.insert(1, (_BEFORE_TEXT, "bad"))
        width -= len(_BEFORE_TEXT)
    text = next((text for text in texts if len(text) <= width), texts[-1])
    return [(text, "strong"), *failures, ("  ", "text")]


def _place_texts(place: StudyPosition) -> list[str]:
    """Texts of the position, from long to short."""
    blocks = run = f"run {place.number} of {place.total}"
    if place.block is not None:
        block = f"block {place.block} of {place.blocks}" if place.block else "warm-up block"
        blocks = f"{block}, {run}"
    if place.seconds_left is None:
        texts = [blocks, run]
    else:
        left = f", {about(place.seconds_left)} left"
        texts = [blocks + left, _short(blocks) + left, run + left, _short(run) + left, run]
    return [*texts, _short(run)]


def _short(text: str) -> str:
    return text.replace(" of ", "/")


def trouble_rows(trouble: Trouble, width: int) -> list[Line]:
    """An error and its hint."""
    rows = marked_rows("✗", "bad", trouble.text, width, 3, text_role="bad")
    return rows + marked_rows("→", "key", trouble.hint or "", width, 2)


def marked_rows(
    mark: str, role: str, text: str, width: int, most: int, *, text_role: str = "text"
) -> list[Line]:
    """A sentence behind a mark in at most ``most`` rows."""
    return [
        Line(width).add("   " if at else f" {mark} ", role).add(part, text_role)
        for at, part in enumerate(wrap(clean(text), width - 4, most))
    ]


def banner_rows(snapshot: Snapshot, width: int) -> list[Line]:
    """Error, warnings and notice, and the end of a finished run with the next keys."""
    rows: list[Line] = []
    state = snapshot.status.state
    if snapshot.trouble is not None:
        rows += trouble_rows(snapshot.trouble, width)
    rows += warning_rows(snapshot, width)
    if snapshot.notice:
        rows.append(Line(width).add(" ! ", "warn").add(clean(snapshot.notice), "text"))
    mark, role = MARKS[state]
    if snapshot.status.live and mark == "?":
        rows += marked_rows(mark, role, snapshot.status.text, width, 2)
    if not snapshot.status.live:
        row = Line(width).add(f" {mark} ", role)
        row.add(_end(snapshot, row.left), role if snapshot.trouble is None else "text")
        keys = Line(width).add("Enter", "key").add(" sessions  ").add("c", "key").add(" compare ")
        if row.used + keys.used + 2 <= width:
            row.to(width - keys.used).join(keys)
        rows.append(row)
    return rows


def warning_rows(snapshot: Snapshot, width: int) -> list[Line]:
    """The most serious warning in one row, and the number of others."""
    if not snapshot.warnings:
        return []
    more = len(snapshot.warnings) - 1
    rest = f"; {more} more, press i" if more else " press i"
    row = Line(width).add(" ! ", "warn")
    first = snapshot.warnings[0]
    whole = not more and cell_len(first) <= row.left
    return [
        row.add(fit(first, row.left - (0 if whole else len(rest) + 1))).add(
            rest * (not whole), "muted"
        )
    ]


def _end(snapshot: Snapshot, width: int) -> str:
    """How the run ended, and the states of all runs of a finished study, as far as they fit."""
    own = _end_text(snapshot)
    if not snapshot.tally:
        return own
    short = f"{snapshot.status.state.value} after {clock_time(snapshot.t / NS)}"
    texts = [f"{own}; {snapshot.tally}", f"{short}; {snapshot.tally}"]
    return next((text for text in texts if cell_len(text) <= width), snapshot.tally)


def _end_text(snapshot: Snapshot) -> str:
    text = clean(snapshot.status.text)
    code = snapshot.status.exit_code
    after = f" after {clock_time(snapshot.t / NS)}"
    if snapshot.trouble is not None:
        known = "" if code is None else f", exit code {code}"
        return f"{snapshot.status.state.value}{after}{known}"
    if snapshot.machine_only or snapshot.status.state is State.UNKNOWN:
        return text
    return f"the run is over{after}: {text}"


# The position in the session.


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
