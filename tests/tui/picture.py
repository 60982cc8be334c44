"""A picture of the screen as SVG that loads nothing from elsewhere.

Rich's own export names fonts on a server, and centres text by ``textLength``, which leaves seams in
block characters. Here each run of one style is one text, and block characters are rectangles.
"""

from __future__ import annotations

from typing import Any
from xml.sax.saxutils import escape

from rich.color import Color
from rich.terminal_theme import SVG_EXPORT_THEME
from textual.app import App

CELL, ROW, SIZE = 8.4, 18.0, 14.0
MARGIN = 12.0
_BLOCKS = " ▁▂▃▄▅▆▇█"
_LINES = "─━╸┄"
FONTS = "ui-monospace, 'DejaVu Sans Mono', 'Cascadia Mono', Menlo, Consolas, monospace"


def picture(app: App[Any]) -> str:
    """The screen of ``app`` as SVG."""
    strips = app.screen._compositor.render_strips()
    width = app.size.width * CELL + 2 * MARGIN
    height = app.size.height * ROW + 2 * MARGIN
    background = _background(strips)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'font-family="{FONTS}" font-size="{SIZE:g}">',
        f'<rect width="{width:g}" height="{height:g}" rx="8" fill="{background}"/>',
    ]
    for y, strip in enumerate(strips):
        x = 0
        for segment in strip:
            if segment.style is not None:
                parts += segment_parts(segment.text, segment.style, x, y, background)
            x += segment.cell_length
    parts.append("</svg>")
    return "\n".join(part for part in parts if part) + "\n"


def _background(strips: list[Any]) -> str:
    for strip in strips:
        for segment in strip:
            if segment.style and segment.style.bgcolor:
                return _hex(segment.style.bgcolor, False)
    return "#000000"


def _hex(color: Color | None, foreground: bool) -> str:
    color = color or Color.default()
    return color.get_truecolor(SVG_EXPORT_THEME, foreground=foreground).hex


def segment_parts(text: str, style: Any, x: int, y: int, background: str) -> list[str]:
    """A text of one style at a column and row."""
    front, back = _hex(style.color, True), _hex(style.bgcolor, False)
    if style.reverse:
        front, back = back, front
    parts = []
    lines = set(text) <= set(_LINES + " ")
    if back != background:
        parts.append(_rect(x, y * ROW, len(text), ROW, back))
    index = 0
    while index < len(text):
        start, character = index, text[index]
        kind = _kind(character, lines)
        while index < len(text) and _kind(text[index], lines) == kind:
            if kind == "block" and text[index] != character:
                break
            index += 1
        piece = text[start:index]
        if kind == "block":
            eighths = _BLOCKS.index(character) / 8
            top = y * ROW + ROW * (1 - eighths)
            parts.append(_rect(x + start, top, len(piece), ROW * eighths, front))
        elif kind == "line":
            parts += _line(piece, x + start, y, front)
        else:
            parts += _words(piece, x + start, y, front, style)
    return parts


def _kind(character: str, lines: bool) -> str:
    if character in _BLOCKS[1:]:
        return "block"
    return "line" if lines and character in _LINES else "text"


def _rect(x: float, top: float, cells: float, height: float, fill: str) -> str:
    return (
        f'<rect x="{MARGIN + x * CELL:.1f}" y="{MARGIN + top:.1f}" width="{cells * CELL:.1f}" '
        f'height="{height:.1f}" fill="{fill}" shape-rendering="crispEdges"/>'
    )


def _line(piece: str, x: int, y: int, fill: str) -> list[str]:
    parts = []
    thick = piece.count("━") + piece.count("╸") / 2
    middle = y * ROW + ROW / 2
    if thick:
        parts.append(_rect(x, middle - 2, thick, 4, fill))
    elif "┄" in piece:
        parts += [_rect(x + at + 0.2, middle - 0.5, 0.5, 1, fill) for at in range(len(piece))]
    else:
        parts.append(_rect(x, middle - 0.5, len(piece), 1, fill))
    return parts


def _words(piece: str, x: int, y: int, fill: str, style: Any) -> list[str]:
    """Each word has its own position, so that the width of spaces does not matter."""
    parts = []
    weight = ' font-weight="bold"' if style.bold else ""
    column = x
    for word in piece.split(" "):
        if word:
            parts.append(
                f'<text x="{MARGIN + column * CELL:.1f}" y="{MARGIN + y * ROW + 13.5:.1f}" '
                f'textLength="{len(word) * CELL:.1f}" lengthAdjust="spacingAndGlyphs" '
                f'fill="{fill}"{weight}>{escape(word)}</text>'
            )
        column += len(word) + 1
    return parts
