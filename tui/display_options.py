"""How a screen looks and what it may do: chosen once, at the start."""

from __future__ import annotations

import codecs
from collections.abc import Mapping

from gpuwatch.core.lazy_dataclass import dataclass

LEAST = (40, 8)
"""Columns and rows below which no screen says anything."""

THEMES = ("dark", "light", "terminal")
"""What ``--theme`` takes; ``terminal``: the terminal's own 16 colours."""

READ_ONLY = "read-only: start `gpuwatch`, or `gpuwatch serve --allow-actions`"
"""What a key says that would change something where the screen may not."""

_PLAIN_TERMINALS = frozenset(
    {"ansi", "cons25", "linux", "vt52", "vt100", "vt102", "vt220", "vt320"}
)
"""Terminals whose fonts lack the eighths of a block, whatever the locale says."""


@dataclass(frozen=True)
class DisplayOptions:
    """How the screens are drawn, and whether their keys may act."""

    ascii: bool = False
    """Only characters of ASCII reach the terminal."""
    read_only: bool = False
    """Keys that stop, start, delete, rename, tag, note or export say :data:`READ_ONLY` instead."""
    theme: str | None = None
    """One of :data:`THEMES`; ``None``: what the terminal is known to show."""


USUAL = DisplayOptions()
"""What a screen is drawn with that nobody asked anything of."""


def only_ascii(environment: Mapping[str, str], encoding: str | None) -> bool:
    """Whether a terminal can be trusted with ASCII alone.

    ``encoding`` is that of standard output. A locale that names another encoding than UTF-8 counts,
    and ``LC_ALL=C``, which somebody chose. ``LANG=C`` or no locale is what small systems come with:
    Python takes it for UTF-8, as terminals of today do.
    """
    if environment.get("TERM", "").partition("-")[0] in _PLAIN_TERMINALS:
        return True
    if encoding is not None and not _is_utf8(encoding):
        return True
    if environment.get("LC_ALL") in ("C", "POSIX"):
        return True
    named = next((environment[n] for n in ("LC_ALL", "LC_CTYPE", "LANG") if environment.get(n)), "")
    codeset = named.partition("@")[0].partition(".")[2]
    return bool(codeset) and not _is_utf8(codeset)


def _is_utf8(name: str) -> bool:
    try:
        return codecs.lookup(name).name in ("utf-8", "utf-8-sig")
    except LookupError:
        return False
