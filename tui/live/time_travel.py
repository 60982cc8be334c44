"""Moving in the time of a session: with keys, the mouse, and by playing; and stopping its run."""

from __future__ import annotations

import time
from abc import abstractmethod
from dataclasses import replace
from math import inf
from pathlib import Path

from textual import events
from textual.timer import Timer
from textual.worker import Worker

from gpuwatch.core.units import NS, clock_time
from gpuwatch.tui import commands
from gpuwatch.tui.feed.snapshot import TIMED, Snapshot, View
from gpuwatch.tui.live.page import Page
from gpuwatch.tui.messages import stop_question
from gpuwatch.tui.plain.plain import title_line
from gpuwatch.tui.widgets.base_screen import CanvasScreen
from gpuwatch.tui.widgets.gauge_rows import LABEL, value_width
from gpuwatch.tui.widgets.head_rows import event_text, notable, slider, speed_text

_SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
"""Session seconds per second; the next step is as fast as possible."""
FRAME_SECONDS = 0.25
"""Time between two snapshots while playing."""


class TimeTravel(CanvasScreen):
    """The part of the live screen that moves in time.

    A subclass calls :meth:`arrived` with every snapshot that it shows, :meth:`action_play` on
    Space, and :meth:`to_now` on Esc if :attr:`travelling`.
    """

    snapshot: Snapshot | None
    _view: View
    _page: Page
    _player: Timer | None = None
    _played_from: tuple[float, int] = (0.0, 0)
    """Clock and session time at which playing started."""
    _dragged: int | None = None
    """The row on which the mouse button was pressed."""

    @abstractmethod
    def _ask(self, **changes: object) -> None:
        """Request another view from the feed."""

    @property
    def travelling(self) -> bool:
        """Whether the view is at an earlier moment."""
        return self._view.at is not None

    def arrived(self, snapshot: Snapshot) -> None:
        """Start the player if needed; at full speed, request the moment after ``snapshot``."""
        at = self._view.at
        if not self._view.playing or at is None:
            return
        if self._player is None:
            self._play_from(at)
        if self._view.speed is None and snapshot.view == self._view:
            self._move(at + int(snapshot.window.column_ns))

    def to_now(self) -> None:
        """Show the newest moment."""
        self._stop_playing()
        self._ask(at=None, playing=False)

    def action_to_now(self) -> None:
        self.say("")
        self.to_now()

    def action_start(self) -> None:
        if self.snapshot is not None:
            self.say("")
            self._move(0)

    def action_step(self, columns: int) -> None:
        if self.snapshot is not None:
            self.say("")
            self._move(self._position + int(columns * self.snapshot.window.column_ns))

    def action_event(self, by: int) -> None:
        """Move to the previous or next event and show it."""
        if self.snapshot is None:
            return
        position = self._position
        notable_events = sorted(notable(self.snapshot.events), key=lambda event: event.t)
        if by < 0:
            earlier = [event for event in notable_events if event.t < position]
            event = earlier[-1] if earlier else None
        else:
            event = next((event for event in notable_events if event.t > position), None)
        if event is None:
            where = f"{'before' if by < 0 else 'after'} {clock_time(position / NS)}"
            self.say(f"no event {where}" if notable_events else "the session has no events")
            return
        place = f"event {notable_events.index(event) + 1} of {len(notable_events)}"
        self.say(f"{place}, at {clock_time(event.t / NS)}: {event_text(event)}")
        self._move(event.t)

    def action_play(self) -> None:
        """Play or stop; from the end, play from the start."""
        if self.snapshot is None or self.snapshot.imported:
            return
        if self._view.playing:
            self._stop_playing()
            self._ask(playing=False)
            return
        start = self.snapshot.window.start if self._view.seconds == TIMED else 0
        position = start if self._view.at is None else self._view.at
        self._play_from(position)
        self._ask(at=position, playing=True)

    def action_speed(self, by: int) -> None:
        slower = [speed for speed in _SPEEDS if speed < (self._view.speed or inf)]
        faster = [speed for speed in _SPEEDS if self._view.speed and speed > self._view.speed]
        speed = (faster[0] if faster else None) if by > 0 else slower[-1] if slower else _SPEEDS[0]
        self._played_from = time.monotonic(), self._view.at or 0
        self._ask(speed=speed)
        if not self.travelling:
            first = "← looks back, " if self.snapshot and self.snapshot.goes_on else ""
            self.say(f"{first}Space plays at {speed_text(speed)}")
        else:
            self.say("")

    def _play_from(self, t: int) -> None:
        self._played_from = time.monotonic(), t
        self._player = self.set_interval(FRAME_SECONDS, self._advance)

    def _advance(self) -> None:
        speed = self._view.speed
        if speed is not None:
            begun, start = self._played_from
            self._move(start + int((time.monotonic() - begun) * speed * NS), by_player=True)

    def _stop_playing(self) -> None:
        if self._player is not None:
            self._player.stop()
            self._player = None

    @property
    def _position(self) -> int:
        if self._view.at is not None or self.snapshot is None:
            return self._view.at or 0
        return min(self.snapshot.t, self.snapshot.window.end)

    @property
    def _end(self) -> int:
        """Session time of the newest record."""
        if self.snapshot is None:
            return 0
        return self.snapshot.replay.length_ns if self.snapshot.replay else self.snapshot.t

    def _move(self, t: int, *, by_player: bool = False) -> None:
        if t >= self._end:
            self.to_now()
            return
        if not by_player:
            self._played_from = time.monotonic(), max(0, t)
        self._ask(at=max(0, t))

    # The mouse.

    def on_mouse_down(self, event: events.MouseDown) -> None:
        if event.button == 1 and (event.y in self._page.timeline or event.y == self._page.bar):
            self._dragged = event.y
            self._move_to_column(event.x)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self._dragged is not None and event.button == 1:
            self._move_to_column(event.x)

    def on_mouse_up(self) -> None:
        self._dragged = None

    def _move_to_column(self, x: int) -> None:
        """Move to the moment at column ``x`` of a history, the axis or the bar."""
        snapshot = self.snapshot
        if snapshot is None or snapshot.imported:
            return
        width = self.app.size.width
        if self._dragged in self._page.timeline:
            column = x - value_width(width) - LABEL
            if 0 <= column < snapshot.window.columns:
                self._move(int(snapshot.window.start + (column + 1) * snapshot.window.column_ns))
        else:
            columns = slider(snapshot, width)
            at = max(0, min(len(columns), x - columns.start + (x >= columns.stop - 1)))
            self._move(int(at / max(1, len(columns)) * self._end))


class Stopping(CanvasScreen):
    """The part of the live screen that stops a run."""

    path: Path
    snapshot: Snapshot | None
    _stop_asked = False
    """Whether the stop command was started and has not failed."""
    _stopping: Worker[None] | None = None
    _leaving = False

    def action_leave(self) -> None:
        """Leave; during a stop, leave after it, or at once if called again."""
        worker = self._stopping
        if worker is not None and worker.is_running and not self._leaving:
            self._leaving = True
            self.say("stopping, then leaving …; q again leaves now")
            return
        self.gpuwatch.leave(self.path, self.snapshot, stopped=self._stop_asked)

    def action_stop(self) -> None:
        """Stop the run after a confirmation."""
        if not self.refused() and self.snapshot is not None:
            place = self.snapshot.place
            target = self.path.parent if place is not None and place.to_come else self.path
            question = stop_question(place)
            question = replace(question, text=f"{question.text}\n{title_line(self.snapshot)}")
            self.ask(question, lambda: self._begin_stop(target))

    def _begin_stop(self, target: Path) -> None:
        self.say("stopping the run …")
        self._stop_asked = True
        self._stopping = self.run_worker(self._stop(target), exclusive=True)

    async def _stop(self, target: Path) -> None:
        outcome = await commands.run("stop", str(target), outlives=True)
        self._stop_asked = outcome.good
        self.say("" if outcome.good else f"cannot stop the run: {outcome.complaint}")
        if self._leaving and outcome.good:
            self.gpuwatch.leave(self.path, self.snapshot, stopped=True)
        self._leaving = False
