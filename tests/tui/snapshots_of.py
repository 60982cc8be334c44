"""A snapshot of a session file, and the text of rows, without an app."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gpuwatch.session.reader import SessionReader
from gpuwatch.tui.asked import View
from gpuwatch.tui.collect import Collector
from gpuwatch.tui.line import Line
from gpuwatch.tui.snapshot import Snapshot


def snapshot_of(path: Path, view: View | None = None) -> Snapshot:
    """What the feed would post of ``path`` now."""
    with SessionReader(path) as reader:
        collector = Collector(reader)
        collector.update()
        while collector.backfill():
            pass
        return collector.snapshot(view or View())


def texts(lines: Sequence[Line]) -> list[str]:
    """What the rows say, without styles."""
    return ["".join(text for text, _ in line.spans()) for line in lines]
