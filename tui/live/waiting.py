"""A study at a place before its first run: where it waits, and for what."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from textual.binding import Binding, BindingType

from gpuwatch.core import units
from gpuwatch.core.text import clean
from gpuwatch.session import placement
from gpuwatch.session.placement import Placement
from gpuwatch.session.study.plan import Plan
from gpuwatch.session.study.plan import read as read_plan
from gpuwatch.session.study.study_folder import sessions_in
from gpuwatch.tui.feed.feed import REFRESH_SECONDS
from gpuwatch.tui.live.time_travel import Stopping
from gpuwatch.tui.messages import STUDY_QUESTION, farewell_waiting
from gpuwatch.tui.widgets.line import Line, fit, marked_rows, wrap

_LOOK_SECONDS = 0.5


class WaitingScreen(Stopping):
    """Shows what is known of a study's job, and gives way to its first session."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "leave", "leave", tooltip="leave; runs go on"),
        Binding("s", "stop", "stop", tooltip="stop the study, after asking"),
        Binding("escape", "back", "sessions", tooltip="to the sessions; the study goes on"),
    ]

    def __init__(
        self, folder: Path, before: Sequence[Path] = (), *, refresh: float = REFRESH_SECONDS
    ) -> None:
        """``before``: sessions of earlier attempts, which are not waited for. ``refresh``: seconds
        between two pictures of the live screen."""
        super().__init__()
        self.path = folder
        self.snapshot = None
        self._before = frozenset(before)
        self._refresh = refresh
        self._plan = read_plan(folder)
        self._known = placement.read(folder)
        self._message = ""

    def on_mount(self) -> None:
        self.set_interval(_LOOK_SECONDS, self._look)

    def _look(self) -> None:
        if not self.on_top:
            return
        new = [path for path in sessions_in(self.path) if path not in self._before]
        if new:
            from gpuwatch.tui.live.screen import LiveScreen

            self.app.switch_screen(LiveScreen(new[-1], follow=True, refresh=self._refresh))
            return
        self._known = placement.read(self.path)
        self.paint()

    def paint(self) -> None:
        width, height = self.room
        rows = waiting_rows(self.path, self._plan, self._known, time.time(), width)
        if self._message:
            rows += [Line(width), Line(width).add(f" {fit(self._message, width - 2)}", "warn")]
        self.show(rows[:height])

    def say(self, message: str) -> None:
        self._message = message
        self.paint()

    def action_leave(self) -> None:
        known = self._known
        if not self._stop_asked and known is not None and known.going_on:
            self.gpuwatch.farewell = farewell_waiting(self.path)
        self.app.exit(0)

    def action_stop(self) -> None:
        if self._known is None or not self._known.going_on:
            self.say("it is over already")
        elif not self.refused():
            self.ask(STUDY_QUESTION, lambda: self._begin_stop(self.path))

    def action_back(self) -> None:
        self.gpuwatch.go_home(self.path)


def waiting_rows(
    folder: Path, plan: Plan | None, known: Placement | None, now: float, width: int
) -> list[Line]:
    """What is known of the job of the study in ``folder`` at ``now``, in Unix seconds."""
    title = Line(width).add(" gpuwatch ", "brand")
    rows = [title.add(fit(clean(folder.name), title.left), "strong"), Line(width)]
    if known is None:
        return [*rows, Line(width).add(" nothing is known of where it runs", "muted")]
    role = "text" if known.going_on else "bad"
    rows += [Line(width).add(f" {text}", role) for text in wrap(known.text, width - 2, 3)]
    rows += [*marked_rows(known.hint or "", " → ", "key", width, 2), Line(width)]
    if known.changes:
        since = known.changes[-1][1]
        clock = time.strftime("%H:%M", time.localtime(min(max(since, 0.0), 1e11)))
        text = f" since {clock} ({units.clock_time(max(0.0, now - since))})"
        rows.append(Line(width).add(text, "muted"))
    if known.native is not None and not known.job:
        rows.append(Line(width).add(fit(f" job {known.known_as}", width), "muted"))
    if plan is not None and plan.runs:
        labels = dict.fromkeys(clean(run.environment.label) for run in plan.runs)
        told = f"{units.counted(len(plan.runs), 'run')}: {', '.join(labels)}"
        rows += [Line(width).add(f" {text}", "muted") for text in wrap(told, width - 2, 3)]
    return rows
