"""Text from outside made harmless for a terminal and for Markdown."""

from __future__ import annotations

import unicodedata


def clean(text: object, longest: int = 2000) -> str:
    """``text`` on one line, without control characters and direction overrides."""
    shown = "".join(_harmless(character) for character in str(text)[:longest])
    return shown.strip()


def markdown(text: object) -> str:
    """``text`` for a cell of a Markdown table."""
    escaped = "".join("\\" + c if c in "\\`*_{}[]<>|#!&~" else c for c in clean(text))
    return escaped.replace("://", ":\u200b//")


def _harmless(character: str) -> str:
    if character in "\t\n\r":
        return " "
    category = unicodedata.category(character)
    return "\ufffd" if category in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp") else character
