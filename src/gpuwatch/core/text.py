"""Makes text from outside safe for terminals, shells, Markdown, spreadsheets and JSON."""

from __future__ import annotations

import json
import os
import re
import shlex
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate
from textwrap import wrap

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)"  # OSC, DCS, SOS, PM, APC
    r"|\x1b."
    r"|\x9b[0-?]*[ -/]*[@-~]"
    r"|[\x90\x98\x9d-\x9f].*?(?:\x07|\x9c|\x1b\\|$)"  # the same in one character
)
_LONGEST = 4096
"""Characters; no line on a screen needs more."""


def clean(text: object, longest: int = _LONGEST) -> str:
    """One line without escape sequences, control, format or direction-changing characters.

    A carriage return rewrites a line: only the text after the last one is kept, as on a terminal.
    Text of more than ``longest`` characters ends in an ellipsis.
    """
    line = str(text).rstrip("\r\n").rpartition("\r")[2]
    if len(line) > longest:
        line = f"{line[: longest - 1].rstrip()}…"
    line = _ESCAPES.sub("", line).expandtabs(4)
    if line.isascii() and line.isprintable():
        return line
    return "".join(_safe(character) for character in line)


def width_of(text: str) -> int:
    """Columns of a terminal that ``text`` takes, clean as it is: a wide character has two."""
    return len(text) if text.isascii() else sum(map(_width_of, text))


def _width_of(character: str) -> int:
    return 1 + (unicodedata.east_asian_width(character) in "WF")


def cut(text: str, longest: int, dots: str = "…", behind: int = 0) -> str:
    """``text`` in at most ``longest`` columns, of which the last ones are ``behind`` its cut."""
    if width_of(text) <= longest:
        return text
    ends = range(1, len(text) + 1) if text.isascii() else [*accumulate(map(_width_of, text))]
    first = bisect_right(ends, longest - behind - len(dots))
    return f"{text[:first]}{dots}{text[bisect_left(ends, ends[-1] - behind) + 1 :]}"


def whole_words(text: str, width: int, indent: str = "", further: str = "  ") -> list[str]:
    """``text`` in lines that break no path or option; all but the first begin ``further`` in."""
    return wrap(
        text,
        width,
        initial_indent=indent,
        subsequent_indent=indent + further,
        break_long_words=False,
        break_on_hyphens=False,
    )


def listed(names: Sequence[str], most: int) -> str:
    """``a, b and 3 more``: the first ``most`` names."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def capital(text: str) -> str:
    """``text`` with a capital first letter."""
    return text[:1].upper() + text[1:]


def notification(text: str) -> str:
    """What rings a terminal and has it tell ``text`` on the desktop (OSC 9)."""
    return f"\a\x1b]9;gpuwatch: {clean(text)}\a"


def shell(word: str | os.PathLike[str]) -> str:
    """``word`` quoted for pasting into a shell, if it needs quotes.

    Invisible characters and invalid UTF-8 are escaped in ``$'...'``, for bash, zsh and ksh.
    """
    text = os.fspath(word)
    if text == clean(text, len(text)):
        return shlex.quote(text)
    try:
        data = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        data = text.encode("utf-8", "replace")
    return "$'" + "".join(_IN_QUOTES.get(byte) or f"\\x{byte:02x}" for byte in data) + "'"


_IN_QUOTES = {byte: chr(byte) for byte in range(0x20, 0x7F)} | {0x27: "\\'", 0x5C: "\\\\"}
"""Bytes that need no escape, or only a backslash, between ``$'`` and ``'``."""


def to_paste(what: str, *operands: str | os.PathLike[str]) -> str:
    """``gpuwatch WHAT OPERAND ...`` for pasting into a shell, safe for any operands.

    ``what`` is a command with its flags. Operands come from outside: none is taken for a flag.
    """
    words = [os.fspath(operand) for operand in operands]
    quoted = [shell(f"./{word}" if word.startswith("-") else word) for word in words]
    return " ".join([f"gpuwatch {what}", *quoted])


_REFERENCES = re.compile(r"[@#](?=\w)|\b(?:www(?=\.)|GH(?=-\d))|:(?=//)", re.IGNORECASE)
"""An invisible space after these keeps GitHub from making a mention, a reference or a link, which
it does after it removes backslashes."""


def markdown(text: object) -> str:
    """``text`` for a cell of a Markdown table: no markup, mention, reference, link or formula."""
    separated = _REFERENCES.sub(lambda match: f"{match[0]}\u200b", clean(text).strip())
    escaped = "".join(
        "\\" + character if character in "\\`*_{}[]<>|#!&~" else character
        for character in separated
    )
    return escaped.replace("$", "&#36;")


_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""How a formula begins; some spreadsheets accept the full-width signs too."""


def spreadsheet(text: object, longest: int = _LONGEST) -> str:
    """``text`` for a CSV cell that no spreadsheet takes for a formula; empty for ``None``."""
    cleaned = clean("" if text is None else text, longest)
    return f"'{cleaned}" if cleaned.startswith(_FORMULA) else cleaned


def document(text: str) -> str:
    """JSON text with escapes for characters that a terminal would act on, or not show."""
    if text.isascii() and "\x7f" not in text:
        return text
    return "".join(c if c == "\n" or c.isprintable() else json.dumps(c)[1:-1] for c in text)


_WIDTHLESS = re.compile("[\u115f-\u11ff\ud7b0-\ud7fb\u3164\uffa0]")
"""Korean syllable parts that join the previous character, and blanks that count as letters."""


def _safe(character: str) -> str:
    if character in "\n\v\f\x85\u2028\u2029":
        return " "
    category = unicodedata.category(character)
    if category in ("Cc", "Cf", "Cs", "Co", "Cn", "Mn", "Me") or _WIDTHLESS.match(character):
        return ""
    return " " if category == "Zs" else character
