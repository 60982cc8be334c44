"""The live screen's first picture; the feed goes on with what was read for it."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.tui.display_options import DisplayOptions
from gpuwatch.tui.feed.collector import Collector
from gpuwatch.tui.feed.snapshot import Snapshot
from gpuwatch.tui.feed.view import View
from gpuwatch.tui.live.gauge_rows import graph_columns
from gpuwatch.tui.live.keys import live_keys
from gpuwatch.tui.live.page import drawn
from gpuwatch.tui.live.rows import ZOOMS, Options
from gpuwatch.tui.terminal import first_picture
from gpuwatch.tui.widgets.keys import keys_row


@dataclass(frozen=True)
class Begun:
    """What the picture was made from, and what was read for it."""

    collector: Collector
    snapshot: Snapshot
    options: Options
    view: View


def begin(path: Path, look: DisplayOptions) -> Begun | None:
    """Draw the session on the terminal.

    ``None``: it cannot be drawn or read now; the screen waits for it, or says why.
    """
    size = first_picture.size()
    if size is None:
        return None
    width, height = size
    try:
        reader = SessionReader(path)
    except first_picture.UNREADABLE:
        return None
    try:
        begun = _read(Collector(reader, time.time_ns), width)
        lines = drawn(begun.snapshot, begun.options, width, height - 1).lines
        keys = live_keys(begun.snapshot, begun.options, begun.view)
        first_picture.draw([*lines, keys_row(keys, width)], look)
    except first_picture.UNREADABLE:
        with closing(reader):
            return None
    return begun


def _read(collector: Collector, width: int) -> Begun:
    collector.update()
    view = View(columns=graph_columns(width))
    options = Options()
    snapshot = collector.snapshot(view)
    if not snapshot.goes_on:
        options = replace(options, zoom=len(ZOOMS) - 1)
        view = replace(view, seconds=ZOOMS[options.zoom][0])
        snapshot = collector.snapshot(view)
    return Begun(collector, snapshot, options, view)
