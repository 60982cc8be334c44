"""The graph of a picked metric: choices, place and values."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from gpuwatch.core.metrics import Method
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.writing.statements import meta
from gpuwatch.tui.feed.collector import Collector
from gpuwatch.tui.feed.gauges import title_of
from gpuwatch.tui.feed.snapshot import Gauge, View
from gpuwatch.tui.live.screen import LiveScreen
from gpuwatch.tui.widgets.gauge_rows import gauge_rows, value_parts

from ..harness import live, screen_text, until
from ..sessions import finished, put
from ..snapshots_of import snapshot_of, texts

Make = Callable[..., Path]
GIB = 1024**3
COPY = Path(__file__).parents[2] / "data/h200/copy.gpuwatch"


def picked(path: Path, key: str, **view: object) -> Gauge:
    gauge = snapshot_of(path, View(metric=key, **view)).picked  # type: ignore[arg-type]
    assert gauge is not None
    return gauge


async def test_m_goes_through_every_metric_of_the_session_and_then_to_none(session: Make) -> None:
    async with live(session(pipes=True), (120, 40)) as (app, pilot):
        screen = app.screen
        assert isinstance(screen, LiveScreen) and screen.snapshot is not None
        keys = screen.snapshot.metrics
        assert len(keys) > 20
        before = screen_text(app)
        for key in keys[:3]:
            await pilot.press("m", shows=f"\n {title_of(key)} ")
        await pilot.press("M", "M", "M")
        await until(pilot, lambda: screen_text(app) == before)
        await pilot.press("M", shows=f"\n {title_of(keys[-1])} ")
        await pilot.press("escape")
        await until(pilot, lambda: screen_text(app) == before)


def test_a_graph_of_what_is_not_known_has_no_scale_and_one_of_zeros_no_top(session: Make) -> None:
    gauge = picked(session(), "step time")

    def labels(value: float | None) -> list[str]:
        known = replace(gauge, history=(value,) * 5, scale=gauge.scale if value else 0.0)
        return [row[28:34].strip() for row in texts(gauge_rows(known, 3, 80))]

    assert labels(0.005) == ["10ms┤", "│", "0┤"]
    assert labels(0.0) == ["│", "│", "0┤"]
    assert labels(None) == ["│", "│", "│"]
    copy = snapshot_of(COPY)
    assert copy.gauges[2].reading.value == 0 and copy.gauges[2].scale == 0


def test_a_loss_that_falls_by_far_has_a_logarithmic_scale(session: Make) -> None:
    path = session()
    whole, newest = picked(path, "loss", seconds=None), picked(path, "loss", seconds=10)
    assert (whole.title, whole.floor, whole.scale) == ("Loss, log scale", 0.01, 2)
    assert (newest.title, newest.floor, newest.scale) == ("Loss", 0, 0.1)
    rows = texts(gauge_rows(whole, 6, 80))
    assert " 2┤" in rows[0] and "0.01┤" in rows[-1]


def test_between_two_printed_losses_the_graph_has_no_gaps(session: Make) -> None:
    path = session(alive=False)
    with closing(sqlite3.connect(path)) as file, file:  # every 1.5 s, in columns of 1 s
        file.execute("UPDATE step SET loss = NULL WHERE rowid % 15")
        file.execute("UPDATE step SET loss = NULL WHERE t BETWEEN 40e9 AND 60e9")
    history = picked(path, "loss", seconds=60, columns=60).history
    known = [value is not None for value in history]
    pause = (known.index(False), len(known) - known[::-1].index(False))
    assert 15 < pause[1] - pause[0] < 25  # twenty seconds without one stay empty
    assert not any(known[slice(*pause)]) and all(known[: pause[0]]) and all(known[pause[1] : -2])


def test_a_history_has_one_brightness(session: Make) -> None:
    spans = [span for row in gauge_rows(picked(session(), "loss"), 6, 80) for span in row.spans()]
    assert {role for text, role in spans if set(text) & set("▁▄█")} == {"picked"}


async def test_on_a_small_screen_it_is_a_fourth_one_too(session: Make) -> None:
    async with live(session(bandwidth_measured=True)) as (app, pilot):
        await pilot.press("m", shows="Loss")
        rows = screen_text(app).splitlines()
        for title in ("utilization", "bandwidth", "FLOP/s"):
            assert any(title in row for row in rows[:12]), title


async def test_where_there_is_room_it_is_a_fourth_graph(session: Make) -> None:
    async with live(session(), (120, 40)) as (app, pilot):
        await pilot.press(*"mmmmm", shows="GPU power")
        text = screen_text(app)
    for title in ("GPU utilization", "Algorithmic bytes/s", "Model FLOP/s"):
        assert title in text
    assert text.count("100%┤") == 1 and " 700W┤" in text


def test_only_what_the_session_has_can_be_picked(session: Make) -> None:
    plain = snapshot_of(session(power_unavailable=True)).metrics
    assert "hw.gpu.power" not in plain and "hw.gpu.sm.activity" not in plain
    assert {"hw.gpu.memory.usage", "hw.memory.usage", "loss", "step time"} <= set(plain)
    assert "hw.gpu.sm.activity" in snapshot_of(session("02", pipes=True)).metrics
    assert "loss" not in snapshot_of(session("03", steps=False)).metrics
    assert "hw.gpu.power" not in snapshot_of(session("04", gpus=0)).metrics


@pytest.mark.parametrize(
    ("key", "scale", "value"),
    [
        ("hw.gpu.memory.usage", 80 * GIB, "36.3 GiB"),
        ("hw.gpu.power", 700.0, "586 W"),
        ("hw.gpu.temperature", 100.0, "62 °C"),
        ("hw.gpu.clock.sm", 2e9, "1.98 GHz"),
        ("hw.gpu.pcie.receive", 5e9, "3.40 GB/s"),
        ("hw.cpu.utilization", 1.0, "40 %"),
        ("hw.memory.usage", 128 * GIB, "41.5 GiB"),
        ("process.cpu.time", 2.0, "1.70 cores"),
        ("loss", 0.5, "0.06640"),
        ("step time", 0.01, "5.49 ms"),
    ],
)
def test_each_has_a_fixed_scale_a_value_and_its_unit(
    session: Make, key: str, scale: float, value: str
) -> None:
    gauge = picked(session(), key)
    assert gauge.scale == pytest.approx(scale)
    number, unit = value_parts(gauge)
    assert f"{number} {unit}".strip() == value
    known = [value for value in gauge.history if value is not None]
    assert len(known) > 40 and max(known) <= scale
    row = texts(gauge_rows(gauge, 3, 80))
    assert row[0].startswith(f" {gauge.title}") and gauge.reading.method.value in row[2]


def test_its_history_is_that_of_the_whole_session_however_late_it_is_picked(session: Make) -> None:
    path = session(seconds=900.0, total_steps=1_000_000)
    whole = picked(path, "hw.gpu.memory.usage", seconds=None)
    known = [value for value in whole.history if value is not None]
    assert whole.history[0] is not None and len(known) == 38, "900 s of the 1,200 on the axis"
    assert known[0] < 0.9 * known[1], "the first four seconds are idle"
    assert known[-1] == pytest.approx(36.3 * GIB)


@pytest.mark.parametrize("key", ["loss", "step time"])
def test_a_run_whose_steps_begin_late_has_no_stairs_and_nothing_beyond_now(
    session: Make, key: str
) -> None:
    history = picked(session(seconds=23.0), key, seconds=60, columns=60).history
    known = [at for at, value in enumerate(history) if value is not None]
    assert known[0] in (9, 10) and known[-1] == 45, (
        "from the first step at 5 s to the newest at 23 s"
    )
    assert len({history[at] for at in known}) > 30


@pytest.mark.parametrize("key", ["loss", "hw.gpu.memory.usage", "samples/s"])
def test_a_bucket_is_drawn_up_to_now_and_not_to_its_end(session: Make, key: str) -> None:
    gauge = picked(session(seconds=482.0, total_steps=10**6), key, seconds=None, columns=200)
    known = [at for at, value in enumerate(gauge.history) if value is not None]
    assert known[-1] == 160, "a column is 3 s, and the newest sample is of second 482"


async def test_before_the_first_step_there_is_no_step_line_yet(session: Make) -> None:
    async with live(session(), (120, 40)) as (app, pilot):
        await pilot.press("m", "m", "m", shows="Step time")
        await pilot.press("home", shows="at 0:00 of")
        await until(pilot, lambda: "no steps yet" in screen_text(app))
        assert "contain no step time" not in screen_text(app)


def test_before_the_first_loss_there_is_none_yet_and_later_none_was_told(session: Make) -> None:
    path = put(session(), ("UPDATE step SET loss = NULL", ()))
    assert picked(path, "loss").reading.reason == "no loss yet"
    put(path, *(meta(key, value) for key, value in finished().items()))
    assert picked(path, "loss").reading.reason == "no step line has it"


def test_a_scale_grows_and_never_shrinks(session: Make) -> None:
    path = put(session(), ("UPDATE tick SET c7 = 9e9 WHERE n BETWEEN 125 AND 130", ()))
    with SessionReader(path) as reader:
        collector = Collector(reader)
        collector.update()
        scales = [
            collector.snapshot(View(metric="hw.gpu.pcie.transmit", seconds=seconds)).picked.scale  # type: ignore[union-attr]
            for seconds in (10, None, 10)
        ]
    assert scales[0] < scales[1] == scales[2]


def test_a_metric_that_the_session_has_not_is_unavailable_with_a_reason(session: Make) -> None:
    for key in ("hw.gpu.sm.activity", "no such metric", "hw.gpu.power"):
        gauge = picked(session(f"no-{key.count('.')}", gpus=0), key)
        assert gauge.reading.method is Method.UNAVAILABLE and gauge.reading.reason
        assert gauge.reading.reason in " ".join(texts(gauge_rows(gauge, 3, 80)))
