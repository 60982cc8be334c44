"""The base of every screen: a canvas with rows of text, and Textual's footer with the keys."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Mount
from textual.screen import Screen
from textual.widgets import Footer

from gpuwatch.tui.widgets.canvas import Canvas, Scrolled
from gpuwatch.tui.widgets.field import Field
from gpuwatch.tui.widgets.line import Line

if TYPE_CHECKING:
    from gpuwatch.tui.app import GpuwatchApp
    from gpuwatch.tui.messages import Question


class CanvasScreen(Screen[None]):
    """Subclasses draw in :meth:`paint`, and declare their keys once, in ``BINDINGS``.

    A binding's description stands in the footer, its tooltip in the help and the palette.
    """

    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark,f1", "app.help", "help", tooltip="all keys of this screen"),
    ]

    _canvas: Canvas | None = None

    @property
    def gpuwatch(self) -> GpuwatchApp:
        return self.app  # type: ignore[return-value]

    @property
    def on_top(self) -> bool:
        """Whether no other screen is over this one; ``is_current`` holds one further down too."""
        return self.app.screen is self

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

    @on(Mount)
    def _watch_layout(self) -> None:
        self.screen_layout_refresh_signal.subscribe(self, lambda _: self._show_whole_keys())

    def _show_whole_keys(self) -> None:
        """Hide the keys of the footer that have no room beside the last one, the palette's."""
        keys = list(self.query("FooterKey"))
        room = self.size.width - sum(palette.outer_size.width for palette in keys[-1:])
        for key in keys[:-1]:
            room -= key.outer_size.width
            key.visible = room >= 0
            room -= key.styles.margin.right

    def ask(self, question: Question, *then: Callable[[], None]) -> None:
        """Ask over this screen, and do what the answer says: ``then`` is of yes, and of its other
        ways in their order."""
        from gpuwatch.tui.widgets.dialog import Dialog

        self.app.push_screen(Dialog(question), lambda n: then[n - 1]() if n else None)

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
