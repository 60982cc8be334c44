"""Commands on one line: their words, and whether they need a shell, for pipes or redirections."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence

from gpuwatch.core.errors import UsageError
from gpuwatch.core.text import shell

_QUOTED = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"|\\.")
_IN_A_LINE = re.compile(r"[|;<>]+|&&|(?<!\S)&(?!\S)")
_A_WORD = re.compile(r"\|\|?|&&?|;|\d?>>?(&\d)?|<")
_SETS = re.compile(r"[A-Za-z_]\w*=")
"""How a word begins that sets a variable in a shell."""


def words(line: str, name: str, written: Callable[[str], str]) -> tuple[str, ...]:
    """The words of the command ``line``, split as a shell would, but run by none.

    Args:
        name: what errors call it.
        written: a command as it is to be written in its place.

    Raises:
        UsageError: it is empty, a quote is not closed, or it needs a shell.
    """
    example = f"write {written('python train.py')}"
    try:
        found = tuple(shlex.split(line))
    except ValueError as error:
        raise UsageError(f"{name} cannot be split: {error}", example) from None
    if not found or not found[0]:
        raise UsageError(f"{name} is empty", example)
    if operator := operator_in(line):
        hint = f"write {written(in_bash(line))}, or quote it where it is a word"
        raise UsageError(f"{operator} in {name} is for a shell", hint)
    if _SETS.match(found[0]):
        hint = f"write {written(f'env {line}')}, or set={found[0]} in --env"
        raise UsageError(f"{found[0]} in {name} sets a variable only in a shell", hint)
    return found


def operator_in(line: str) -> str | None:
    """The first unquoted shell operator in ``line``, or ``None``."""
    match = _IN_A_LINE.search(_QUOTED.sub("x", line))
    return match[0] if match else None


def operator_among(words: Sequence[str]) -> str | None:
    """The first of ``words`` that is itself a shell operator, because it was quoted."""
    return next((word for word in words if _A_WORD.fullmatch(word)), None)


def in_bash(line: str) -> str:
    """The command that runs ``line`` in bash; a pipe fails where any part of it fails."""
    fails = "-o pipefail " if "|" in _QUOTED.sub("x", line) else ""
    return f"bash {fails}-c {shell(line)}"
