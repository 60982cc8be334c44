"""The numbers of a finished run, and of one that hangs."""

from __future__ import annotations

import os
import sqlite3
from array import array
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from gpuwatch.analysis.summary.listed_item import Item
from gpuwatch.analysis.summary.listing import listing
from gpuwatch.analysis.summary.summary import summarise
from gpuwatch.core.metrics import Method
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.study.study_folder import GAVE_UP, RECORDER_LOG
from gpuwatch.tui.feed.collector import Collector
from gpuwatch.tui.feed.gauges import STEP_TIME
from gpuwatch.tui.feed.snapshot import TIMED, View
from gpuwatch.tui.home.table import COLUMNS
from gpuwatch.tui.live.page import page_of
from gpuwatch.tui.live.rows import Options
from gpuwatch.tui.plain.plain import end_lines, status_line
from gpuwatch.tui.widgets.gauge_rows import badge, gauge_rows
from gpuwatch.tui.widgets.head_rows import position_row, title_row
from gpuwatch.tui.widgets.page import number_lines

from ..harness import live, screen_text, shows
from ..sessions import GIB, NS, end, finished
from ..snapshots_of import numbers_text, page_text, snapshot_of, texts

Make = Callable[..., Path]


@pytest.mark.parametrize("seconds", [90.0, 900.0], ids=["short", "longer than step lines are kept"])
def test_over_the_whole_run_gauges_give_what_show_gives(session: Make, seconds: float) -> None:
    path = session(
        meta=finished(seconds=seconds),
        alive=False,
        bandwidth_measured=True,
        seconds=seconds,
        total_steps=10**9,
    )
    with SessionReader(path) as reader:
        metrics = summarise(reader).metrics
    snapshot = snapshot_of(path, View(seconds=None))
    names = ("hw.gpu.utilization", "hw.gpu.memory.bandwidth", "gpuwatch.flop.rate")
    for gauge, name in zip(snapshot.gauges, names, strict=True):
        assert gauge.period == "timed steps"
        assert gauge.reading.value == pytest.approx(metrics[name].mean, rel=0.01), name
    power = snapshot_of(path, View(seconds=None, metric="hw.gpu.power")).picked
    assert power is not None
    assert power.reading.value == pytest.approx(metrics["hw.gpu.power"].mean, rel=0.01)


def test_a_stall_before_the_lines_that_are_kept_is_as_high_as_it_was(session: Make) -> None:
    """In a line that is not the newest of its ten seconds."""
    path = session(seconds=800.0, total_steps=10**6)
    with closing(sqlite3.connect(path)) as file, file:
        ((n, size),) = file.execute("SELECT n, length(seconds) FROM step WHERE t > 50e9 LIMIT 1")
        stall = array("d", [4.0] * (size // 8)).tobytes()
        file.execute("UPDATE step SET seconds = ? WHERE n = ?", (stall, n))
    gauge = snapshot_of(path, View(metric=STEP_TIME, seconds=None, columns=60), 800.0).picked
    assert gauge is not None and max(filter(None, gauge.history)) == 4.0


def test_of_few_steps_it_is_of_their_time_all_the_same(session: Make) -> None:
    path = session(meta=finished(), alive=False, total_steps=120)
    with SessionReader(path) as reader:
        rate = summarise(reader).metrics["gpuwatch.flop.rate"].mean
    snapshot = snapshot_of(path, View(seconds=None))
    assert not snapshot.timed and snapshot.gauges[0].period == "whole run"
    assert snapshot.gauges[2].period == "timed steps"
    assert snapshot.gauges[2].reading.value == pytest.approx(rate, rel=0.01)


def test_the_mean_of_a_part_is_called_that(session: Make) -> None:
    path = session(meta=finished(), alive=False)
    gauge = snapshot_of(path, View(seconds=10)).gauges[2]
    assert badge(gauge, 32) == "counted, mean of the last 10 s"
    assert badge(gauge, 26) == "counted, last 10 s"
    whole = snapshot_of(path, View(seconds=None)).gauges[0]
    assert badge(whole, 32) == "measured, timed steps, mean"
    assert badge(whole, 26) == "measured, timed steps"
    of_steps = replace(whole, period="last 5 s of steps")
    assert badge(of_steps, 27) == "measured, last 5 s of steps"
    assert badge(of_steps, 26) == "measured, last 5 s"


def test_before_all_is_read_nothing_stands_in_place_of_the_means(session: Make) -> None:
    with SessionReader(session(meta=finished(), alive=False)) as reader:
        collector = Collector(reader)
        collector.update()
        first = collector.snapshot(View(seconds=None))
        while collector.backfill():
            pass
        second = collector.snapshot(View(seconds=None))
    for shown, known in ((first, False), (second, True)):
        gpu = shown.gpus[0]
        assert (gpu.value("hw.gpu.power") is not None, gpu.memory_used is not None) == (known,) * 2
        assert shown.gauges[0].reading.value is not None


def test_low_gauges_have_names_that_cannot_be_misread(session: Make) -> None:
    path = session(bandwidth_measured=True)
    gauges = [*snapshot_of(path, View()).gauges, snapshot_of(session("02"), View()).gauges[1]]
    names = ["utilization", "bandwidth", "FLOP/s", "bytes/s"]
    for height in (1, 2):
        rows = [texts(gauge_rows(gauge, height, 80))[0] for gauge in gauges]
        assert [row.split()[0] for row in rows] == names
        assert all("…" not in row[:26] for row in rows)


def test_the_work_of_a_part_is_the_mean_of_its_steps(session: Make) -> None:
    """What came after them is no rate of 0."""
    path = session(meta=finished(), alive=False, total_steps=8000, known_card=True)
    with SessionReader(path) as reader:
        (last,) = reader.steps(reader.last_step() - 1, 1)
    assert 35 * NS < last.t < 60 * NS
    whole, part = (
        snapshot_of(path, View(seconds=seconds, metric="samples/s")) for seconds in (None, 60)
    )
    assert part.work is not None and part.picked is not None and whole.picked is not None
    for one, other in ((whole.gauges[2], part.gauges[2]), (whole.picked, part.picked)):
        assert one.reading.value is not None
        assert other.reading.value == pytest.approx(one.reading.value, rel=0.1)
    (span,) = {gauge.period for gauge in (*part.gauges, part.picked) if gauge.mean}
    assert part.means == span == f"last {(last.t - part.window.start) / NS:.0f} s of steps"
    rows = texts(page_of(part, Options(), 80, 24).lines)
    assert any(row.startswith("── workload, timed steps ") for row in rows)
    assert not any("workload, timed" in row for row in page_text(path).splitlines())
    page = ["".join(text for text, _ in row) for row in number_lines(part, 120)]
    gauges = "\n".join(page[: page.index(" steps")])
    assert gauges.count(f"mean of the {span}") == 2 + len(part.gauges[2].mfus) > 2
    seconds = (part.window.end - last.t) / NS + 0.15  # too short for a mean of samples
    rate = snapshot_of(path, View(seconds=seconds)).gauges[2].reading.value
    assert rate == pytest.approx(whole.gauges[2].reading.value, rel=0.5)
    none = snapshot_of(path, View(seconds=10, metric="samples/s"))
    assert none.picked is not None and none.algorithmic.value is None
    for reading in (none.gauges[2].reading, none.picked.reading):
        assert (reading.value, reading.reason) == (None, "no step in the last 10 s")
    text = "".join(texts(page_of(none, Options(), 80, 24).lines))
    assert "no step in the last 10 s" in text


def test_a_part_with_all_timed_steps_has_the_means_of_these(session: Make) -> None:
    path = session(meta=finished(), alive=False, total_steps=8000)
    whole, part = (snapshot_of(path, View(seconds=seconds)) for seconds in (None, 89))
    assert whole.means == part.means == "timed steps" and part.window.start > 0
    for one, other in zip(whole.gauges, part.gauges, strict=True):
        assert one.reading == other.reading and one.period == other.period


def test_of_warm_up_steps_alone_a_part_has_the_means_of_these(session: Make) -> None:
    path = session(meta=finished(), alive=False, total_steps=8000)
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("UPDATE step SET warmup = 1")
    part = snapshot_of(path, View(seconds=60))
    assert not part.timed and part.means.endswith(" s of steps")
    assert snapshot_of(path, View(seconds=None)).means == "whole run"


def test_of_a_run_that_is_over_every_value_is_the_mean_that_show_gives(session: Make) -> None:
    path = session(meta=finished(), alive=False)
    text = page_text(path, (120, 40))
    assert text.count("means and history: timed steps") == 1
    many = page_text(session("02", gpus=4, meta=finished(), alive=False), (80, 24))
    assert "Tab for the next" in many and "means: timed steps" in many
    assert "80GB HBM3, mean of the timed steps, of memory the peak" in numbers_text(path, 120)
    with SessionReader(path) as reader:
        metrics = next(each.metrics for each in summarise(reader).devices if each.id == "gpu0")
    device = snapshot_of(path, View(seconds=TIMED)).device("gpu0")
    assert device is not None and device.value("hw.gpu.temperature") != 62
    for name in ("hw.gpu.power", "hw.gpu.temperature"):
        assert device.value(name) == pytest.approx(metrics[name].mean, rel=0.01), name
    assert "mean:" not in page_text(session("02-bare"), (120, 40))


def test_of_memory_it_is_the_most_of_the_same_time_and_says_so(session: Make) -> None:
    """Half of the mean would be of the start-up, in which 512 MiB are in use."""
    options = {"steps": False, "seconds": 8.0}
    path = session(meta=finished(seconds=8.0), alive=False, **options)
    for size in ((80, 24), (120, 40), (160, 50)):
        text = page_text(path, size)
        assert "peak memory 36.3/80.0 GiB" in text, size
        assert size[0] < 120 or "peak host memory 41.5/128 GiB" in text
        assert size[0] < 120 or "peak resident 2.40 GiB" in text
    snapshot = snapshot_of(path, View(seconds=None, metric="hw.gpu.memory.usage", grid=True))
    assert "peak memory 36.3 GiB of 80.0 GiB" in status_line(snapshot)
    assert snapshot.picked is not None and snapshot.picked.reading.value == int(36.3 * GIB)
    assert badge(snapshot.picked, 32) == "measured, whole run, peak"
    assert "peak 36.3/80.0 GiB" in "".join(texts(page_of(snapshot, Options(), 120, 40).lines))
    assert "peak 36.3/80.0 GiB" in page_text(
        session("02", gpus=4, meta=finished(seconds=8.0), alive=False, **options), (120, 40)
    )
    going_on = page_text(session("03", **options), (160, 50), 8.0)
    assert "memory 36.3/80.0 GiB" in going_on and "peak" not in going_on


@pytest.mark.parametrize("back", [False, True], ids=["watched", "looking back"])
async def test_a_run_that_ends_here_shows_what_one_that_is_opened_then_shows(
    session: Make, back: bool
) -> None:
    path = session(seconds=900.0, total_steps=10**9)
    async with live(path, (120, 40), seconds=900.0) as (app, pilot):
        await pilot.press("z", "end", *["left"] * back, shows="ago" if back else "history: 5 min")
        end(path)
        if back:
            await shows(pilot, "◀ at ")
            assert "history: 5 min" in screen_text(app), "nobody's view is moved while it is back"
            await pilot.press("end")
        await shows(pilot, "means and history")
        watched = screen_text(app)
    async with live(path, (120, 40), seconds=900.0) as (app, pilot):
        await shows(pilot, "means and history")
        assert "timed steps" in watched and watched == screen_text(app)


def test_a_run_that_hangs_tells_no_rate_anywhere(session: Make) -> None:
    path = session(total_steps=4000)  # the last one at about 25 s
    snapshot = snapshot_of(path, View(metric="samples/s"))
    assert snapshot.work is not None and snapshot.picked is not None
    for reading in (snapshot.work.throughput, snapshot.picked.reading, snapshot.gauges[2].reading):
        assert reading.value is None and reading.method is Method.COUNTED
        assert reading.reason is not None and reading.reason.startswith("no step for 1:0")
    assert snapshot.work.eta_seconds is None and snapshot.work.step_seconds is not None
    assert "no step for 1:0" in status_line(snapshot) and "samples per" not in status_line(snapshot)


def test_a_step_that_is_counted_again_is_no_warm_up(session: Make) -> None:
    path = session()
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE step SET warmup = 1 WHERE n = (SELECT max(n) FROM step)")
    assert " step 1" in page_text(path) and "warm-up" not in page_text(path)


def test_the_time_left_is_that_of_the_steps_left_with_their_pauses(session: Make) -> None:
    """From the first timed step on, however long it takes."""
    for path in (session(), session("02", pace=2000, seconds=34, total_steps=40)):
        work = snapshot_of(path, View()).work
        assert work is not None and work.total and work.step and work.mean_seconds
        left = (work.total - work.step) * work.mean_seconds
        assert work.eta_seconds == pytest.approx(left, rel=1e-9)


def test_the_bar_of_a_stopped_run_has_room_and_its_length_is_told_once(session: Make) -> None:
    ended = finished(0, stopped="SIGTERM")
    title, bar, *_ = page_text(session(meta=ended, alive=False)).splitlines()
    assert "■ stopped  1:30" in title and "■ stopped by SIGTERM ━━━━━━" in bar
    assert "1:30" not in bar and "●" in bar


def test_the_end_of_a_killed_run_is_told_by_its_signal_alone(session: Make) -> None:
    killed = {"message": "killed (SIGKILL)", "hint": None}
    ended = finished(0, seconds=90) | {"error": killed}
    ended["result"] |= {"code": None, "signal": 9}
    title, *rows = page_text(session(meta=ended, alive=False)).splitlines()
    assert title.endswith("✗ killed (SIGKILL)  1:30") and "exit code" not in "".join(rows)
    assert not any("killed" in row for row in rows)
    ended["error"] = killed | {"message": "CUDA error: no kernel image"}
    assert " ✗ CUDA error: no kernel image\n" in page_text(session("02", meta=ended, alive=False))


def test_a_long_name_gives_way_to_the_environment(session: Make) -> None:
    title, *_ = page_text(session(name="name-" * 20, environment="docker=img")).splitlines()
    assert title.endswith("-n… in docker=img  ▶ running  1:30")


def test_a_run_took_as_long_as_lists_and_show_say_and_its_recording_is_called_that(
    session: Make,
) -> None:
    """Longer than that by what was before the launch, and by a profile behind the steps."""
    meta = finished(0, real_seconds=86.6) | {"profile": {"t": 85 * NS, "real_seconds": 5.0}}
    path = session(meta=meta, alive=False)
    title, bar, *_ = page_text(path).splitlines()
    assert "✓ finished  1:22" in title and "1:" not in bar
    with SessionReader(path) as reader:
        item = Item(entry=listing(reader))
    listed = next(column for column in COLUMNS if column.name == "elapsed")
    assert item.elapsed == pytest.approx(81.6) and listed.text(item) == "1:22"
    snapshot = snapshot_of(path, View(seconds=None))
    assert end_lines(snapshot)[0] == "the run is over after 1:22: finished"
    assert status_line(snapshot).startswith("1:22 finished")
    back = texts([position_row(snapshot_of(path, View(at=10 * NS)), 80)])[0]
    assert back.startswith(" at 0:10 of 1:30 recorded ")
    title = texts([title_row(snapshot_of(path, View(at=10 * NS)), 80, paused=False)])[0]
    assert title.endswith("◀ at 0:10  ✓ finished  1:22 "), "how it ended, not how it was then"


def test_a_recorder_that_gave_up_is_told_with_what_it_said_last(session: Make) -> None:
    path = session(alive=False)
    assert end_lines(snapshot_of(path, View()))[0].startswith(
        "the recording is over after 1:30: the rec"
    )
    assert len(end_lines(snapshot_of(path, View()))) == 1, "the reason is not said twice"
    full = f"cannot write {path}: database or disk is full; free some space"
    log = (f"gpuwatch: {GAVE_UP}{full.replace(path.name, 'x')}", f"gpuwatch: {GAVE_UP}{full}")
    (path.parent / RECORDER_LOG).write_text("\n".join([*log, "gpuwatch: another word"]))
    assert end_lines(snapshot_of(path, View()))[1] == f"error: {full}"
    (path.parent / RECORDER_LOG).unlink()
    os.mkfifo(path.parent / RECORDER_LOG)  # of a foreign study
    assert len(end_lines(snapshot_of(path, View()))) == 1


def test_what_a_session_cannot_have_takes_no_room(session: Make) -> None:
    text = page_text(session(gpus=0), (120, 40))
    assert "clock 3.31 GHz" in text and "power" not in text


CPU_RUN = {"run": {"device": "cpu", "dtype": "float32", "batch_size": 64}}


@pytest.mark.parametrize("gpus", [1, 2, 8])
async def test_a_run_on_the_cpu_shows_no_gpu_as_its_own(session: Make, gpus: int) -> None:
    async with live(session(gpus=gpus, meta=CPU_RUN), (120, 40)) as (app, pilot):
        text = screen_text(app)
        assert "CPU utilization" in text and "GPU utilization" not in text
        assert "the run uses no GPU" in text and text.count("process 1.") == 1
        await pilot.press("tab", shows="not used by this run")
        text = screen_text(app)
        assert "GPU utilization" in text and "Algorithmic" not in text
        assert "Model FLOP/s unavailable: " in text and "the run does not use" in text
        await pilot.press("shift+tab", shows="CPU utilization")
        await pilot.press(str(gpus - 1), shows=f" GPU {gpus - 1}  NVIDIA")
        await pilot.press("g", "o", "escape", "p")


async def test_a_gpu_that_the_run_does_not_use_says_so(session: Make) -> None:
    async with live(session(gpus=3), (120, 40)) as (app, pilot):
        assert "not used" not in screen_text(app)
        await pilot.press("2", shows="not used by this run")


def test_without_steps_the_mean_is_of_the_whole_run(session: Make) -> None:
    path = session(meta=finished(), alive=False, steps=False)
    assert badge(snapshot_of(path, View(seconds=None)).gauges[0], 32) == "measured, whole run, mean"
