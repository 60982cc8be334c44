"""What every screen has: the key of its help, a footer of whole keys, questions over it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from rich.table import Table
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Mount
from textual.screen import Screen
from textual.widgets import Static

from gpuwatch.tui.display_options import LEAST
from gpuwatch.tui.widgets.dialog import Dialog
from gpuwatch.tui.widgets.palette import styles

if TYPE_CHECKING:
    from gpuwatch.tui.app import GpuwatchApp
    from gpuwatch.tui.messages import Question

TOO_SMALL = f"too small\nneeds {LEAST[0]}x{LEAST[1]}"


class BaseScreen(Screen[None]):
    """Keys are declared once, in ``BINDINGS``: a binding's description stands in the footer, its
    tooltip in the help and the palette."""

    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark,f1", "app.help", "help", tooltip="all keys of this screen"),
    ]

    @property
    def gpuwatch(self) -> GpuwatchApp:
        return self.app  # type: ignore[return-value]

    @property
    def on_top(self) -> bool:
        """Whether no other screen is over this one; ``is_current`` holds one further down too."""
        return self.app.screen is self

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
        self.app.push_screen(Dialog(question), lambda n: then[n - 1]() if n else None)


class WidgetScreen(BaseScreen):
    """A screen of widgets; on a terminal that is too small for any it says so in their place.

    What a subclass composes comes behind ``super().compose()``.
    """

    HORIZONTAL_BREAKPOINTS = [(0, "-too-narrow"), (LEAST[0], "-narrow")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-too-low"), (LEAST[1], "-low")]  # noqa: RUF012

    def compose(self) -> ComposeResult:
        yield Static(TOO_SMALL, id="too-small")


class TitleRow(Static):
    """``gpuwatch`` and what a screen shows at the left, its state at the right."""

    def __init__(self, left: str = "") -> None:
        super().__init__()
        self._left, self._right = left, ""

    def say(self, left: str, right: str = "") -> None:
        if (left, right) != (self._left, self._right):
            self._left, self._right = left, right
            self.refresh()

    def render(self) -> Table:
        roles = styles(self.app.current_theme, self.app.no_color)
        row = Table.grid(expand=True)
        row.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
        row.add_column(no_wrap=True, overflow="ellipsis")
        row.add_row(
            Text.assemble((" gpuwatch ", roles["brand"]), (self._left, roles["strong"])),
            Text(f"  {self._right} ", roles["muted"]),
        )
        return row
