"""Looking at an earlier moment of a session: the keys, the mouse and the clock that move there."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType

from gpuwatch.tui.painted import PaintedScreen
from gpuwatch.tui.snapshot import Snapshot, View

SPEEDS: tuple[float | None, ...] = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, None)
"""Session seconds a second; ``None``: as fast as it draws."""

HELP: tuple[tuple[str, str], ...] = (
    ("← →", "a column of the history back or forward in time; Shift: ten"),
    ("[ ]", "the event before, the next event"),
    ("Home End", "the start; the end: of a run that goes on, now"),
    ("Space", "of a run that is over: play, and stop playing"),
    ("< >", "slower, faster"),
    ("mouse", "click or drag on the time axis or on the bar of the whole session"),
)


class TimeTravel(PaintedScreen):
    """The part of the live screen that moves in time.

    A screen made from it has ``snapshot`` and ``_view``, asks its feed in ``_ask`` and answers in
    ``_say``; it calls :meth:`arrived` with every snapshot that it shows, :meth:`action_play` on
    Space where the run is over, and :meth:`to_now` on Esc where :attr:`travelling` is true.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "step(-1)", show=False),
        Binding("right", "step(1)", show=False),
        Binding("shift+left", "step(-10)", show=False),
        Binding("shift+right", "step(10)", show=False),
        Binding("left_square_bracket", "event(-1)", show=False),
        Binding("right_square_bracket", "event(1)", show=False),
        Binding("home", "start", show=False),
        Binding("end", "to_now", show=False),
        Binding("less_than_sign", "speed(-1)", show=False),
        Binding("greater_than_sign", "speed(1)", show=False),
    ]

    snapshot: Snapshot | None
    _view: View

    def _ask(self, **changes: object) -> None:
        raise NotImplementedError

    def _say(self, message: str) -> None:
        raise NotImplementedError

    @property
    def travelling(self) -> bool:
        """An earlier moment is asked for."""
        raise NotImplementedError

    def arrived(self, snapshot: Snapshot) -> None:
        """A snapshot was drawn: where playing is as fast as it draws, ask for the next."""
        raise NotImplementedError

    def to_now(self) -> None:
        """Back to the end: of a run that goes on to now, of one that is over to its whole."""
        raise NotImplementedError

    def action_play(self) -> None:
        """Play from here, or stop; at the end: from the start."""
        raise NotImplementedError
