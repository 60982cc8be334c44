"""The log of one session on a whole screen: both streams, searched, followed."""

from __future__ import annotations

from pathlib import Path

from gpuwatch.tui.painted import PaintedScreen


class LogScreen(PaintedScreen):
    """Shows what a run wrote; Esc closes it."""

    def __init__(self, path: Path, *, upto_ns: int | None = None) -> None:
        """``upto_ns``: lines up to that session time alone; ``None``: all, also those to come."""
        super().__init__()
        self.path = path
        self.upto_ns = upto_ns

    def paint(self) -> None:
        raise NotImplementedError
