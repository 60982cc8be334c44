"""The comparison of a study that goes on, from its summary, which is written after each run."""

from __future__ import annotations

from pathlib import Path

from gpuwatch.tui.snapshot import SoFar


def so_far(folder: Path) -> tuple[SoFar, ...]:
    """Every contrast of ``summary.json`` in ``folder``; empty where there is none to be read.

    The file may be anybody's: at most 32 MiB, values of a wrong type are left out.
    """
    raise NotImplementedError
