"""Stopping a run from the live screen."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING

from gpuwatch.tui import commands
from gpuwatch.tui.display_options import READ_ONLY
from gpuwatch.tui.feed.snapshot import Snapshot
from gpuwatch.tui.messages import stop_question
from gpuwatch.tui.widgets.base_screen import CanvasScreen

if TYPE_CHECKING:
    from textual.worker import Worker


class Stopping(CanvasScreen):
    """The part of the live screen that stops a run."""

    path: Path
    snapshot: Snapshot | None
    _stop_asked = False
    """Whether the stop command was started and has not failed."""
    _stopping: Worker[None] | None = None
    _leaving = False

    @abstractmethod
    def _say(self, message: str) -> None:
        """Show a message in the last rows."""

    def action_leave(self) -> None:
        """Leave; during a stop, leave after it, or at once if called again."""
        worker = self._stopping
        if worker is not None and worker.is_running and not self._leaving:
            self._leaving = True
            self._say("stopping, then leaving …; q again leaves now")
            return
        self.gpuwatch.leave(self.path, self.snapshot, stopped=self._stop_asked)

    def action_stop(self) -> None:
        """Stop the run after a confirmation."""
        if self.gpuwatch.look.read_only:
            self._say(READ_ONLY)
        elif self.snapshot is None or not self.snapshot.goes_on:
            self._say("the run is over already")
        else:
            place = self.snapshot.place
            target = self.path.parent if place is not None and place.to_come else self.path
            self.ask(stop_question(place), lambda: self._begin_stop(target))

    def _begin_stop(self, target: Path) -> None:
        self._say("stopping the run …")
        self._stop_asked = True
        self._stopping = self.run_worker(self._stop(target), exclusive=True)

    async def _stop(self, target: Path) -> None:
        outcome = await commands.run("stop", str(target), outlives=True)
        self._stop_asked = outcome.good
        self._say("" if outcome.good else f"cannot stop the run: {outcome.complaint}")
        if self._leaving and outcome.good:
            self.gpuwatch.leave(self.path, self.snapshot, stopped=True)
        self._leaving = False
