"""The earlier run of the same command, beside the steps of this one."""

from __future__ import annotations

import math
import os
import sqlite3
from array import array
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.rows import StepRow
from gpuwatch.tui.feed.collector import Collector
from gpuwatch.tui.feed.gauges import STEP_TIME, Earlier
from gpuwatch.tui.feed.samples import Window
from gpuwatch.tui.feed.snapshot import Search, View
from gpuwatch.tui.live.rows import workload_rows
from gpuwatch.tui.widgets.gauge_rows import GHOST, gauge_rows

from ..harness import live, screen_text, shows, until
from ..sessions import NS, Script, finished, write
from ..snapshots_of import snapshot_of, texts

BEFORE = Script(meta=finished(), alive=False, start=-3600.0)
NOW = {"seconds": 30.0, "pace": 1.1}


def written(tmp_path: Path, **others: Script) -> Path:
    """The session of now, beside studies of ``others``."""
    for name, script in others.items():
        write(tmp_path / "studies" / name / "01-bare.gpuwatch", script)
    return write(tmp_path / "studies" / "now" / "01-bare.gpuwatch", Script(**NOW))  # type: ignore[arg-type]


async def test_b_compares_the_same_steps_and_draws_the_earlier_run(tmp_path: Path) -> None:
    path = written(tmp_path, before=BEFORE)
    async with live(path, (160, 50), seconds=30.0) as (app, pilot):
        assert GHOST not in screen_text(app)
        await pilot.press("b", shows="Step time")
        await shows(pilot, " • same steps, median: ")
        await shows(pilot, " last finished run 5.38 ms: no verdict; it began 09 Oct 07:53, one run")
        assert screen_text(app).count(GHOST) > 10
        for key in ("b", "escape"):
            await pilot.press(key)
            await until(
                pilot,
                lambda: GHOST not in screen_text(app) and "same steps" not in screen_text(app),
            )
            await pilot.press("b", shows="same steps")
    snapshot = snapshot_of(path, View(earlier=True, metric=STEP_TIME), 30.0)
    assert len(snapshot.earlier.partition(";")[0]) <= 76, "it fits on 80 columns"
    assert snapshot.picked is not None
    pairs = [
        (now, then)
        for now, then in zip(snapshot.picked.history, snapshot.picked.ghost, strict=True)
        if now is not None and then is not None
    ]
    assert pairs and all(1.0 < now / then < 1.2 for now, then in pairs)


def test_the_earlier_run_hides_no_bar_and_one_stall_of_it_no_other_value(tmp_path: Path) -> None:
    path = written(tmp_path, before=BEFORE)
    gauge = snapshot_of(path, View(earlier=True, metric=STEP_TIME), 30.0).picked
    assert gauge is not None
    gauge = replace(gauge, history=(0.006,) * 40, ghost=(0.0055,) * 20 + (0.009,) * 20)
    for height in (1, 2, 6):
        graph = "\n".join(row[34:74] for row in texts(gauge_rows(gauge, height, 80)))
        assert graph.count(GHOST) >= 5 and sum(graph.count(each) for each in "▁▂▃▄▅▆▇█") >= 25
    store = tmp_path / "studies/before/01-bare.gpuwatch"
    with closing(sqlite3.connect(store)) as file, file:
        stall = array("d", [30.0]).tobytes()
        file.execute("UPDATE step SET seconds = ? WHERE n = 100", (stall,))
    stalled = snapshot_of(path, View(earlier=True, metric=STEP_TIME), 30.0)
    assert stalled.picked is not None and max(filter(None, stalled.picked.ghost)) == 30.0
    assert stalled.picked.floor > 0, "a logarithmic scale"
    assert " run 5.38 ms: " in stalled.earlier


@pytest.mark.parametrize("seconds", [math.nan, math.inf])
def test_times_that_are_not_finite_are_none(tmp_path: Path, seconds: float) -> None:
    path = written(tmp_path, before=BEFORE)
    with closing(sqlite3.connect(tmp_path / "studies/before/01-bare.gpuwatch")) as file, file:
        file.execute(
            "UPDATE step SET seconds = ? WHERE n = 100", (array("d", [seconds]).tobytes(),)
        )
    gauge = snapshot_of(path, View(earlier=True, metric=STEP_TIME), 30.0).picked
    assert gauge is not None and all(math.isfinite(each) for each in filter(None, gauge.ghost))
    assert any(gauge.ghost)


def test_over_steps_before_its_first_timed_one_the_earlier_run_has_no_time() -> None:
    def line(step: int, *seconds: float) -> StepRow:
        rest = (None, None, None, {}, (), None, None)
        return StepRow(step, step * NS, step, len(seconds), False, None, seconds, *rest)

    ghost = Earlier("", [line(8, 9.0, 9.0, 9.0)]).beside(
        [line(n, 1.0) for n in range(1, 9)], Window(0, 8 * NS, 8)
    )
    assert ghost == (None,) * 5 + (9.0,) * 3


@pytest.mark.parametrize(
    "script",
    [
        Script(start=-3600.0),
        Script(meta=finished(1), alive=False, start=-3600.0),
        Script(meta=finished(), alive=False, start=+3600.0),
        Script(meta=finished(), alive=False, start=-3600.0, name="other"),
        Script(meta=finished(), alive=False, start=-3600.0, environment="docker"),
    ],
    ids=["goes on", "failed", "later", "another workload", "another environment"],
)
def test_what_is_no_earlier_run_of_the_same_is_not_taken(tmp_path: Path, script: Script) -> None:
    snapshot = snapshot_of(written(tmp_path, other=script), View(earlier=True), 30.0)
    assert snapshot.earlier is Search.IN_VAIN


def test_a_run_is_not_the_one_before_itself(tmp_path: Path) -> None:
    """Whatever the last digits of its start are rounded to."""
    path = write(tmp_path / "studies" / "now" / "01-bare.gpuwatch", replace(BEFORE, start=6e-7))
    assert snapshot_of(path, View(earlier=True), 30.0).earlier is Search.IN_VAIN


async def test_that_there_is_none_is_said_for_a_while(tmp_path: Path) -> None:
    async with live(written(tmp_path), seconds=30.0) as (app, pilot):
        said = " » no finished run of this command in this environment before it\n"
        for _ in range(2):
            await pilot.press("b", shows=said, hides="Step time")
            await until(pilot, lambda: said not in screen_text(app))


def test_it_is_found_below_any_number_of_newer_files(tmp_path: Path) -> None:
    path = written(tmp_path, before=BEFORE)
    for each in (tmp_path / "studies").glob("*/*"):
        os.utime(each, (0, 0))
    for at in range(100):
        (path.parent / f"{at}.gpuwatch").touch()
    assert "09 Oct 07:53" in snapshot_of(path, View(earlier=True), 30.0).earlier


def test_files_are_opened_one_by_one_so_that_the_screen_can_be_left_meanwhile(
    tmp_path: Path,
) -> None:
    view = View(earlier=True)
    with SessionReader(written(tmp_path, before=BEFORE)) as reader:
        collector = Collector(reader)
        collector.update()
        for _ in range(3):  # two files, and the steps of the run
            looking = collector.snapshot(view)
            assert looking.earlier is Search.GOES_ON and collector.backfill()
            said = " • looking for an earlier run …"
            assert said in map(str.rstrip, texts(workload_rows(looking, 80, 0)))
        assert "09 Oct 07:53" in collector.snapshot(view).earlier


def test_one_without_steps_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, before=replace(BEFORE, steps=False))
    compared = snapshot_of(path, View(earlier=True), 30.0).earlier
    assert compared == "the run of 09 Oct 07:53 has no times of these steps"


def test_of_two_the_newer_is_taken(tmp_path: Path) -> None:
    newer = Script(meta=finished(), alive=False, start=-60.0)
    path = written(tmp_path, before=BEFORE, newer=newer)
    assert "09 Oct 08:52" in snapshot_of(path, View(earlier=True), 30.0).earlier
