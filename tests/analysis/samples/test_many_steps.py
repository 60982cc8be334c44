"""Very many steps from their tier: what is exact is the same, and what is not is told."""

from __future__ import annotations

import math
import random
from array import array
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpuwatch.analysis.samples import source
from gpuwatch.analysis.samples.source import Source
from gpuwatch.analysis.samples.steady_state import steady_series
from gpuwatch.analysis.samples.step_series import Single, StepBuckets, series_of
from gpuwatch.analysis.study.read import Read, read, read_exactly
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.rows import StepBucket, StepRow
from gpuwatch.session.writing.step_tier import MOST_SINGLE, RESOLUTION, StepTier
from gpuwatch.session.writing.store import SessionStore
from tests.tui.sessions import Script, finished, write

SECONDS = 300.0


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five minutes at 10 Hz, with the tier of its steps."""
    script = Script(
        seconds=SECONDS,
        interval=0.1,
        bandwidth_measured=True,
        alive=False,
        meta=finished(seconds=SECONDS),
    )
    return write(tmp_path_factory.mktemp("long") / "01-bare.gpuwatch", script)


@pytest.fixture(scope="module")
def both(path: Path) -> tuple[Read, Read]:
    """The session as it is, and its steps from their tier."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "MOST_RATES", 1000)
        patch.setattr(source, "MOST_LINES", 100)
        patch.setattr(source, "_PARTS", 10)
        return read_exactly(path), read(path)


def test_steps_are_those_of_every_line_but_for_what_is_told(both: tuple[Read, Read]) -> None:
    exact, fast = both
    steps, exact_steps = fast.summary.steps, exact.summary.steps
    close = ("median_seconds", "p95_seconds")
    sums = ("samples_per_second", "mean_seconds", "phases")
    rest: dict[str, Any] = dict.fromkeys((*close, *sums))
    assert replace(steps, **rest) == replace(exact_steps, **rest)
    for name in close:
        assert getattr(steps, name) == pytest.approx(getattr(exact_steps, name), rel=RESOLUTION)
    for name in sums:
        assert getattr(steps, name) == pytest.approx(getattr(exact_steps, name), rel=1e-9)
    assert fast.summary.window == exact.summary.window
    assert any("accurate to 0.049 %" in note for note in fast.summary.notes)


def test_it_is_said_and_a_short_session_is_read_as_it_is(
    both: tuple[Read, Read], path: Path
) -> None:
    exact, fast = (each.summary.notes for each in both)
    assert not any("long:" in note for note in exact)
    assert fast[: len(exact)] == exact and fast[-1].startswith("`--exact`")
    assert read(path).summary.notes == exact


def test_lines_in_no_row_of_the_tier_are_read_one_by_one(path: Path, tmp_path: Path) -> None:
    """As after a recorder that died."""
    copy = tmp_path / "01-bare.gpuwatch"
    copy.write_bytes(path.read_bytes())
    store = SessionStore.reopen(copy)
    store.write([("DELETE FROM step_tier WHERE n BETWEEN 300 AND 900 OR n > 2000", ())])
    store.close()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "MOST_LINES", 100)
        patch.setattr(source, "_PARTS", 10)
        with SessionReader(path) as whole, SessionReader(copy) as holed:
            lines = [Source(each).steps() for each in (whole, holed)]
            every = list(whole.all_steps())
    assert [sum(row.count for row in of) for of in lines] == [sum(r.count for r in every)] * 2
    times = [series_of(of)[0].quantiles(0, 0.5, 1) for of in (*lines, every)]
    for of in times[:2]:
        assert of == pytest.approx(times[2], rel=RESOLUTION)
        assert (of[0], of[2]) == (times[2][0], times[2][2])


@pytest.mark.parametrize("rows", range(1, 11))
def test_a_run_in_few_rows_of_the_tier_is_read_by_its_steps(tmp_path: Path, rows: int) -> None:
    seconds = 10.0 * rows
    script = Script(seconds=seconds, alive=False, meta=finished(seconds=seconds))
    path = write(tmp_path / "01-bare.gpuwatch", script)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "MOST_LINES", 10)
        fast, exact = read(path), read_exactly(path)
    if exact.steady.total is not None:
        assert fast.steady.total == pytest.approx(exact.steady.total, rel=0.01)
    assert replace(fast.steady, total=exact.steady.total) == exact.steady
    assert fast.summary.steps.median_seconds == exact.summary.steps.median_seconds
    assert fast.summary.notes == exact.summary.notes


def test_a_row_of_most_steps_among_many_is_read_by_its_steps(tmp_path: Path) -> None:
    path = write(tmp_path / "01-bare.gpuwatch", Script(seconds=20.0, alive=False))
    with SessionReader(path) as reader:
        *_, last = reader.all_steps()
    copied = (
        "INSERT INTO step SELECT ?, ?, ?, 1, 0, samples, ?, loss, NULL, NULL, NULL, NULL, NULL, "
        "NULL FROM step WHERE n = 5"
    )
    tier, rows = StepTier(), []
    for each in range(1, 601):
        row = replace(
            _line(last.n + each, [9.0]), t=(30 + 10 * each) * 10**9, step=last.step + each
        )
        rows += tier.add(row)
        rows.append((copied, (row.n, row.t, row.step, array("d", [9.0]).tobytes())))
    store = SessionStore.reopen(path)
    store.write([*rows, *tier.flush()])
    store.close()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "MOST_LINES", 10)
        assert read(path).steady == read_exactly(path).steady


def _line(n: int, seconds: list[float], partial: tuple[int, ...] = ()) -> StepRow:
    return StepRow(
        n=n, t=n * 10**9, step=n * len(seconds), count=len(seconds), warmup=False, samples=1.0,
        seconds=tuple(seconds), loss=None, acc1=None, acc5=None, phases={}, partial=partial,
        flop=None, bytes=None,
    )  # fmt: skip


def _together(parts: list[tuple[np.ndarray, np.ndarray]]) -> StepBuckets:
    values, weights = (np.concatenate(each) for each in zip(*parts, strict=True))
    return StepBuckets(values, weights, [times.size for times, _ in parts])


@pytest.mark.parametrize("shape", ["two speeds", "noise", "drift"])
def test_quantiles_of_many_times_are_within_the_resolution(shape: str) -> None:
    noise = random.Random(shape)
    times = [
        [
            {"two speeds": 0.01 * noise.choice((1, 1.7)), "noise": 0.01, "drift": 0.01 + n / 1e5}[
                shape
            ]
            * math.exp(noise.gauss(0, 0.02))
            for _ in range(100)
        ]
        for n in range(1, 300)
    ]
    tier, rows = StepTier(), []
    for n, seconds in enumerate(times, 1):
        rows += tier.add(_line(n, seconds, partial=(n * 100,)))
    rows += tier.flush()
    parts = []
    for _, (*_, values, weights, _, _, _, _) in rows:
        assert isinstance(values, bytes) and isinstance(weights, bytes)
        parts.append((np.array(array("d", values)), np.array(array("I", weights), dtype=float)))
    assert (
        max(len(values) for values, _ in parts) < 1000
        and min(weights.sum() for _, weights in parts) > MOST_SINGLE
    )
    together, single = _together(parts), Single(np.array([s for of in times for s in of[:-1]]))
    assert together.size == single.size
    assert together.mean() == pytest.approx(single.mean(), rel=1e-12)
    for share in (0.0, 0.05, 0.5, 0.95, 1.0):
        assert together.quantiles(share) == pytest.approx(
            single.quantiles(share), rel=2 * RESOLUTION if shape == "two speeds" else RESOLUTION
        )


@pytest.mark.parametrize("change", [0.0, 0.05])
def test_the_steady_part_is_the_same_from_the_tier(change: float) -> None:
    noise, tier, rows, single = random.Random(1), StepTier(), [], []
    for n in range(1, 6_001):
        level = 0.01 * (1 + change * (n > 2_500))
        seconds = [level * math.exp(noise.gauss(0, 0.02)) for _ in range(40)]
        single += seconds
        rows += tier.add(_line(n, seconds))
    rows += tier.flush()
    parts = []
    for _, (*_, values, weights, _, _, _, _) in rows:
        assert isinstance(values, bytes)
        of = array("I", weights) if isinstance(weights, bytes) else [1] * (len(values) // 8)
        parts.append((np.array(array("d", values)), np.array(of, dtype=float)))
    exact, fast = (steady_series(of) for of in (Single(np.array(single)), _together(parts)))
    assert exact.seconds is not None
    assert fast.seconds == pytest.approx(exact.seconds, rel=2 * RESOLUTION)
    assert fast.first == pytest.approx(exact.first, abs=2 * 400)
    assert len(fast.changes) == len(exact.changes) == bool(change)


def test_a_bucket_with_a_time_that_no_step_can_take_is_read_from_its_lines() -> None:
    tier = StepTier()
    tier.add(_line(1, [0.1, math.nan]))
    ((_, row),) = tier.flush()
    assert row[9] is None and row[10] is None


def test_few_times_are_kept_one_by_one_in_their_order() -> None:
    tier = StepTier()
    tier.add(_line(1, [0.3, 0.1]))
    ((_, row),) = tier.flush()
    assert row[9] == array("d", [0.3, 0.1]).tobytes() and row[10] is None


def test_the_tier_that_a_recorder_writes_is_read_as_buckets(path: Path) -> None:
    with SessionReader(path) as reader:
        rows = reader.step_tier()
        lines = reader.last_step()
    assert rows and all(isinstance(row, StepBucket) for row in rows)
    assert sum(row.lines for row in rows) == lines == rows[-1].n
