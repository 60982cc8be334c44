"""Keys as they are written on the screen: the line at its foot, and their names for Textual."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from gpuwatch.tui.widgets.line import Line

Keys = Sequence[tuple[str, str]]
"""Keys and what they do. One without a key is the heading of those below it."""

EVERYWHERE: tuple[tuple[str, str], ...] = (
    ("? or F1", "all keys"),
    ("Ctrl+P", "find an action by its words"),
    ("t", "colours: dark, light, the terminal's own"),
    ("Ctrl+Z", "to the shell; its `fg` comes back"),
    ("F10 or Ctrl+C", "leave; runs go on"),
)
"""What every screen knows. The mouse presses the keys that are written, and its wheel scrolls."""

_ARROWS = {"↑": "up", "↓": "down", "←": "left", "→": "right"}
_NAMES = {
    **_ARROWS,
    "Esc": "escape",
    "PgUp": "pageup",
    "PgDn": "pagedown",
    "?": "question_mark",
    "/": "slash",
    "+": "plus",
    "-": "minus",
    "<": "less_than_sign",
    ">": "greater_than_sign",
    "[": "left_square_bracket",
    "]": "right_square_bracket",
    "=": "equals_sign",
}
_WORDS = frozenset({"or", "and", ""})
_DIGITS = tuple("0123456789")


def names_of(label: str) -> tuple[str, ...]:
    """The keys of ``z, - and +``, ``↑↓`` or ``Tab, digits`` in Textual's words."""
    found: list[str] = []
    for word in re.split(r"[\s,]+", label):
        if word == "digits":
            found += _DIGITS
        elif word not in _WORDS:
            found += map(_name, word if set(word) <= set(_ARROWS) else [word])
    return tuple(found)


def _name(word: str) -> str:
    *held, key = word.split("+") if len(word) > 1 else [word]
    name = _NAMES.get(key, key if len(key) == 1 and not held else key.lower())
    return "+".join([*map(str.lower, held), name])


def keys_row(keys: Keys, width: int) -> Line:
    """Keys with what they do; those that do not fit are left out, but ``?`` stays: it names all."""
    return _keys_row(tuple(keys), width)


@lru_cache(maxsize=16)
def _keys_row(keys: tuple[tuple[str, str], ...], width: int) -> Line:
    row = Line(width).add(" ")
    to_come = next((_size(key, what) for key, what in keys if key == "?"), 0)
    for key, what in keys:
        if key == "?":
            to_come = 0
        if _size(key, what) + to_come <= row.left:
            _add(row, key)
            names = names_of(key)
            row.add(f" {what}", "muted", press=names[0] if len(names) == 1 else None)
            row.add("  ", "muted")
    return row


def _add(row: Line, label: str) -> None:
    """The key, which a click presses; of ``↑↓`` each arrow is one."""
    parts = list(label) if set(label) <= set(_ARROWS) else re.split(r"(\s+)", label)
    for part in parts:
        names = names_of(part)
        row.add(part, "key", press=names[0] if len(names) == 1 else None)


def _size(key: str, what: str) -> int:
    return len(key) + len(what) + 3


def all_keys(keys: Keys) -> list[tuple[str, str]]:
    """``keys`` of a screen, and behind them those of every screen."""
    common = {name for label, _ in EVERYWHERE for name in names_of(label)}
    own = [
        (label, what)
        for label, what in keys
        if not names_of(label) or not common.issuperset(names_of(label))
    ]
    headed = bool(own) and not own[0][0]
    return [*own, ("", "everywhere" if headed else ""), *EVERYWHERE]
