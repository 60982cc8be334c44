"""Options of a screen that stand before the command: ``gpuwatch --plain replay last``."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

VALUED = ("--interval", "--theme")
"""Those of the home screen behind which a value stands."""


def command_at(arguments: Sequence[str]) -> int:
    """The place of the first word that is neither an option nor the value of one; behind the last
    word where there is none. An option may be cut short, as argparse allows it."""
    at = 0
    while at < len(arguments) and arguments[at].startswith("-"):
        word = arguments[at]
        at += 2 if len(word) > 2 and any(each.startswith(word) for each in VALUED) else 1
    return min(at, len(arguments))
