"""Screen options before the command: ``gpuwatch --plain replay last``."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

VALUED = ("--interval", "--on", "--theme")
"""Home-screen options that take a value."""


def command_at(arguments: Sequence[str]) -> int:
    """Index of the first word that is neither an option nor an option's value; the number of words
    if there is none. Options may be abbreviated, as in argparse."""
    at = 0
    while at < len(arguments) and arguments[at].startswith("-"):
        word = arguments[at]
        at += 2 if len(word) > 2 and any(option.startswith(word) for option in VALUED) else 1
    return min(at, len(arguments))
