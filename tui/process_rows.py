"""The table of processes as rows of text."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.tui.line import Line
from gpuwatch.tui.processes import ProcessNow


def process_rows(
    processes: Sequence[ProcessNow], width: int, most: int, *, selected: str | None = None
) -> list[Line]:
    """A row of column names and at most ``most`` rows, the biggest GPU memory first.

    ``selected``: only the processes on that GPU and those on none. The last row says how many
    more there are where not all fit. Empty where there is no process or ``most`` is below 1.
    """
    raise NotImplementedError
