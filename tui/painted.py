"""A screen that is one canvas: painted anew when it is resized or shown again."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.screen import Screen

from gpuwatch.tui.canvas import Canvas, Scrolled

if TYPE_CHECKING:
    from gpuwatch.tui.app import GpuwatchApp


class PaintedScreen(Screen[None]):
    """Subclasses say what is drawn, in :meth:`paint`, and which keys they know."""

    KEYS: ClassVar[tuple[tuple[str, str], ...]] = ()
    """The keys and what they do, for the help page and the command palette.

    A row without a key is the heading of those below it.
    """

    @property
    def gpuwatch(self) -> GpuwatchApp:
        return self.app  # type: ignore[return-value]

    @property
    def on_top(self) -> bool:
        """Whether no other screen is over this one; ``is_current`` holds one further down too."""
        return self.app.screen is self

    @abstractmethod
    def paint(self) -> None:
        """Draw what is known onto the canvas."""

    def compose(self) -> ComposeResult:
        yield Canvas(ascii=self.gpuwatch.look.ascii)

    def action_help(self) -> None:
        """The page of keys."""
        self.gpuwatch.help(self.KEYS)

    def on_scrolled(self, message: Scrolled) -> None:
        """The wheel does what a screen's ``action_scroll_by(rows)`` does, if it has one."""
        scroll_by = getattr(self, "action_scroll_by", None)
        if scroll_by is not None:
            scroll_by(message.by)

    def on_resize(self) -> None:
        self.call_after_refresh(self.paint)

    def on_screen_resume(self) -> None:
        self.query_one(Canvas).forget()
        self.call_after_refresh(self.paint)
