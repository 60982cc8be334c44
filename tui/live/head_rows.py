"""The upper rows of the live screen: title, state, errors, warnings, end of the run."""

from __future__ import annotations

from rich.cells import cell_len

from gpuwatch.core.text import clean
from gpuwatch.core.units import NS, clock_time
from gpuwatch.session.reading.status import State
from gpuwatch.session.study.estimate import about
from gpuwatch.session.study.progress import StudyPosition
from gpuwatch.tui.feed.snapshot import Snapshot, Trouble
from gpuwatch.tui.live.time_rows import age_text
from gpuwatch.tui.widgets.cells import fit, wrap
from gpuwatch.tui.widgets.line import Line

_BEFORE_TEXT = " before"
"""After the number of failed runs: this run itself is not included."""
_MIN_NAME = 33
"""Least columns of workload and environment beside the position in the study."""

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
    rows = []
    for index, text in enumerate(wrap(clean(trouble.text), width - 4, 3)):
        rows.append(Line(width).add(" ✗ " if index == 0 else "   ", "bad").add(text, "bad"))
    for index, text in enumerate(wrap(clean(trouble.hint or ""), width - 4, 2)):
        rows.append(Line(width).add(" → " if index == 0 else "   ", "key").add(text))
    return rows


def banner_rows(snapshot: Snapshot, width: int) -> list[Line]:
    """Error, warnings and notice, and the end of a finished run with the next keys."""
    rows: list[Line] = []
    state = snapshot.status.state
    if snapshot.trouble is not None:
        rows += trouble_rows(snapshot.trouble, width)
    rows += warning_rows(snapshot, width)
    if snapshot.notice:
        rows.append(Line(width).add(" ! ", "warn").add(clean(snapshot.notice), "text"))
    if not snapshot.status.live:
        mark, role = MARKS[state]
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
    if snapshot.machine_only:
        return text
    return f"the run is over{after}: {text}"
