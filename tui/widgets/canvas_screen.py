"""A screen that is one canvas: painted anew when it is resized or shown again."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.screen import Screen

from gpuwatch.tui.widgets.canvas import Canvas, Scrolled
from gpuwatch.tui.widgets.field import Field
from gpuwatch.tui.widgets.line import Line

if TYPE_CHECKING:
    from gpuwatch.tui.app import GpuwatchApp
    from gpuwatch.tui.messages import Question


class CanvasScreen(Screen[None]):
    """Subclasses say what is drawn, in :meth:`paint`, and which keys they know."""

    KEYS: ClassVar[tuple[tuple[str, str], ...]] = ()
    """The keys and what they do, for the help page and the command palette.

    A row without a key is the heading of those below it.
    """

    AUTO_FOCUS = ""

    _canvas: Canvas | None = None

    @property
    def gpuwatch(self) -> GpuwatchApp:
        return self.app  # type: ignore[return-value]

    @property
    def on_top(self) -> bool:
        """Whether no other screen is over this one; ``is_current`` holds one further down too."""
        return self.app.screen is self

    @abstractmethod
    def paint(self) -> None:
        """Draw what is known, with :meth:`show`."""

    def show(self, lines: Sequence[Line]) -> None:
        """Draw ``lines``, where there is still something to draw on.

        The canvas goes before its screen does, and what the screen waited for may come in between.
        """
        if self._canvas is not None and self._canvas.is_attached:
            self._canvas.show(lines)

    def compose(self) -> ComposeResult:
        self._canvas = Canvas(ascii=self.gpuwatch.look.ascii)
        yield self._canvas

    def ask(self, question: Question, then: Callable[[], None]) -> None:
        """Ask over this screen, and do ``then`` once the answer is yes."""
        from gpuwatch.tui.widgets.dialog import Dialog

        self.app.push_screen(Dialog(question), lambda yes: then() if yes else None)

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
        self.call_after_refresh(self.paint)


class WritingScreen(CanvasScreen):
    """One on which a line of text can be written, too."""

    def __init__(self) -> None:
        super().__init__()
        self.field = Field()

    def compose(self) -> ComposeResult:
        yield from super().compose()
        yield self.field
