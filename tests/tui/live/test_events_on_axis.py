"""Events: marks on the time axis, and the text of the newest one."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from gpuwatch.core.units import NS
from gpuwatch.session.rows import EventRow
from gpuwatch.tui.feed.samples import Window
from gpuwatch.tui.widgets.gauge_rows import EVENT, axis_row, graph_columns

from ..harness import live, screen_text, shows
from ..snapshots_of import texts

Make = Callable[..., Path]
EVENTS = [
    (40.0, "throttle", "clocks are held down: power cap"),
    (75.0, "throttle", "clocks are free again"),
]


def events(*seconds: float) -> list[EventRow]:
    return [EventRow(n, int(t * NS), "xid", None, "") for n, t in enumerate(seconds)]


async def test_events_are_marked_on_the_axis_and_the_newest_is_named(session: Make) -> None:
    async with live(session(events=EVENTS)) as (app, pilot):
        await shows(pilot, "◆ at 1:15: clocks are free again")
        axis = next(row for row in screen_text(app).splitlines() if "└" in row)
        assert axis.count(EVENT) == 2
        await pilot.press("z", "z", shows="history: 10 s")
        axis = next(row for row in screen_text(app).splitlines() if "└" in row)
        assert EVENT not in axis, "they are not in the last ten seconds"


async def test_at_an_earlier_moment_later_events_are_not_marked(session: Make) -> None:
    async with live(session(events=EVENTS)) as (app, pilot):
        await pilot.press("left_square_bracket", "left_square_bracket", shows="0:50 ago")
        axis = next(row for row in screen_text(app).splitlines() if "└" in row)
        assert axis.count(EVENT) == 1


@pytest.mark.parametrize("width", [44, 80, 94, 200])
def test_marks_cover_no_label_of_the_axis(width: int) -> None:
    columns = graph_columns(width)
    window = Window(0, 60 * NS, columns)
    (plain,) = texts([axis_row(window, width)])
    labels = re.findall(r"┴\w+─?", plain)
    assert labels
    for marks in ({column} for column in range(columns)):
        (marked,) = texts([axis_row(window, width, frozenset(marks))])
        assert marked.count(EVENT) == 1 and len(marked) == len(plain)
        assert all(label in marked for label in labels)
    (full,) = texts([axis_row(window, width, frozenset(range(columns)))])
    assert all(label in full for label in labels) and full.count(EVENT) > columns // 3
