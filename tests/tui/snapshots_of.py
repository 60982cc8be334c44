"""A snapshot of a session file, and what screens draw of it, without an app."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.tui.feed.collector import Collector, PastView
from gpuwatch.tui.feed.snapshot import TIMED, Snapshot, View
from gpuwatch.tui.live.page import page_of
from gpuwatch.tui.live.pages import kernel_rows
from gpuwatch.tui.live.roofline_rows import roofline_rows
from gpuwatch.tui.live.rows import Options
from gpuwatch.tui.widgets.gauge_rows import graph_columns
from gpuwatch.tui.widgets.line import Line
from gpuwatch.tui.widgets.page import Row, number_lines

from .sessions import NS, START_UNIX_NS


def snapshot_of(path: Path, view: View | None = None, seconds: float | None = None) -> Snapshot:
    """The snapshot that a feed of ``path`` would post, ``seconds`` after the session's start."""
    with SessionReader(path) as reader:
        if seconds is None:
            collector = Collector(reader)
        else:
            now = START_UNIX_NS + int(seconds * NS)
            collector = Collector(reader, lambda: now)
        collector.update()
        while collector.backfill():
            pass
        view = view or View()
        viewed = PastView(collector).at(view.at, view.seconds)
        snapshot = viewed.snapshot(view)
        while collector.backfill():  # an earlier run is looked for once it was asked for
            snapshot = viewed.snapshot(view)
        return snapshot


def texts(lines: Sequence[Line]) -> list[str]:
    """The text of the rows, without styles."""
    return ["".join(text for text, _ in line.spans()) for line in lines]


def page_text(path: Path, size: tuple[int, int] = (80, 24), seconds: float = 90.0) -> str:
    """The live screen of ``path`` without its footer; of a run that is over with all of it."""
    width, height = size
    snapshot = _first(path, width, seconds)
    return _joined(texts(page_of(snapshot, Options(), width, height - 1).lines))


def _first(path: Path, width: int, seconds: float = 90.0) -> Snapshot:
    """What the live screen shows at first: a minute, or the timed steps of a run that is over."""
    view = View(columns=graph_columns(width))
    snapshot = snapshot_of(path, view, seconds)
    if snapshot.goes_on:
        return snapshot
    whole = replace(view, seconds=TIMED if snapshot.timed else None)
    return snapshot_of(path, whole, seconds)


def numbers_text(path: Path, width: int = 80) -> str:
    """The page of all numbers, whole."""
    return _page(number_lines(_first(path, width), width), width)


def kernels_text(path: Path, width: int = 80) -> str:
    """The page of kernels, whole."""
    return _page(kernel_rows(_first(path, width), width), width)


def roofline_text(path: Path, size: tuple[int, int] = (80, 24)) -> str:
    """The roofline without the footer."""
    width, height = size
    view = View(roofline=True, columns=graph_columns(width))
    snapshot = snapshot_of(path, view, 90.0)
    return _joined(texts(roofline_rows(snapshot, Options(), width, height - 1)))


def _page(rows: Sequence[Row], width: int) -> str:
    lines = [Line(width) for _ in rows]
    for line, row in zip(lines, rows, strict=True):
        for text, role in row:
            line.add(text, role)
    return _joined(texts(lines))


def _joined(rows: Sequence[str]) -> str:
    return "\n".join(row.rstrip() for row in rows) + "\n"
