"""Which cells of a row are sent, and what is sent of them."""

from __future__ import annotations

import random

from gpuwatch.tui.widgets.changes import cells_of, changed
from gpuwatch.tui.widgets.line import Line, Span

WIDTH = 30
TEXTS = ("a", "bc ", "▁▂▃", "42 %", "        ", "日本", "é")
ROLES = ("text", "strong", "muted")


def row_of(dice: random.Random, texts: tuple[str, ...]) -> tuple[Span, ...]:
    line = Line(WIDTH)
    while line.left and dice.random() < 0.9:
        line.add(dice.choice(texts), dice.choice(ROLES))
    return line.spans()


def cells(row: tuple[Span, ...]) -> list[Span]:
    found = cells_of(row).filled(WIDTH)
    known = {cells_of([("x", role)]).roles: role for role in ROLES}
    return [
        (character, known[role]) for character, role in zip(found.text, found.roles, strict=True)
    ]


def test_the_changed_stretches_make_the_old_row_the_new_one() -> None:
    dice = random.Random(6)
    for _ in range(500):
        old = row_of(dice, TEXTS)
        kept = dice.randrange(len(old) + 1)
        new = Line(WIDTH).join(_line(old[:kept])).join(_line(row_of(dice, TEXTS))).spans()
        drawn = cells(old)
        for start, end in changed(cells_of(old), cells_of(new), WIDTH):
            drawn[start:end] = cells(new)[start:end]
        assert drawn == cells(new), (old, new)


def test_a_change_in_the_middle_leaves_both_ends_alone() -> None:
    old = (("left ", "text"), ("12", "strong"), (" right", "text"))
    new = (("left ", "text"), ("19", "strong"), (" right", "text"))
    assert changed(cells_of(old), cells_of(new), WIDTH) == [(6, 7)]


def test_a_cut_is_what_stands_in_the_cells() -> None:
    dice = random.Random(7)
    narrow = tuple(text for text in TEXTS if text != "日本")
    for _ in range(500):
        row = row_of(dice, narrow)
        start = dice.randrange(WIDTH)
        end = dice.randrange(start + 1, WIDTH + 1)
        whole = cells_of(row)
        assert whole.narrow
        assert cells(tuple(whole.spans(start, end)))[: end - start] == cells(row)[start:end]


def test_a_row_with_wide_characters_is_not_cut_by_characters() -> None:
    assert not cells_of((("ab", "text"), ("日本", "strong"))).narrow
    assert not cells_of((("a\x1b", "text"),)).narrow


def _line(row: tuple[Span, ...]) -> Line:
    line = Line(WIDTH)
    for text, role in row:
        line.add(text, role)
    return line
