"""The screens' glyphs in ASCII, each in as many cells as it had.

Where a terminal can draw nothing else, this stands right before it: see :mod:`.terminal`.
"""

from __future__ import annotations

from rich.cells import cell_len

_GLYPHS = {
    # Heights of a history, from low to high.
    **dict(zip("▁▂▃▄▅▆▇█", "_.:-=+*#", strict=True)),
    # Bars and big digits are heavy, axes and rests of bars are light.
    **dict.fromkeys("━╺╸═", "="),
    "─": "-",
    # Unknown is not empty.
    **dict.fromkeys("┄╌", "."),
    **dict.fromkeys("│┃║╎┆┊╏┇", "|"),
    **dict.fromkeys("┏┓┗┛┣┫┳┻╋┌┐└┘├┤┬┴┼╪╫╭╮╰╯", "+"),
    "╻": ",",
    "╹": "'",
    "╱": "/",
    "╲": "\\",
    **dict.fromkeys("▀▔", '"'),
    "▖": ".",
    "▏": "|",
    "▕": "|",
    "▌": "|",
    "▐": "|",
    "░": ":",
    "▒": "%",
    "▓": "@",
    **dict.fromkeys("→▸▶»›►", ">"),
    **dict.fromkeys("←◂◀«‹◄", "<"),
    **dict.fromkeys("↑▲△", "^"),
    **dict.fromkeys("↓▼▽", "v"),
    "●": "*",
    "◆": "*",
    "★": "*",
    "○": "o",
    "◇": "o",
    "■": "#",
    "□": "o",
    "•": "*",
    "·": ".",
    "✓": "+",
    "✔": "+",
    "✗": "x",
    "✕": "x",
    "×": "x",
    "⏸": "|",
    "…": "~",
    "≤": "<",
    "≥": ">",
    "≈": "~",
    "±": "~",
    "−": "-",
    "–": "-",
    "—": "-",
    "°": " ",
    "↵": "/",
    "µ": "u",
    "‘": "'",
    "’": "'",
    "“": '"',
    "”": '"',
    "\u00a0": " ",
}


class _Table(dict[int, str]):
    """Answers for any character, and remembers the answer."""

    def __missing__(self, code: int) -> str:
        # A wide character must not move what stands behind it.
        answer = chr(code) if code < 0x80 else "?" * cell_len(chr(code))
        if len(self) < _MOST:
            self[code] = answer
        return answer


_MOST = 4096
_TABLE = _Table({ord(glyph): text for glyph, text in _GLYPHS.items()})


def to_ascii(text: str) -> str:
    """``text`` in ASCII and in as many cells: a mark for a mark, ``?`` for what has none."""
    return text if text.isascii() else text.translate(_TABLE)


def known(glyph: str) -> bool:
    """Whether a glyph has an own mark in ASCII."""
    return glyph.isascii() or glyph in _GLYPHS
