"""What is written in the foot of the home screen, and what a search of the list does not know."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpuwatch.tui.commands import Entry
from gpuwatch.tui.home.filter import no_field
from gpuwatch.tui.home.line_edit import Edit, leaves
from gpuwatch.tui.home.list import Item, ListOptions
from gpuwatch.tui.home.rows import HomeState, home_rows
from gpuwatch.tui.home.table import details
from gpuwatch.tui.widgets.line import Line

ENTRY = Entry(Path("/s/a"), "finished", "gcn", "bare", "", None, None, None, "s")


def text(rows: list[Line]) -> str:
    return "\n".join("".join(part for part, _ in row.spans()) for row in rows)


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_all_lines_that_are_pasted_are_kept(end: str) -> None:
    pasted = f"one{end}two{end}"
    assert Edit.of("name", "").written(pasted).text == "one two"
    assert Edit.of("search", "").written(pasted).text == "one two"
    assert Edit.of("note", "").written(pasted).text == "one\ntwo"


@pytest.mark.parametrize(("what", "most"), [("name", 80), ("tags", 527), ("note", 2000)])
def test_a_field_takes_what_its_label_takes_and_says_that_it_cut(what: str, most: int) -> None:
    edit = Edit.of(what, "").written("x" * 5000)
    assert len(edit.text) == most
    assert edit.trouble == f"at most {most} characters: the rest is left out"
    assert edit.pressed("backspace", None).trouble == ""


def test_what_can_be_no_label_says_why() -> None:
    assert "cannot be a name" in Edit.of("name", "last").refused()
    assert "is not a tag" in Edit.of("tags", "+good a:b").refused()
    assert "17 tags" in Edit.of("tags", " ".join(map(str, range(17)))).refused()
    assert Edit.of("tags", "+good fast").refused() == Edit.of("find", "a:b").refused() == ""


def test_a_letter_right_behind_esc_is_esc_and_nothing_that_is_written() -> None:
    assert leaves("escape") and leaves("alt+d") and leaves("alt+shift+d")
    assert not leaves("alt+left") and not leaves("d")


def test_a_word_before_a_colon_that_is_no_field_is_told() -> None:
    fields = "status env workload name tag note study"
    assert no_field("docker Nope:x") == f"nope: is no field: {fields}"
    assert no_field("docker tag:x") == ""
    state = HomeState(entries=(ENTRY,), how=ListOptions(query="nope:x"))
    rows, _ = home_rows(state, 80, 23)
    shown = text(rows)
    assert "nothing matches nope:x" in shown and f"nope: is no field: {fields}" in shown


def test_labels_that_cannot_be_read_are_told_of_their_row() -> None:
    problem = "/s/labels.json is not gpuwatch's: it does not hold labels; move it elsewhere"
    told = text(details(Item(replace(ENTRY, labels_problem=problem)), 100, 3))
    assert told.strip().startswith("! labels.json is not gpuwatch's")
