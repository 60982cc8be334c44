"""Earlier moments of a session: the keys, and the screen at that moment."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from textual import events
from textual.pilot import Pilot

from gpuwatch.core.errors import ExitCode
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.writing import statements, store
from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.feed.collector import Collector, PastView
from gpuwatch.tui.feed.samples import Window
from gpuwatch.tui.feed.snapshot import TIMED, Replay, Snapshot, View
from gpuwatch.tui.live.screen import LiveScreen
from gpuwatch.tui.log.screen import LogScreen
from gpuwatch.tui.widgets.gauge_rows import LABEL, value_width
from gpuwatch.tui.widgets.head_rows import slider
from tests.session.counted import counted
from tests.session.samples import fill

from ..harness import live, on_top, running, screen_text, shows, until
from ..sessions import NS, START_UNIX_NS, Script, finished, plan, write
from ..snapshots_of import page_text

EVENTS = [(20.0, "throttle", "the power cap"), (30.0, "epoch", "1"), (60.0, "xid", "Xid 13")]


@pytest.fixture
def over(tmp_path: Path) -> Path:
    log = [("stdout", f"line {n}") for n in range(90)]
    return write(tmp_path / "a.gpuwatch", Script(meta=finished(), events=EVENTS, log=log))


@pytest.fixture
def going(tmp_path: Path) -> Path:
    return write(tmp_path / "a.gpuwatch", Script(events=EVENTS))


def _screen(app: GpuwatchApp) -> LiveScreen:
    return on_top(app, LiveScreen)


def _replay(app: GpuwatchApp) -> Replay | None:
    snapshot = _screen(app).snapshot
    return snapshot.replay if snapshot is not None else None


async def _at(pilot: Pilot[int], seconds: float) -> Snapshot:
    """Wait until the moment is shown."""
    app = pilot.app
    assert isinstance(app, GpuwatchApp)

    def there() -> bool:
        replay = _replay(app)
        return replay is not None and abs(replay.position_ns / NS - seconds) < 0.6

    await until(pilot, there)
    snapshot = _screen(app).snapshot
    assert snapshot is not None
    return snapshot


async def test_a_run_that_is_over_is_gone_through_by_columns_and_events(over: Path) -> None:
    async with live(over, (120, 40)) as (app, pilot):
        whole = _screen(app).snapshot
        assert _replay(app) is None and whole is not None
        assert "✓ finished  1:30" in screen_text(app)
        await shows(pilot, "history: timed steps")
        assert "Space play" in screen_text(app)
        await until(pilot, lambda: "means and history" in screen_text(app))
        await pilot.press("minus", shows="history: all")
        whole = _screen(app).snapshot
        assert whole is not None
        column = whole.window.column_ns / NS
        await pilot.press("left")
        await _at(pilot, 90 - column)
        assert "── log ──" in screen_text(app)
        await pilot.press("shift+left")
        await _at(pilot, 90 - 11 * column)
        await pilot.press("right")
        await _at(pilot, 90 - 10 * column)
        await pilot.press("shift+right")
        await until(pilot, lambda: _replay(app) is None)
        await pilot.press("home")
        await _at(pilot, 0)
        assert "◀ at 0:00  ✓ finished  1:30" in screen_text(app)
        assert "speed 1x" in screen_text(app)
        await pilot.press("right_square_bracket")
        await _at(pilot, 20)
        await shows(pilot, "event 1 of 2, at 0:20: the power cap")
        await pilot.press("right_square_bracket")
        then = await _at(pilot, 60)
        assert then.status.live and not then.goes_on and then.event is not None
        assert then.event.text == "Xid 13" and then.log[-1].t <= 60 * NS
        assert then.work is not None and then.work.eta_seconds is not None
        assert then.gauges[0].history[-1] is None and then.gauges[0].history[0] is not None
        assert "ETA" not in screen_text(app), "it is over"
        await pilot.press("right_square_bracket", shows="no event after 1:00")
        await pilot.press("l", shows="up to 1:00")
        assert isinstance(app.screen, LogScreen) and "line 61" not in screen_text(app)
        await pilot.press("escape", "left_square_bracket")
        await _at(pilot, 20)
        await pilot.press("left_square_bracket", shows="no event before 0:20")


async def test_space_plays_at_a_speed_to_the_end_and_shows_the_whole_then(over: Path) -> None:
    async with live(over, (120, 40)) as (app, pilot):
        await pilot.press(*["less_than_sign"] * 5)
        assert _screen(app)._view.speed == 0.25
        await shows(pilot, "Space plays at 1/4x")
        await pilot.press(*["greater_than_sign"] * 5, shows="Space plays at 8x")
        await pilot.press("space", shows="Space pause")
        await shows(pilot, "space pause")
        await until(pilot, lambda: (now := _replay(app)) is not None and now.position_ns > 6 * NS)
        await pilot.press("space", shows="Space play")
        assert "speed 8x" in screen_text(app)
        assert not _screen(app)._view.playing
        await pilot.press(*["greater_than_sign"] * 7)
        assert _screen(app)._view.speed is None
        await pilot.press("less_than_sign")
        assert _screen(app)._view.speed == 64
        await pilot.press("greater_than_sign", shows="speed max")
        await pilot.press("space")
        await until(pilot, lambda: _replay(app) is None)
        assert not _screen(app)._view.playing


async def test_a_run_that_goes_on_is_held_and_looked_back_at(going: Path) -> None:
    async with live(going, (120, 40)) as (app, pilot):
        await pilot.press("space", shows="paused, Space goes on")
        await pilot.press("left", shows=" ago")
        assert "paused" not in screen_text(app)
        await pilot.press("o", shows="space play")
        await pilot.press("o", "end")
        await until(pilot, lambda: _replay(app) is None)
        await shows(pilot, "space pause")
        await pilot.press("home")
        await _at(pilot, 0)
        await pilot.press("space", shows="Space pause")
        assert "paused, Space goes on" not in screen_text(app)
        await pilot.press("escape")
        await until(pilot, lambda: _replay(app) is None)
        assert isinstance(app.screen, LiveScreen)


async def test_a_run_that_goes_on_looks_back_while_it_is_recorded(going: Path) -> None:
    async with live(going, (120, 40)) as (app, pilot):
        await pilot.press("left_square_bracket")
        then = await _at(pilot, 60)
        assert then.goes_on and "ago" in screen_text(app)
        assert "at 1:00 of" in screen_text(app)
        before = then.replay.length_ns if then.replay else 0
        _grow(going)
        await until(pilot, lambda: (now := _replay(app)) is not None and now.length_ns > before)
        await _at(pilot, 60)
        await pilot.press("end")
        await until(pilot, lambda: _replay(app) is None)
        assert "ago" not in screen_text(app).splitlines()[0]


async def test_the_zoom_keeps_the_moment(over: Path) -> None:
    async with live(over) as (app, pilot):
        await pilot.press("left_square_bracket")
        await _at(pilot, 60)
        for seconds in (None, 10, 60, TIMED):
            await pilot.press("z")
            await until(
                pilot,
                lambda s=seconds: _screen(app).snapshot.view.seconds == s,  # type: ignore[misc,union-attr]
            )
            shown = (await _at(pilot, 60)).window
            assert shown.start <= 60 * NS <= shown.end


async def test_the_mouse_goes_to_a_moment_on_a_history_the_axis_and_the_bar(over: Path) -> None:
    async with live(over) as (app, pilot):
        timeline = _screen(app)._page.timeline
        assert len(timeline) > 3
        first = value_width(80) + LABEL
        window = _screen(app).snapshot.window  # type: ignore[union-attr]
        begin, column = window.start / NS, window.column_ns / NS
        for at, row in ((20, timeline[0]), (10, timeline[-1])):
            await pilot.mouse_down(offset=(first + at, row))
            await _at(pilot, begin + (at + 1) * column)
            await pilot.mouse_up(offset=(first + at, row))
        snapshot = _screen(app).snapshot
        bar = _screen(app)._page.bar
        assert snapshot is not None and bar is not None
        columns = slider(snapshot, 80)
        middle = (columns.start + columns.stop) // 2
        await pilot.mouse_down(offset=(middle, bar))
        await _at(pilot, 90 * (middle - columns.start) / len(columns))
        await pilot.hover(offset=(columns.start, bar))
        await pilot._post_mouse_events([events.MouseMove], offset=(columns.start, bar), button=1)
        await _at(pilot, 0)
        await pilot.mouse_up(offset=(columns.start, bar))
        await pilot._post_mouse_events([events.MouseMove], offset=(middle, bar), button=1)
        await pilot.pause()
        await _at(pilot, 0)


async def test_a_screen_can_begin_at_a_moment_and_playing(over: Path) -> None:
    start = View(at=40 * NS)
    async with running(lambda: LiveScreen(over, start=start)) as (_, pilot):
        await _at(pilot, 40)
    start = View(at=10**6 * NS)
    async with running(lambda: LiveScreen(over, start=start)) as (_, pilot):
        await _at(pilot, 90)
    start = View(at=80 * NS, playing=True, speed=None)
    async with running(lambda: LiveScreen(over, start=start)) as (app, pilot):
        await until(pilot, lambda: _screen(app).snapshot is not None and not _replay(app))


@pytest.mark.parametrize("t", [1.0, 12.3, 40.0, 89.0])
def test_a_moment_reached_by_playing_is_the_moment_that_is_jumped_to(over: Path, t: float) -> None:
    with SessionReader(over) as reader:
        collector = Collector(reader, lambda: START_UNIX_NS)
        collector.update()
        at = int(t * NS)
        view = View(at=at, seconds=10)
        jumped = PastView(collector).at(at).snapshot(view)
        played = PastView(collector)
        for part in range(1, 11):
            shown = played.at(at * part // 10)
            shown.snapshot(view)
        again = shown.snapshot(view)
    assert [gauge.history for gauge in again.gauges] == [gauge.history for gauge in jumped.gauges]
    assert (again.devices, again.log, again.event, again.t) == (
        *(jumped.devices, jumped.log, jumped.event, jumped.t),
    )
    assert again.work == jumped.work
    assert again.bound == jumped.bound


def test_a_look_back_is_at_as_many_steps_as_were_seen_then(session: Callable[..., Path]) -> None:
    path = session(pace=60.0, seconds=300.0)
    with SessionReader(path) as reader:
        collector = Collector(reader, lambda: START_UNIX_NS)
        collector.update()
        then = PastView(collector).at(280 * NS).snapshot(View(at=280 * NS, seconds=60))
        timed = [row for row in reader.steps(0) if row.t <= 280 * NS and not row.warmup]
    assert then.work is not None
    assert then.work.step_count == sum(row.count for row in timed) > 700


def test_a_long_session_is_opened_and_gone_through_by_reading_little(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _long(tmp_path / "a.gpuwatch", 200_000)
    with SessionReader(path) as reader:
        rows = counted(monkeypatch)
        collector = Collector(reader, lambda: START_UNIX_NS)
        collector.update()
        whole = collector.snapshot(View(seconds=None, columns=80))
        assert sum(value is not None for value in whole.gauges[0].history) == 80
        # Six hours in minutes, and step lines of six minutes.
        assert rows() < 6000
        past = PastView(collector)
        for at in (collector.end // 2, collector.end // 3, collector.end // 3 + 10 * NS):
            for seconds, most in ((None, 3000), (10, 100), (60, 100), (300, 6000)):
                then = past.at(at).snapshot(View(at=at, seconds=seconds, columns=80))
                assert then.t == at and then.gauges[0].reading.value == 0.5
                assert then.gauges[0].history[0] == pytest.approx(0.5)
                assert rows() < most


def test_a_history_is_the_same_from_samples_and_from_their_means(tmp_path: Path) -> None:
    path = _long(tmp_path / "a.gpuwatch", 20_000)
    with SessionReader(path) as reader:
        collector = Collector(reader, lambda: START_UNIX_NS)
        collector.update()
        end = collector.end
        series = collector._series["gpu0", "hw.gpu.utilization"]
        coarse = series.columns(Window(0, end, 20))
        fine = series.columns(Window(end - 300 * NS, end, 20))
    assert coarse == pytest.approx([0.5] * 20) and fine == pytest.approx([0.5] * 20)


def test_replay_takes_a_time_and_a_speed(over: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from gpuwatch.cli import main
    from gpuwatch.cli.commands.replay import position, speed

    assert [position(text) for text in ("90", "1:30", "1:02:03", "0:00.5")] == [
        *(90 * NS, 90 * NS, 3723 * NS, NS // 2)
    ]
    assert speed("0.25") == 0.25 and speed("max") == float("inf")
    for wrong in (["--at", "soon"], ["--at", "1:99"], ["--speed", "0"], ["--speed", "nan"]):
        assert main(["replay", str(over), *wrong]) == ExitCode.USAGE
        assert repr(wrong[1]) in capsys.readouterr().err
    assert main(["replay", "--plain", "--at", "1:30", str(over)]) == ExitCode.USAGE
    assert "omit --plain" in capsys.readouterr().err


def _grow(path: Path) -> None:
    """Add one tick."""
    with sqlite3.connect(path, timeout=5) as db:
        names = [row[1] for row in db.execute("PRAGMA table_info(tick)")][2:]
        columns = ", ".join(names)
        db.execute(
            f"INSERT INTO tick (n, t, {columns}) SELECT n + 20, t + 10000000000, {columns} "
            "FROM tick ORDER BY n DESC LIMIT 1"
        )
    db.close()


def _long(path: Path, ticks: int) -> Path:
    """A session of one GPU at 10 Hz, and a step line every two seconds."""
    seconds = ticks / 10
    script = Script(seconds=0, interval=0.1, steps=False, meta=finished(seconds=seconds))
    write(path, script)
    with SessionReader(path) as reader:
        others = len(reader.channels()) - 1
    fill(path, ((n * NS // 10, (0.5, *[None] * others)) for n in range(ticks)))
    with sqlite3.connect(path) as db:
        counting = "WITH RECURSIVE c(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM c WHERE n < ?) "
        db.execute(
            f"{counting} INSERT INTO step (t, step, count, warmup, samples) "
            "SELECT 2000000000 * (n + 1), 10 * (n + 1), 10, 0, 640 FROM c",
            (ticks // 20 - 2,),
        )
    db.close()
    store.SessionStore.reopen(path).close()
    return path


async def test_the_beginning_of_a_run_that_goes_on_is_not_its_end(tmp_path: Path) -> None:
    path = write(tmp_path / "a.gpuwatch", Script(meta={"launch": {"t": 3 * NS}, "handle": {}}))
    async with live(path) as (app, pilot):
        await pilot.press("home")
        await _at(pilot, 0)
        assert "✓ finished" not in screen_text(app)


async def test_the_end_of_a_run_lets_a_held_view_go(going: Path) -> None:
    async with live(going, (100, 30)) as (app, pilot):
        await pilot.press("space", "o", shows="space go on")
        with sqlite3.connect(going) as file:
            file.execute(*statements.meta("result", finished()["result"]))
        file.close()
        await shows(pilot, "space play")
        await pilot.press("o", shows="✓ finished")
        assert "paused" not in screen_text(app)


async def test_what_became_of_other_runs_is_not_told_of_an_earlier_moment(tmp_path: Path) -> None:
    plan(tmp_path / "study", "01-bare", "02-docker")
    path = write(tmp_path / "study" / "01-bare.gpuwatch", Script())
    async with live(path) as (app, pilot):
        await shows(pilot, "1 to come")
        await pilot.press("left", shows=" ago")
        assert "to come" not in screen_text(app)


def test_a_moment_after_the_end_is_refused_with_the_length(
    session: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    from gpuwatch.cli import main

    assert main(["replay", "--at", "99:00", str(session(seconds=12))]) == ExitCode.USAGE
    assert "ends at 0:12: nothing was recorded at 1:39:00" in capsys.readouterr().err


def test_a_run_that_waits_to_start_is_not_told_as_over(tmp_path: Path) -> None:
    state = {"run_state": {"state": "starting", "t": 0}}
    path = write(tmp_path / "a.gpuwatch", Script(steps=False, seconds=1, meta=state))
    shown = page_text(path)
    assert "starting" in shown and "Space" not in shown
