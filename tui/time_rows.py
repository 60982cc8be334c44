"""The row that says which moment of a session is looked at: a pure function of the snapshot."""

from __future__ import annotations

from gpuwatch.tui.line import Line
from gpuwatch.tui.snapshot import Snapshot


def position_row(snapshot: Snapshot, width: int) -> Line:
    """The whole session as a bar with its events, the position, the length and the speed.

    For a snapshot with ``replay``.
    """
    raise NotImplementedError


def ago(snapshot: Snapshot) -> str:
    """For the title: ``2:10 ago`` of a run that goes on, ``replay`` of one that is over.

    Empty for a snapshot of now.
    """
    raise NotImplementedError
