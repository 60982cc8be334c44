"""A screen that is one canvas: painted anew when it is resized or shown again."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.screen import Screen

from gpuwatch.tui.canvas import Canvas

if TYPE_CHECKING:
    from gpuwatch.tui.app import GpuwatchApp


class PaintedScreen(Screen[None]):
    """Subclasses say what is drawn, in :meth:`paint`."""

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
        yield Canvas()

    def on_resize(self) -> None:
        self.call_after_refresh(self.paint)

    def on_screen_resume(self) -> None:
        self.query_one(Canvas).forget()
        self.call_after_refresh(self.paint)
