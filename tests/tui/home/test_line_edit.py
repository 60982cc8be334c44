"""What is written in the foot of the home screen, and what a search of the list does not know."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gpuwatch.analysis.summary.finding import no_field
from gpuwatch.analysis.summary.listed_item import Item
from gpuwatch.analysis.summary.listing import ListedSession
from gpuwatch.tui.home.list import Edit, ListOptions
from gpuwatch.tui.home.rows import HomeState, details, empty_rows
from gpuwatch.tui.widgets.line import Line

ENTRY = ListedSession(
    path=Path("/s/a"), study="s", status="finished", workload="gcn", environment="bare"
)


def text(rows: list[Line]) -> str:
    return "\n".join("".join(part for part, _ in row.spans()) for row in rows)


def test_what_can_be_no_label_says_why() -> None:
    assert "cannot be a name" in Edit("name", "last").refused()
    assert "is not a tag" in Edit("tags", "+good a:b").refused()
    assert "17 tags" in Edit("tags", " ".join(map(str, range(17)))).refused()
    assert Edit("tags", "+good fast").refused() == Edit("find", "a:b").refused() == ""


def test_a_word_before_a_colon_that_is_no_field_is_told() -> None:
    fields = "status name workload env study result tag note"
    assert no_field("docker Nope:x") == f"nope: is not a field: {fields}"
    assert no_field("docker tag:x") == ""
    state = HomeState(entries=(ENTRY,), how=ListOptions(query="nope:x"))
    shown = text(empty_rows(state, 80, 23, read_only=False))
    assert "nothing matches nope:x" in shown and f"nope: is not a field: {fields}" in shown


def test_labels_that_cannot_be_read_are_told_of_their_row() -> None:
    problem = "/s/labels.json is not gpuwatch's: it does not hold labels; move it elsewhere"
    told = text(details(Item(replace(ENTRY, labels_problem=problem)), 100, 3))
    assert told.strip().startswith("! labels.json is not gpuwatch's")
