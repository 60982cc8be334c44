"""The repainted part of a row."""

from __future__ import annotations

import random

import pytest

from gpuwatch.tui.widgets.canvas import last_change
from gpuwatch.tui.widgets.line import Line, Span

WIDTH = 30
TEXTS = ("a", "bc ", "▁▂▃", "42 %", "        ", "日本", "é")
ROLES = ("text", "strong", "muted")


def line_of(dice: random.Random) -> Line:
    line = Line(WIDTH)
    while line.left and dice.random() < 0.9:
        line.add(dice.choice(TEXTS), dice.choice(ROLES))
    return line


def cells(row: tuple[Span, ...]) -> list[Span]:
    wide = {"日", "本"}
    cells = [(c, role) for text, role in row for c in text for _ in range(1 + (c in wide))]
    return cells + [(" ", "text")] * (WIDTH - len(cells))


def test_nothing_differs_behind_the_last_change() -> None:
    dice = random.Random(6)
    for _ in range(1000):
        end = line_of(dice)
        old = Line(WIDTH).add(dice.choice(TEXTS)).join(end).spans()
        new = Line(WIDTH).add(dice.choice(TEXTS)).join(end).spans()
        last = last_change(old, new, WIDTH)
        assert cells(old)[last + 1 :] == cells(new)[last + 1 :], (old, new)


@pytest.mark.parametrize(
    ("new", "last"),
    [
        ((("left ", "text"), ("19", "strong"), (" right", "text")), 6),
        ((("left ", "text"), ("12", "muted"), (" right", "text")), 6),
        ((("left ", "text"), ("112", "strong"), (" right", "text")), WIDTH - 1),
    ],
)
def test_a_change_in_the_middle_leaves_the_end_alone(new: tuple[Span, ...], last: int) -> None:
    old = (("left ", "text"), ("12", "strong"), (" right", "text"))
    assert last_change(old, new, WIDTH) == last
