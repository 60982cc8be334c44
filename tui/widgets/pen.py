"""Styled text as control sequences, each of which says only what differs from before."""

from __future__ import annotations

from functools import lru_cache

from rich.color import ColorSystem
from rich.style import Style

from gpuwatch.tui.widgets.changes import narrow

_Look = tuple[tuple[str, ...], str, str]
"""The attributes' codes, those of the colour, and those of the background."""
_PLAIN: _Look = ((), "39", "49")
_ATTRIBUTES = (
    ("bold", "1", "22"),
    ("dim", "2", "22"),
    ("italic", "3", "23"),
    ("underline", "4", "24"),
    ("blink", "5", "25"),
    ("reverse", "7", "27"),
    ("strike", "9", "29"),
)
"""Of a style; the codes that turn it on and off."""
_OFF = {on: off for _, on, off in _ATTRIBUTES}


class Pen:
    """Writes styled text here and there, and knows what the terminal was told before."""

    def __init__(self, system: ColorSystem) -> None:
        """``system``: the colours that the terminal knows."""
        self._system = system
        self._look: _Look = _PLAIN
        self._style: Style | None = None
        self._out: list[str] = []
        self._at: tuple[int, int] | None = None
        """Where the terminal's cursor is, as long as that is sure."""

    def move(self, x: int, y: int) -> None:
        """Go to a cell, counted from 0: along a row by a step, which is half as long to say."""
        before, self._at = self._at, (x, y)
        if before is None or before[1] != y or before[0] > x:
            self._out.append(f"\x1b[{y + 1};{x + 1}H")
        elif before[0] < x:
            self._out.append(f"\x1b[{x - before[0]}C")

    def write(self, text: str, style: Style | None) -> None:
        """Write from where the pen is."""
        if style is not self._style:
            look = _PLAIN if style is None else _look(style, self._system)
            if look != self._look:
                self._out.append(_switch(self._look, look))
                self._look = look
            self._style = style
        self._out.append(text)
        if self._at is not None:
            x, y = self._at
            self._at = (x + len(text), y) if narrow(text) else None

    def sequence(self) -> str:
        """All that was written; behind it the terminal's style is its plain one."""
        if self._look != _PLAIN:
            self._out.append("\x1b[0m")
            self._look, self._style = _PLAIN, None
        return "".join(self._out)


@lru_cache(maxsize=1024)
def _look(style: Style, system: ColorSystem) -> _Look:
    on = tuple(code for name, code, _ in _ATTRIBUTES if getattr(style, name))
    colours = ["39", "49"]
    for place, colour in enumerate((style.color, style.bgcolor)):
        if colour is not None:
            codes = colour.downgrade(system).get_ansi_codes(foreground=place == 0)
            colours[place] = ";".join(codes)
    return on, colours[0], colours[1]


@lru_cache(maxsize=4096)
def _switch(before: _Look, after: _Look) -> str:
    """The sequence that leads from one style to another."""
    codes: list[str] = []
    ended = {_OFF[code] for code in before[0] if code not in after[0]}
    codes += sorted(ended)
    # 22 ends bold and dim at once.
    codes += [code for code in after[0] if code not in before[0] or _OFF[code] in ended]
    codes += [new for old, new in zip(before[1:], after[1:], strict=True) if old != new]
    return f"\x1b[{';'.join(codes)}m"
