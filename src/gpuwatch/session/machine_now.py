"""What is known of a machine elsewhere that is recorded while somebody watches it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gpuwatch.core.lazy_dataclass import dataclass


@dataclass(frozen=True)
class MachineNow:
    """What is known of the connection to a machine."""

    place: str
    """As on the command line: ``ssh=gpu1``."""
    session: Path | None = None
    """What was recorded there, since the connection was made last; ``None``: nothing is here."""
    trouble: str | None = None
    """Why it is away; ``None``: it is there, or is being reached for the first time."""
    heard: float | None = None
    """When something came from it last, in monotonic seconds; ``None``: never."""


Now = Callable[[], tuple[MachineNow, ...]]
"""What is known of all machines at this moment."""
