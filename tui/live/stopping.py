"""Ending a run from the live screen: the question, the command, and leaving meanwhile."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING

from gpuwatch.tui import commands
from gpuwatch.tui.display_options import READ_ONLY
from gpuwatch.tui.feed.snapshot import Snapshot
from gpuwatch.tui.messages import stop_question
from gpuwatch.tui.widgets.canvas_screen import CanvasScreen

if TYPE_CHECKING:
    from textual.worker import Worker


class Stopping(CanvasScreen):
    """The part of the live screen that stops a run."""

    path: Path
    snapshot: Snapshot | None
    _stop_asked = False
    """The stop command was started, and has not failed."""
    _stopping: Worker[None] | None = None
    _leaving = False

    @abstractmethod
    def _say(self, message: str) -> None:
        """Show a message in the foot."""

    def action_leave(self) -> None:
        """Leave; where a stop was asked for, once that is done or on the second time."""
        worker = self._stopping
        if worker is not None and worker.is_running and not self._leaving:
            self._leaving = True
            self._say("stopping, then leaving …; once more leaves now")
            return
        self.gpuwatch.leave(self.path, self.snapshot, stopped=self._stop_asked)

    def action_stop(self) -> None:
        """Ask whether to stop the run."""
        if self.gpuwatch.look.read_only:
            self._say(READ_ONLY)
        elif self.snapshot is None or not self.snapshot.goes_on:
            self._say("the run is over already")
        else:
            known = self.snapshot.place
            what = self.path.parent if known is not None and known.to_come else self.path
            self.ask(stop_question(known), lambda: self._begin_stop(what))

    def _begin_stop(self, what: Path) -> None:
        self._say("stopping the run …")
        self._stop_asked = True
        self._stopping = self.run_worker(self._stop(what), exclusive=True)

    async def _stop(self, what: Path) -> None:
        outcome = await commands.run("stop", str(what), outlives=True)
        self._stop_asked = outcome.good
        self._say("" if outcome.good else f"could not stop it: {outcome.complaint}")
        if self._leaving and outcome.good:
            self.gpuwatch.leave(self.path, self.snapshot, stopped=True)
        self._leaving = False
