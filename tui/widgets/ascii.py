"""The glyphs of the screens in ASCII, each in the same number of cells.

Used for all output to a terminal that can show only ASCII: see :mod:`.terminal`.
"""

from __future__ import annotations

from rich.cells import cell_len

_GLYPHS = {
    # Heights of a history, from low to high.
    **dict(zip("▁▂▃▄▅▆▇█", "_.:-=+*#", strict=True)),
    # Bars and large digits are heavy; axes and the empty parts of bars are light.
    **dict.fromkeys("━╺╸═", "="),
    **dict.fromkeys("─−–—", "-"),
    # Unknown differs from empty.
    **dict.fromkeys("┄╌▖·", "."),
    **dict.fromkeys("│┃║╎┆┊╏┇╻╹▏▕▌▐⏸", "|"),
    **dict.fromkeys("┏┓┗┛┣┫┳┻╋┌┐└┘├┤┬┴┼╪╫╭╮╰╯✓✔", "+"),
    **dict.fromkeys("╱↵⏎", "/"),
    "╲": "\\",
    "░": ":",
    "▒": "%",
    "▓": "@",
    **dict.fromkeys("→▸▶»›►≥", ">"),
    **dict.fromkeys("←◂◀«‹◄⌫≤", "<"),
    **dict.fromkeys("↑▲△", "^"),
    **dict.fromkeys("↓▼", "v"),
    "▽": "V",
    **dict.fromkeys("●◆★•", "*"),
    **dict.fromkeys("○◇□", "o"),
    "■": "#",
    **dict.fromkeys("✗✕×", "x"),
    **dict.fromkeys("…≈±", "~"),
    "µ": "u",
    **dict.fromkeys("‘’", "'"),
    **dict.fromkeys("“”▀▔", '"'),
    **dict.fromkeys("°\u00a0", " "),
}


class _Table(dict[int, str]):
    """A translation table for any character."""

    def __missing__(self, code: int) -> str:
        # The replacement of a wide character has the same width.
        return "?" * cell_len(chr(code))


_ASCII = {code: chr(code) for code in range(0x80)}
_TABLE = _Table(_ASCII | {ord(glyph): text for glyph, text in _GLYPHS.items()})


def to_ascii(text: str) -> str:
    """``text`` in ASCII, in the same number of cells; ``?`` for glyphs without a replacement."""
    return text if text.isascii() else text.translate(_TABLE)
