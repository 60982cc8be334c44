"""Very many steps are read together, those of ten seconds at once, with the same figures."""

from __future__ import annotations

import json
from array import array
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.analysis.samples import source
from gpuwatch.analysis.samples.steady_state import series_of
from gpuwatch.analysis.study.read import read
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.rows import StepBucket, with_phases
from gpuwatch.session.writing.store import SessionStore
from tests.tui.sessions import NS, Script, finished, write

SECONDS = 300.0


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five minutes at 10 Hz."""
    script = Script(
        seconds=SECONDS,
        interval=0.1,
        bandwidth_measured=True,
        alive=False,
        meta=finished(seconds=SECONDS),
    )
    return write(tmp_path_factory.mktemp("long") / "01-bare.gpuwatch", script)


@pytest.mark.parametrize("limit", ["MOST_LINES", "MOST_RATES"])
def test_figures_are_those_of_every_line_but_for_what_is_told(
    path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    short = read(path)
    monkeypatch.setattr(source, limit, 100)
    long = read(path)
    sums = ("samples_per_second", "mean_seconds", "phases")
    rest: dict[str, Any] = dict.fromkeys(sums)
    steps, exact = long.summary.steps, short.summary.steps
    assert replace(steps, **rest) == replace(exact, **rest)
    for name in sums:
        assert getattr(steps, name) == pytest.approx(getattr(exact, name), rel=1e-9)
    assert long.summary.window == short.summary.window
    assert long.steady == short.steady
    for name, statistic in short.summary.metrics.items():
        if statistic.mean is not None:
            assert long.summary.metrics[name].mean == pytest.approx(statistic.mean, rel=1e-6), name
    told = "long: step rates are averages over 10 s; their mean is exact"
    assert {*long.summary.notes} - {*short.summary.notes} == {told}


def add(path: Path, *lines: dict[str, Any]) -> None:
    """Append step lines, one a second."""
    with SessionReader(path) as reader:
        (last,) = reader.steps(reader.last_step() - 1)
    store = SessionStore.reopen(path)
    for at, line in enumerate(lines, 1):
        seconds = line.get("seconds")
        values = {
            "n": last.n + at,
            "t": last.t + at * NS,
            "step": last.step + sum(each.get("count", 1) for each in lines[:at]),
            "count": 1,
            "warmup": 0,
            **line,
            "seconds": None if seconds is None else array("d", seconds).tobytes(),
        }
        names = ", ".join(values)
        marks = ", ".join("?" * len(values))
        store.write([(f"INSERT INTO step ({names}) VALUES ({marks})", tuple(values.values()))])
    store.close()


def test_partial_batches_and_what_is_told_of_phases_are_kept_apart(tmp_path: Path) -> None:
    path = write(tmp_path / "01-bare.gpuwatch", Script(seconds=8.0, alive=False))
    with SessionReader(path) as reader:
        before = reader.some_steps()
    number = before[-1].step
    told = json.dumps({"forward": 0.5, "evaluation": 2.0, "sampled steps": 1})
    add(
        path,
        {"count": 2, "seconds": [9.0, 0.5], "partial": json.dumps([number + 2]), "samples": 65},
        {"count": 2, "seconds": [8.0, 7.0], "phases": told},
    )
    with SessionReader(path) as reader:
        lines, together = reader.some_steps(), reader.steps_together()
    assert all(isinstance(row, StepBucket) for row in together) and len(together) < 5
    assert sum(row.count for row in together) == sum(row.count for row in lines)
    assert sum(row.partial for row in together if isinstance(row, StepBucket)) == 1
    assert sum(row.evaluation for row in together) == 2.0
    assert with_phases(together) == with_phases(lines) == sum(row.count for row in before) + 3
    assert (together[-1].samples, together[-1].step) == (None, number + 4)
    (times, _), (single, _) = map(series_of, (together, lines))
    assert times.tolist() == single.tolist()
    assert times.tolist()[-3:] == [9.0, 8.0, 7.0]


def test_a_line_without_sound_times_stays_a_line(tmp_path: Path) -> None:
    path = write(tmp_path / "01-bare.gpuwatch", Script(seconds=8.0, alive=False))
    add(path, *[{"seconds": [0.1]}] * 20, {"seconds": [-1.0]}, *[{}] * 2)
    with SessionReader(path) as reader:
        lines, together = reader.some_steps(), reader.steps_together()
    assert isinstance(together[-1], type(lines[-1])) and together[-1] == lines[-1]
    assert sum(row.count for row in together) == sum(row.count for row in lines)
    assert any(isinstance(row, StepBucket) for row in together)


def test_lines_of_warm_up_between_others_stay_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "01-bare.gpuwatch", Script(seconds=8.0, alive=False))
    add(path, *[{"seconds": [0.1], "warmup": at % 2} for at in range(40)])
    with SessionReader(path) as reader:
        assert reader.steps_together() == reader.some_steps()
