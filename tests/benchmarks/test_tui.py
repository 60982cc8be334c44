"""What the benchmark of the screens needs."""

from __future__ import annotations

from pathlib import Path

from benchmarks.tui.driver import build


def test_the_driver_that_nvtop_can_read_too_is_made_of_the_stand_in(tmp_path: Path) -> None:
    assert (build(tmp_path) / "libnvidia-ml.so.1").stat().st_size > 10_000
