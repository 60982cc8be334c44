"""A snapshot of a session file, and the text of rows, without an app."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.tui.feed.collector import Collector
from gpuwatch.tui.feed.snapshot import Snapshot
from gpuwatch.tui.feed.view import View
from gpuwatch.tui.widgets.line import Line


def snapshot_of(path: Path, view: View | None = None) -> Snapshot:
    """The snapshot that a feed of ``path`` would post."""
    with SessionReader(path) as reader:
        collector = Collector(reader)
        collector.update()
        while collector.backfill():
            pass
        return collector.snapshot(view or View())


def texts(lines: Sequence[Line]) -> list[str]:
    """The text of the rows, without styles."""
    return ["".join(text for text, _ in line.spans()) for line in lines]
