"""``attempts`` in the folder of a study that runs at a place: the attempts that were started."""

from __future__ import annotations

import re
from pathlib import Path

from gpuwatch.core.paths import read_regular

ATTEMPTS = "attempts"
ATTEMPT = re.compile(r"[0-9a-f]{16}")
"""The id of an attempt."""
_LARGEST = 64 << 10


def attempts(folder: Path) -> tuple[str, ...]:
    """The ids of the attempts that a recorder began, oldest first; empty if there is no file."""
    try:
        raw = read_regular(folder / ATTEMPTS, _LARGEST)
    except OSError:
        return ()
    words = raw[:_LARGEST].decode(errors="replace").split()
    return tuple(word for word in words if ATTEMPT.fullmatch(word))
