"""The page of processes, over the live screen and over the home screen."""

from __future__ import annotations

from collections.abc import Callable

from gpuwatch.tui.painted import PaintedScreen
from gpuwatch.tui.snapshot import Snapshot


class ProcessScreen(PaintedScreen):
    """Who uses the GPUs and what the run's processes use; it scrolls, ``o`` sorts."""

    def __init__(self, latest: Callable[[], Snapshot | None]) -> None:
        """``latest`` gives the newest snapshot; it is asked twice a second while this is open."""
        super().__init__()
        self._latest = latest

    def paint(self) -> None:
        raise NotImplementedError


class MachineProcessScreen(ProcessScreen):
    """The same of this machine, with a recording of its own while it is open.

    For the home screen: ``app.push_screen(MachineProcessScreen(self.state.devices))``.
    """

    def __init__(self, first: Snapshot | None = None) -> None:
        """``first`` is shown until something newer is recorded."""
        super().__init__(lambda: first)

