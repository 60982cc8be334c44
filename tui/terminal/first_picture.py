"""Drawing rows before Textual is loaded, which takes longer than all else of a start.

They are those of the screen that is coming, in its colours, so that nothing changes when it comes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress

from rich.color import ColorSystem

from gpuwatch.core.errors import GpuwatchError
from gpuwatch.tui.display_options import LEAST, DisplayOptions
from gpuwatch.tui.widgets import palette
from gpuwatch.tui.widgets.ascii import to_ascii
from gpuwatch.tui.widgets.ascii_words import in_words
from gpuwatch.tui.widgets.line import Line
from gpuwatch.tui.widgets.pen import Pen

_NAMES = {
    ColorSystem.STANDARD: "standard",
    ColorSystem.EIGHT_BIT: "256",
    ColorSystem.TRUECOLOR: "truecolor",
}
"""What Rich calls them."""

UNREADABLE = (GpuwatchError, OSError, ArithmeticError, LookupError, TypeError, ValueError)
"""What reading and drawing a session may raise: there is no first picture then, and the screen,
which reads it again, says why."""


def size() -> tuple[int, int] | None:
    """Columns and rows of the terminal on standard output; ``None`` where nothing fits on it."""
    try:
        width, height = os.get_terminal_size(1)
    except OSError:
        return None
    columns, rows = LEAST
    return None if width < columns or height < rows else (width, height)


def draw(lines: Sequence[Line], look: DisplayOptions) -> None:
    """Draw a whole screen on standard output, over what stands there.

    Raises:
        OSError: the terminal is gone.
    """
    _write(_picture(lines, look))


def color_system(environment: Mapping[str, str]) -> ColorSystem:
    """The colours that the terminal shows, as Rich's console says it, which takes long to load."""
    if environment.get("COLORTERM", "").strip().lower() in ("truecolor", "24bit"):
        return ColorSystem.TRUECOLOR
    many = environment.get("TERM", "").strip().lower().rpartition("-")[2] in ("256color", "kitty")
    return ColorSystem.EIGHT_BIT if many else ColorSystem.STANDARD


def _picture(lines: Sequence[Line], look: DisplayOptions) -> str:
    """All rows to their ends, as one sequence."""
    environment = dict(os.environ)
    no_color = environment.pop("NO_COLOR", None) is not None
    system = color_system(environment)
    theme = palette.chosen(no_color, _NAMES[system], environment, look.theme)
    roles = palette.styles(theme, no_color)
    pen = Pen(system)
    for y, line in enumerate(lines):
        pen.move(0, y)
        row = in_words(line) if look.ascii else line
        for text, role in (*row.spans(), (" " * row.left, "text")):
            pen.write(to_ascii(text) if look.ascii else text, roles.get(role, roles["text"]))
    return pen.sequence()


def _write(text: str) -> None:
    """To the terminal; one that takes nothing more gets the picture from Textual."""
    data = text.encode("utf-8", "replace")
    with suppress(BlockingIOError):
        while data:
            data = data[os.write(1, data) :]
