"""Long sessions from their tier: the steps are the same, what samples say is close and told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from gpuwatch.analysis import coarse
from gpuwatch.analysis.coarse import NOTE, CoarseReader, read_fast
from gpuwatch.analysis.read import Read, read
from gpuwatch.session.rows import StepRow
from tests.tui.sessions import Script, finished, write

SECONDS = 300.0


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five minutes at 10 Hz, with all of its tier."""
    script = Script(seconds=SECONDS, interval=0.1, alive=False, meta=finished(seconds=SECONDS))
    return write(tmp_path_factory.mktemp("long") / "01-bare.gpuwatch", script)


@pytest.fixture(scope="module")
def both(path: Path) -> tuple[Read, Read]:
    """The session as it is, and from its tier."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coarse, "MOST_TICKS", 1000)
        return read(path), read_fast(path)


def test_step_times_are_those_of_every_step(both: tuple[Read, Read]) -> None:
    exact, fast = both
    assert fast.steady == exact.steady and exact.steady.count
    steps, exact_steps = fast.summary.steps, exact.summary.steps
    sums = ("samples_per_second", "mean_seconds")
    assert replace(steps, **dict.fromkeys(sums)) == replace(exact_steps, **dict.fromkeys(sums))
    for name in sums:
        assert getattr(steps, name) == pytest.approx(getattr(exact_steps, name), rel=1e-9)


@pytest.mark.parametrize(
    "metric", ["hw.gpu.power", "hw.gpu.utilization", "gpuwatch.flop.rate", "process.cpu.time"]
)
def test_means_are_close_and_the_highest_sample_is_kept(
    both: tuple[Read, Read], metric: str
) -> None:
    exact, fast = (each.summary.metrics[metric] for each in both)
    assert fast.mean == pytest.approx(exact.mean, rel=0.01)
    assert fast.max == pytest.approx(exact.max, rel=0.01 if "rate" in metric else 1e-3)
    assert fast.method is exact.method and fast.unit == exact.unit


def test_it_is_said_and_a_short_session_is_read_as_it_is(
    both: tuple[Read, Read], path: Path
) -> None:
    assert both[1].summary.notes == (*both[0].summary.notes, NOTE)
    assert read_fast(path).summary.notes == both[0].summary.notes


def test_lines_of_ten_seconds_are_one_with_every_steps_time(path: Path) -> None:
    with CoarseReader(path) as reader:
        folded = list(reader.all_steps())
        assert [row.warmup for row in folded[:3]] == [True, False, False]
        assert len(folded) <= SECONDS / 10 + 2
        lines = reader.steps(limit=10_000)
    assert sum(row.count for row in folded) == sum(row.count for row in lines)
    assert _times(folded) == _times(lines)
    assert folded[-1].step == lines[-1].step and folded[-1].t == lines[-1].t


def _times(rows: Sequence[StepRow]) -> list[float]:
    return [seconds for row in rows for seconds in row.seconds or ()]
