"""All GPUs at once: one small panel each."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.tui.canvas import Line
from gpuwatch.tui.snapshot import Panel


def panel_rows(
    panels: Sequence[Panel], selected: str | None, width: int, height: int, *, mark_used: bool
) -> list[Line]:
    """At most ``height`` rows with a panel for each GPU; ``mark_used``: say which the run uses."""
    raise NotImplementedError


def panel_at(panels: Sequence[Panel], width: int, height: int, x: int, y: int) -> str | None:
    """The id of the GPU whose panel covers column ``x`` of row ``y``; ``None``: none does."""
    raise NotImplementedError
