"""The upper rows of the live screen: title, state, errors, warnings, end of the run, position."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from gpuwatch.analysis.summary.failure import in_few_words
from gpuwatch.core.text import clean
from gpuwatch.core.units import NS, clock_time
from gpuwatch.session.reading.status import FAILED, State, Status
from gpuwatch.session.rows import EventRow
from gpuwatch.session.study.estimate import about
from gpuwatch.session.study.progress import StudyPosition
from gpuwatch.tui.feed.parts import FURTHER
from gpuwatch.tui.feed.snapshot import Snapshot, Trouble
from gpuwatch.tui.widgets.line import Line, fit, marked_rows

_WIDE = 100
"""Least columns of what came after the elapsed time."""
_MIN_ARGUMENTS = 12
"""Fewest columns in which a command's arguments are begun."""
_LEAST_NAME = 16
"""Columns that a long name keeps beside a long environment."""
_MIN_NAME = 33
"""Least columns of workload and environment beside the position in the study."""

_LEAST_BAR = 8
"""Least columns of the bar of the session."""
_ROUTINE = "epoch"
"""Kind of frequent events, which are skipped if there are others."""

MARKS = {
    **dict.fromkeys((State.QUEUED, State.STARTING), ("…", "muted")),
    State.RUNNING: ("▶", "good"),
    State.FINISHED: ("✓", "good"),
    **dict.fromkeys(FAILED, ("✗", "bad")),
    State.STOPPED: ("■", "warn"),
    **dict.fromkeys((State.LOST, State.IN_PART, State.UNKNOWN), ("?", "warn")),
}
"""A mark and a colour role for each state."""


def title_row(snapshot: Snapshot, width: int, *, paused: bool) -> Line:
    """Workload, environment, position in the study, state and time."""
    now = snapshot.replay or snapshot
    mark, role = MARKS[now.status.state]
    name, where = "this machine", Line(width)
    if not snapshot.machine_only or snapshot.elsewhere:
        name = clean(snapshot.name)
        if snapshot.environment and not snapshot.machine_only:
            where.add(" in ", "muted").add(clean(snapshot.environment), "strong")
        if snapshot.elsewhere:
            where.add(" on ", "muted").add(clean(snapshot.elsewhere), "strong")
    right: list[tuple[str, str]] = []
    if snapshot.replay is not None:
        at = age_text(snapshot) or f"at {clock_time(snapshot.replay.position_ns / NS)}"
        right.append((f"◀ {at}  ", "warn"))
    if paused:
        right.append(("⏸ paused, Space goes on  ", "warn"))
    if snapshot.silent_seconds is not None:
        right.append((f"! nothing recorded for {clock_time(snapshot.silent_seconds)}  ", "warn"))
    end = []
    # Of a machine nothing runs that is watched; of another moment its age says all.
    if not now.status.live or not (snapshot.machine_only or snapshot.replay):
        word = _by_signal(now.status) or now.status.state.value
        end = [(f"{mark} {word}", role), (f"  {clock_time(now.seconds)} ", "strong")]
    if snapshot.place is not None:
        used_columns = sum(len(text) for text, _ in [*right, *end])
        used = cell_len(name) + where.used + 10
        right += _place(snapshot.place, width - used_columns - min(used, _MIN_NAME) - 1)
    right += end
    over = not snapshot.status.live and not snapshot.replay
    if width >= _WIDE and over and snapshot.place is None:
        took = [(name, (end - start) / NS) for name, start, end in snapshot.parts]
        further = [each for each in took if each[0] in FURTHER and each[1] > snapshot.seconds / 10]
        right += [(f"+ {clock_time(round(time))} {name} ", "muted") for name, time in further]
    size = sum(len(text) for text, _ in right)
    most = max(_LEAST_NAME, width - size - where.used - 3)
    row = Line(width).add(fit(name, most), "strong")
    room = width - size - row.used - where.used - 12
    if room >= min(cell_len(snapshot.arguments), _MIN_ARGUMENTS):
        row.add(fit(snapshot.arguments, room).rstrip())
    row.join(where)
    brand = Line(width).add(" gpuwatch " if row.used + 9 + size < width else " ", "brand")
    left = Line(max(0, width - size - 1)).join(brand.join(row))
    row = Line(width).join(left).to(width - size)
    for text, colour in right:
        row.add(text, colour)
    return row


def _by_signal(status: Status) -> str:
    """``killed (SIGKILL)``; empty: it was not ended by a signal."""
    known = status.state is State.KILLED and status.exit_code is not None
    return in_few_words(status, "") if known else ""


def _place(place: StudyPosition, width: int) -> list[tuple[str, str]]:
    """Block, run and time left in the longest text that fits, and the failed runs."""
    counts = [(place.failed, "failed before"), (place.not_run, "did not run")]
    failures = [(f", {number} {word}", "bad") for number, word in counts if number]
    run = f"run {place.number} of {place.total}"
    block = f"block {place.block} of {place.blocks}, " if place.block else "warm-up block, "
    block = "" if place.block is None else block
    left = "" if place.seconds_left is None else f", {about(place.seconds_left)} left"
    width -= sum(len(text) for text, _ in failures) + 2
    texts = (block + run + left, run + left, run)
    text = next((text for text in texts if len(text) <= width), run)
    return [(text, "strong"), *failures, ("  ", "text")]


def trouble_rows(trouble: Trouble, width: int) -> list[Line]:
    """An error and its hint."""
    rows = marked_rows(clean(trouble.text), " ✗ ", "bad", width, 3, "bad")
    return rows + marked_rows(clean(trouble.hint or ""), " → ", "key", width, 2)


def banner_rows(snapshot: Snapshot, width: int) -> list[Line]:
    """Error, warnings and notice."""
    trouble = snapshot.trouble
    in_title = trouble is not None and trouble.text == _by_signal(snapshot.status)
    rows = [] if trouble is None or in_title else trouble_rows(trouble, width)
    rows += warning_rows(snapshot, width)
    if snapshot.notice:
        rows.append(Line(width).add(" ! ", "warn").add(clean(snapshot.notice), "text"))
    mark, role = MARKS[snapshot.status.state]
    if snapshot.status.state is State.UNKNOWN or (snapshot.status.live and mark == "?"):
        rows += marked_rows(clean(snapshot.status.text), f" {mark} ", role, width, 2)
    return rows


def warning_rows(snapshot: Snapshot, width: int) -> list[Line]:
    """The most serious warning in one row, and the number of others."""
    if not snapshot.warnings:
        return []
    first, *others = snapshot.warnings
    rest = f"; {len(others)} more, press i" if others else " press i"
    row = Line(width).add(" ! ", "warn")
    if not others and cell_len(first) <= row.left:
        return [row.add(first)]
    return [row.add(fit(first, row.left - len(rest) - 1)).add(rest, "muted")]


def _end(snapshot: Snapshot, width: int) -> str:
    """What the title does not tell of how the run ended, and the states of all runs of a finished
    study, as far as they fit."""
    status = snapshot.status
    own = "" if status.text == status.state.value else clean(status.text)
    if snapshot.trouble is not None:
        own = "" if status.exit_code is None else f"exit code {status.exit_code}"
        if own in snapshot.trouble.text or status.state is State.KILLED:
            own = ""  # the row above says it, or the signal
    whole = "; ".join(filter(None, (own, snapshot.tally)))
    return whole if cell_len(whole) <= width else fit(snapshot.tally or own, width)


# The position in the session.


def position_row(snapshot: Snapshot, width: int) -> Line:
    """What the title does not tell of how the run ended, or the moment that is shown; the session
    as a bar with its events, where there is room; and the keys that move in it."""
    row, right = _sides(snapshot, width)
    length = snapshot.replay.length_ns if snapshot.replay else snapshot.t
    position = snapshot.replay.position_ns if snapshot.replay else snapshot.t
    columns = slider(snapshot, width)
    at = _column(position, length, len(columns))
    marks = {_column(event.t, length, len(columns)) for event in notable(snapshot.events)}
    for column in range(len(columns)):
        if column == at:
            row.add("●", "key")
        elif column < at:
            row.add(*(("╋", "warn") if column in marks else ("━", "progress")))
        else:
            row.add(*(("┼", "warn") if column in marks else ("─", "faint")))
    return row.to(width - right.used).join(right)


def slider(snapshot: Snapshot, width: int) -> range:
    """The columns of the bar in :func:`position_row`; empty: there is no room."""
    left, right = _sides(snapshot, width)
    columns = range(left.used, width - right.used)
    return columns if right.used and len(columns) >= _LEAST_BAR else range(0)


def _sides(snapshot: Snapshot, width: int) -> tuple[Line, Line]:
    """What is left and right of the bar; as wide for every position."""
    replay, view = snapshot.replay, snapshot.view
    right = Line(width)
    if not snapshot.imported and not snapshot.machine_only:
        wide = width >= 100
        keys = [("Space", "space", f" {'pause' if view.playing else 'play':<5}")]
        keys += [("←", "left", ""), ("→", "right", " move" if wide else "")]
        keys += [("<", "less_than_sign", ""), (">", "greater_than_sign", " speed" if wide else "")]
        right.add(" ")
        for key, press, what in keys:
            right.add(key, "key", press=press).add(f"{what} ", "muted")
        right.add(f"{speed_text(view.speed):<4}", "muted")
    left = Line(width).add(" ")
    if replay is not None:
        whole = clock_time(round(replay.length_ns / NS))  # as the title rounds
        at = f"{clock_time(replay.position_ns / NS):>{len(whole)}}"
        recorded = "recorded " * (width >= 72)  # from before the run on, to after a profile
        return left.add(f"at {at} ", "strong").add(f"of {whole} {recorded}", "muted"), right
    mark, role = MARKS[snapshot.status.state]
    if text := _end(snapshot, left.left - right.used - _LEAST_BAR - 3):
        left.add(f"{mark} ", role)
        left.add(f"{text} ", role if snapshot.trouble is None else "text")
    return left, right


def _column(t: int, length: int, columns: int) -> int:
    return max(0, min(columns - 1, int(t / max(1, length) * columns)))


def speed_text(speed: float | None) -> str:
    """``4x``, ``1/4x``, or ``max``: as fast as possible."""
    if speed is None:
        return "max"
    return f"{speed:g}x" if speed >= 1 else f"1/{1 / speed:g}x"


def event_text(event: EventRow) -> str:
    """An epoch of recordings that began with its number has its noun, too."""
    text = clean(event.text)
    return f"epoch {text}" if event.kind == _ROUTINE and text[:1].isdigit() else text


def notable(events: Sequence[EventRow]) -> Sequence[EventRow]:
    """The events without frequent ones, if there are others."""
    notable_events = [event for event in events if event.kind != _ROUTINE]
    return notable_events or events


def age_text(snapshot: Snapshot) -> str:
    """``2:10 ago`` for a live run; empty for a finished one, and at the newest moment."""
    replay = snapshot.replay
    if replay is None or not replay.status.live:
        return ""
    return f"{clock_time(max(0, replay.length_ns - replay.position_ns) / NS)} ago"
