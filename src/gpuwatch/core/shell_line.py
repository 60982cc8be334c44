"""Commands that were meant for a shell, which alone knows pipes, lists and redirections."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gpuwatch.core.text import shell

_QUOTED = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"|\\.")
_IN_A_LINE = re.compile(r"[|;<>]+|&&|(?<!\S)&(?!\S)")
_A_WORD = re.compile(r"\|\|?|&&?|;|\d?>>?(&\d)?|<")


def operator_in(line: str) -> str | None:
    """The first operator of a shell that stands in ``line`` without quotes; ``None``: there is
    none."""
    found = _IN_A_LINE.search(_QUOTED.sub("x", line))
    return found[0] if found else None


def operator_among(words: Sequence[str]) -> str | None:
    """The first of ``words`` that is an operator by itself, as someone wrote it in quotes."""
    return next((word for word in words if _A_WORD.fullmatch(word)), None)


def in_bash(line: str) -> str:
    """The command that has ``line`` run by a shell."""
    return f"bash -c {shell(line)}"
