"""The list of sessions that is shown while the comparison is computed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gpuwatch.core.errors import GpuwatchError
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON, number
from gpuwatch.core.text import clean
from gpuwatch.core.units import clock_time, milliseconds, samples_rate
from gpuwatch.session.reading.status import State
from gpuwatch.session.study import labels
from gpuwatch.session.study.label import NONE
from gpuwatch.tui.widgets.cells import pad
from gpuwatch.tui.widgets.head_rows import MARKS
from gpuwatch.tui.widgets.line import Line

MOST = 400
"""Most sessions in the list; no screen shows more."""


@dataclass(frozen=True)
class Opening:
    """One session, read from its small tables."""

    path: Path
    name: str
    """Of the workload."""
    environment: str
    """Label of the environment, with the name given to the session."""
    state: State | None
    step_seconds: float | None
    """Median of the first step lines."""
    samples_per_second: float | None
    why: str = ""
    """Why the session cannot be read; empty if it can."""


def opening_of(path: Path) -> Opening:
    """The list entry of the session at ``path``."""
    from gpuwatch.analysis.summary.listing import listing
    from gpuwatch.session.reading.reader import SessionReader

    label = labels.read(path.parent).get(path.name, NONE)
    try:
        with SessionReader(path) as reader:
            entry = listing(reader)
    except GpuwatchError as error:
        return Opening(path, path.name, "", None, None, None, error.message)
    return Opening(
        path,
        str(entry["workload"] or path.stem),
        label.heading(str(entry["environment"])),
        _state(entry["status"]),
        number(entry["step_median_seconds"]),
        number(entry["samples_per_second"]),
    )


def _state(word: JSON) -> State | None:
    try:
        return State(word)
    except ValueError:
        return None


def opening_rows(
    openings: Sequence[Opening], count: int, read: int, seconds: float, width: int, height: int
) -> list[Line]:
    """The progress (``read`` of ``count`` sessions) and the list."""
    row = Line(width).add(" … ", "warn")
    if read < count:
        row.add(f"reading the steps and samples of session {read + 1} of {count}", "strong")
    else:
        row.add("working out what they say together", "strong")
    row.add(f"  {clock_time(seconds)}", "muted")
    name_width = max(12, min(28, (width - 46) // 2))
    heads = f"{'':5}{pad('workload', name_width)} {pad('environment', name_width)} "
    head = Line(width).add(heads, "muted")
    head.add(f"{'state':<11}{'first steps':>12}{'samples/s':>11}", "muted")
    listed = [_row(*numbered, name_width, width) for numbered in enumerate(openings, 1)]
    return [row, Line(width), head, *listed][:height]


def _row(number: int, opening: Opening, name_width: int, width: int) -> Line:
    row = Line(width).add(f"{number:>4} ", "muted")
    row.add(pad(clean(opening.name), name_width), "strong")
    if opening.why:
        return row.add(" ✗ ", "bad").add(clean(opening.why), "bad")
    row.add(f" {pad(clean(opening.environment), name_width)} ")
    mark, role = MARKS[opening.state] if opening.state is not None else ("?", "warn")
    state = opening.state.value if opening.state is not None else "unknown"
    row.add(f"{f'{mark} {state}':<11}", role)
    row.add(
        f"{milliseconds(opening.step_seconds):>12}{samples_rate(opening.samples_per_second):>11}"
    )
    return row
