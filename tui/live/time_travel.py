"""Looking at an earlier moment of a session: the keys, the mouse and the clock that move there."""

from __future__ import annotations

import time
from abc import abstractmethod
from math import inf
from typing import TYPE_CHECKING

from textual import events

from gpuwatch.core.text import clean
from gpuwatch.core.units import NS, clock_time
from gpuwatch.tui.feed.snapshot import Snapshot
from gpuwatch.tui.feed.view import View
from gpuwatch.tui.live.gauge_rows import LABEL, value_width
from gpuwatch.tui.live.time_rows import notable, slider, speed_text
from gpuwatch.tui.widgets.canvas_screen import CanvasScreen

if TYPE_CHECKING:
    from textual.timer import Timer

_FINITE = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
"""Session seconds a second; behind them comes as fast as it draws."""
FRAME_SECONDS = 0.25
"""Between two pictures while playing."""


class TimeTravel(CanvasScreen):
    """The part of the live screen that moves in time.

    A screen made from it calls :meth:`arrived` with every snapshot that it shows,
    :meth:`action_play` on Space and :meth:`to_now` on Esc where :attr:`travelling` is true, and
    says in :meth:`_rows_of_time` where the axis and the bar stand.
    """

    snapshot: Snapshot | None
    _view: View
    _player: Timer | None = None
    _since: tuple[float, int] = (0.0, 0)
    """The moment of the clock and of the session from which it plays."""
    _dragged: int | None = None
    """The row that the mouse was pressed on."""

    @abstractmethod
    def _ask(self, **changes: object) -> None:
        """Ask the feed for another view."""

    @abstractmethod
    def _say(self, message: str) -> None:
        """Show a message in the foot."""

    @abstractmethod
    def _rows_of_time(self) -> tuple[int | None, int | None]:
        """The rows of the time axis and of the whole session's bar, where they are drawn."""

    @property
    def travelling(self) -> bool:
        """An earlier moment is asked for."""
        return self._view.at is not None

    def arrived(self, snapshot: Snapshot) -> None:
        """A snapshot was drawn: where playing is as fast as it draws, ask for the next."""
        at = self._view.at
        if not self._view.playing or at is None:
            return
        if self._player is None:
            self._play_from(at)
        if self._view.speed is None and snapshot.view == self._view:
            self._move(at + int(self._column()))

    def to_now(self) -> None:
        """Back to the end: of a run that goes on to now, of one that is over to its whole."""
        self._stop_playing()
        self._ask(at=None, playing=False)

    def action_to_now(self) -> None:
        self._say("")
        self.to_now()

    def action_start(self) -> None:
        if self.snapshot is not None and not self.snapshot.imported:
            self._say("")
            self._move(0)

    def action_step(self, columns: int) -> None:
        if self.snapshot is not None:
            self._say("")
            self._move(self._here + int(columns * self._column()))

    def action_event(self, by: int) -> None:
        """To the event before or the next one, and say which."""
        if self.snapshot is None:
            return
        here = self._here
        found = sorted(notable(self.snapshot.events), key=lambda event: event.t)
        if by < 0:
            ahead = [event for event in found if event.t < here]
            event = ahead[-1] if ahead else None
        else:
            event = next((event for event in found if event.t > here), None)
        if event is None:
            where = f"{'before' if by < 0 else 'after'} {clock_time(here / NS)}"
            self._say(f"no event {where}" if found else "the session has no events")
            return
        place = f"event {found.index(event) + 1} of {len(found)}"
        told = f"{clean(event.kind)}: {clean(event.text)}"
        self._say(f"{place}, at {clock_time(event.t / NS)}: {told}")
        self._move(event.t)

    def action_play(self) -> None:
        """Play from here, or stop; at the end: from the start."""
        if self.snapshot is None or self.snapshot.imported:
            return
        if self._view.playing:
            self._stop_playing()
            self._ask(playing=False)
            return
        here = 0 if self._view.at is None else self._view.at
        self._play_from(here)
        self._ask(at=here, playing=True)

    def action_speed(self, by: int) -> None:
        slower = [each for each in _FINITE if each < (self._view.speed or inf)]
        faster = [each for each in _FINITE if self._view.speed and each > self._view.speed]
        speed = (faster[0] if faster else None) if by > 0 else slower[-1] if slower else _FINITE[0]
        self._since = time.monotonic(), self._view.at or 0
        self._ask(speed=speed)
        if not self.travelling:
            first = "← looks back, " if self.snapshot and self.snapshot.goes_on else ""
            self._say(f"{first}Space plays at {speed_text(speed)}")

    def _play_from(self, t: int) -> None:
        self._since = time.monotonic(), t
        self._player = self.set_interval(FRAME_SECONDS, self._play)

    def _play(self) -> None:
        speed = self._view.speed
        if speed is not None:
            begun, start = self._since
            self._move(start + int((time.monotonic() - begun) * speed * NS), played=True)

    def _stop_playing(self) -> None:
        if self._player is not None:
            self._player.stop()
            self._player = None

    @property
    def _here(self) -> int:
        at = self._view.at
        return at if at is not None else self.snapshot.t if self.snapshot else 0

    @property
    def _end(self) -> int:
        """Session time of the newest record, as far as it has been read."""
        if self.snapshot is None:
            return 0
        return self.snapshot.replay.length_ns if self.snapshot.replay else self.snapshot.t

    def _column(self) -> float:
        """Nanoseconds of a column of the history."""
        return self.snapshot.window.column_ns if self.snapshot is not None else 1.0

    def _move(self, t: int, *, played: bool = False) -> None:
        if t >= self._end:
            self.to_now()
            return
        if not played:
            self._since = time.monotonic(), max(0, t)
        self._ask(at=max(0, t))

    # The mouse.

    def on_mouse_down(self, event: events.MouseDown) -> None:
        if event.button == 1 and event.y in self._rows_of_time():
            self._dragged = event.y
            self._scrub(event.x)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self._dragged is not None and event.button == 1:
            self._scrub(event.x)

    def on_mouse_up(self) -> None:
        self._dragged = None

    def _scrub(self, x: int) -> None:
        """Go to the moment under column ``x`` of the axis or of the bar."""
        snapshot = self.snapshot
        if snapshot is None or snapshot.imported:
            return
        width = self.app.size.width
        if self._dragged == self._rows_of_time()[0]:
            column = x - value_width(width) - LABEL
            if 0 <= column < snapshot.window.columns:
                self._move(int(snapshot.window.start + (column + 1) * self._column()))
        else:
            columns = slider(snapshot, width)
            at = max(0, min(len(columns), x - columns.start + (x >= columns.stop - 1)))
            self._move(int(at / max(1, len(columns)) * self._end))
