"""Detects commands that need a shell, for pipes, lists or redirections."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gpuwatch.core.text import shell

_QUOTED = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"|\\.")
_IN_A_LINE = re.compile(r"[|;<>]+|&&|(?<!\S)&(?!\S)")
_A_WORD = re.compile(r"\|\|?|&&?|;|\d?>>?(&\d)?|<")


def operator_in(line: str) -> str | None:
    """The first unquoted shell operator in ``line``, or ``None``."""
    match = _IN_A_LINE.search(_QUOTED.sub("x", line))
    return match[0] if match else None


def operator_among(words: Sequence[str]) -> str | None:
    """The first of ``words`` that is itself a shell operator, because it was quoted."""
    return next((word for word in words if _A_WORD.fullmatch(word)), None)


def in_bash(line: str) -> str:
    """The command that runs ``line`` in bash."""
    return f"bash -c {shell(line)}"
