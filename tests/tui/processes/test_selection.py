"""Which process of a list is selected."""

from __future__ import annotations

from gpuwatch.tui.feed.processes import ProcessNow
from gpuwatch.tui.processes.selection import Selection


def listed(*pids: int) -> list[ProcessNow]:
    return [
        ProcessNow(pid, "sleep", "alice", False, None, (), None, None, None, True, 0)
        for pid in pids
    ]


def test_the_selected_one_stays_where_the_order_changes_and_the_first_comes_in_place_of_none() -> (
    None
):
    selection = Selection()
    assert selection.process is None
    selection.select(3)
    selection.processes = listed(1, 2, 3)
    assert selection.process is not None and selection.process.pid == 1
    selection.select(9)
    assert selection.at == 2
    selection.processes = listed(3, 2, 1)
    assert selection.at == 0
    selection.processes = listed(2, 1)
    assert selection.at == 0, "the selected one has ended"


def test_the_selected_one_is_among_the_rows_that_are_shown() -> None:
    selection = Selection()
    selection.processes = listed(*range(10))
    for at, first in ((4, 2), (3, 2), (1, 1), (9, 7)):
        selection.select(at)
        selection.scroll(3)
        assert selection.first == first
    selection.scroll(20)
    assert selection.first == 0
