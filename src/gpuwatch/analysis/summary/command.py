"""What ran, as a person would type it: a program or workload with its arguments."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath

from gpuwatch.core.models import JSON
from gpuwatch.core.text import clean, shell

_LONGEST = 300
"""Characters of a command in a list."""
_MOST_WORDS = 100


def command_of(workload: Mapping[str, JSON]) -> str:
    """``train.py --bs 64`` of ``python3 src/train.py --bs 64``, ``mnist-cnn --steps 100``.

    Quoted for a shell, and cut if it is very long.
    """
    name, arguments = clean(workload.get("name") or ""), workload.get("arguments")
    words = [str(word) for word in arguments[:_MOST_WORDS]] if isinstance(arguments, list) else []
    if workload.get("kind") == "command":
        words = _behind(name, words)
    text = clean(" ".join([name, *map(shell, words)]), 2 * _LONGEST)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _behind(name: str, command: list[str]) -> list[str]:
    """The words behind the program or script that ``name`` is short for."""
    for at, word in enumerate(command):
        if name in (word, PurePath(word).name):
            return command[at + 1 :]
    return command[1:]
