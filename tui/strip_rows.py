"""The runs of a study side by side, and the comparison so far."""

from __future__ import annotations

from gpuwatch.tui.canvas import Line
from gpuwatch.tui.snapshot import StudyStrip


def strip_rows(strip: StudyStrip, width: int, most: int) -> list[Line]:
    """The order of the plan, a mark for each run, block by block; below it the comparison so far.

    At most ``most`` rows; in a single one both stand beside each other.
    """
    raise NotImplementedError
