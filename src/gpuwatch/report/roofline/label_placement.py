"""Placement of a picture's labels: not over each other, over a mark or outside the plot."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

Box = tuple[float, float, float, float]
"""Left, top, right and bottom, in pixels."""

_LETTER = 7.5
"""Width of a letter in pixels, for the widest common fonts at 13 pixels."""
_ABOVE, _BELOW = 11, 4
"""Height of a label above and below its baseline, in pixels."""
_ACROSS, _DOWN = 45, 6
"""Step sizes of the search for a free place, in pixels."""


class LabelRoom:
    """Free space of a plot, reduced by each placed label."""

    def __init__(self, plot: Box, marks: Sequence[Box], lines: Sequence[Box]) -> None:
        self._plot = plot
        self._taken = list(marks)
        self._lines = list(lines)
        across = range(0, round(plot[2] - plot[0]), _ACROSS)
        down = range(0, round(plot[3] - plot[1]), _DOWN)
        moves = ((x * i, y * j) for x in across for y in down for i in (1, -1) for j in (1, -1))
        self._moves = sorted(set(moves), key=lambda move: abs(move[0]) + abs(move[1]))

    def place(
        self, text: str, wanted: Sequence[tuple[float, float]], *, to_the_left: bool = False
    ) -> tuple[float, float] | None:
        """Reserve a place; returns the start of the baseline (``to_the_left``: its end).

        Takes the first free place of ``wanted``, else the nearest free one to the first, if needed
        over a line; ``None`` if the plot is full.
        """
        back = _LETTER * len(text) if to_the_left else 0.0
        for taken in ([*self._taken, *self._lines], self._taken):
            for x, y in itertools.chain(wanted, self._near(*wanted[0])):
                left = x - back
                box = (left, y - _ABOVE, left + _LETTER * len(text), y + _BELOW)
                if _inside(box, self._plot) and not any(_overlap(box, each) for each in taken):
                    self._taken.append(box)
                    return x, y
        return None

    def _near(self, x: float, y: float) -> Iterator[tuple[float, float]]:
        return ((x + across, y + down) for across, down in self._moves)


def _inside(box: Box, plot: Box) -> bool:
    return plot[0] <= box[0] and plot[1] <= box[1] and box[2] <= plot[2] and box[3] <= plot[3]


def _overlap(one: Box, two: Box) -> bool:
    return one[0] < two[2] and two[0] < one[2] and one[1] < two[3] and two[1] < one[3]
