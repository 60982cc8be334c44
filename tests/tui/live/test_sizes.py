"""The live screen at every size: number of rows, width, and complete texts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gpuwatch.tui.feed.snapshot import Snapshot, View
from gpuwatch.tui.live.page import page_of
from gpuwatch.tui.live.rows import Options

from ..process_sessions import LOADERS, RUN, STRANGER, add
from ..sessions import finished
from ..snapshots_of import snapshot_of, texts
from .test_study_rows import summary, under_way, verdict

Make = Callable[..., Path]
USUAL = {"data": 0.12, "copy": 0.05, "forward": 0.31, "backward": 0.40, "optimizer": 0.10}
EVENTS = [(40.0, "throttle", "clocks are held down: power cap " * 9)]


def everything(session: Make, tmp_path: Path, view: View) -> Snapshot:
    """A snapshot with all parts of the screen."""
    path = under_way(
        session, tmp_path / "study", gpus=8, pipes=True, throttled=True, phases=USUAL,
        events=EVENTS, log=[("stderr", "x" * 500)] * 50,
    )  # fmt: skip
    add(path, RUN, *LOADERS, STRANGER)
    summary(tmp_path / "study", verdict(), verdict("same"))
    return snapshot_of(path, view)


@pytest.mark.parametrize("kind", ["one", "picked", "grid", "machine", "over", "empty"])
def test_every_size_has_its_rows_and_none_is_wider(
    session: Make, tmp_path: Path, kind: str
) -> None:
    if kind in ("one", "picked", "grid"):
        metric = "hw.gpu.power" if kind == "picked" else None
        snapshot = everything(
            session, tmp_path, View(columns=26, metric=metric, grid=kind == "grid")
        )
    elif kind == "machine":
        snapshot = snapshot_of(session(kind="machine", gpus=2))
    elif kind == "over":
        snapshot = snapshot_of(session(meta=finished(1), alive=False))
    else:
        snapshot = snapshot_of(session(seconds=0, steps=False, gpus=0))
    for height in (15, 19, 20, 22, 23, 29, 30, 39, 49, 59):
        for width in (60, 71, 80, 99, 120, 149, 160, 200):
            page = page_of(snapshot, Options(), width, height)
            assert len(page.lines) == height, (width, height)
            assert all(line.used <= width for line in page.lines), (width, height)


@pytest.mark.parametrize("size", [(80, 23), (120, 39), (160, 49), (200, 59)])
def test_the_gauges_dominate_whatever_else_there_is(
    session: Make, tmp_path: Path, size: tuple[int, int]
) -> None:
    snapshot = everything(session, tmp_path, View(columns=26))
    rows = texts(page_of(snapshot, Options(), *size).lines)
    graph = [row for row in rows if any(mark in row for mark in "│┤╪")]
    assert len(graph) >= (6 if size[1] < 30 else size[1] / 3.5)
    for text in ("forward 31 %", "▲ docker", "[▶]", "◆ at ", "! GPU 0", "step 16,820/40,000"):
        assert any(text in row for row in rows), text
