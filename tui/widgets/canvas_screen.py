"""The base of screens that are drawn: a canvas with rows of text, and the footer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from textual.app import ComposeResult
from textual.widgets import Footer

from gpuwatch.tui.widgets.base_screen import BaseScreen
from gpuwatch.tui.widgets.canvas import Canvas, Scrolled
from gpuwatch.tui.widgets.field import Field
from gpuwatch.tui.widgets.line import Line


class CanvasScreen(BaseScreen):
    """Subclasses draw in :meth:`paint`."""

    _canvas: Canvas | None = None

    @property
    def room(self) -> tuple[int, int]:
        """Columns and rows of the canvas: the terminal without the footer."""
        width, height = self.app.size
        return width, height - 1

    @abstractmethod
    def paint(self) -> None:
        """Draw the current state, with :meth:`show`."""

    def show(self, lines: Sequence[Line]) -> None:
        """Draw ``lines``; nothing once the canvas is gone, which happens before its screen goes."""
        if self._canvas is not None and self._canvas.is_attached:
            self._canvas.show(lines)

    def compose(self) -> ComposeResult:
        self._canvas = Canvas(ascii=self.gpuwatch.look.ascii)
        yield self._canvas
        yield Footer(compact=True)

    def on_scrolled(self, message: Scrolled) -> None:
        """The wheel does what a screen's ``action_scroll_by(rows)`` does, if it has one."""
        scroll_by = getattr(self, "action_scroll_by", None)
        if scroll_by is not None:
            scroll_by(message.by)

    def on_resize(self) -> None:
        self.call_after_refresh(self.paint)

    def on_screen_resume(self) -> None:
        self.call_after_refresh(self.paint)


class WritingScreen(CanvasScreen):
    """A canvas screen on which a line of text can be written."""

    def __init__(self) -> None:
        super().__init__()
        self.field = Field()

    def compose(self) -> ComposeResult:
        yield from super().compose()
        yield self.field
