"""The live screen: the kinds of runs, and the keys."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.reading.status import State
from gpuwatch.session.writing.statements import meta
from gpuwatch.tui.feed.collector import Collector
from gpuwatch.tui.feed.snapshot import View
from gpuwatch.tui.home.screen import HomeScreen
from gpuwatch.tui.live.screen import LiveScreen
from gpuwatch.tui.widgets.gauge_rows import empty_rows
from gpuwatch.tui.widgets.page import PageScreen

from ..conftest import Fake
from ..harness import colours, live, on_top, running, screen_text, shows, until
from ..sessions import NS, end, finished, plan, put
from ..snapshots_of import numbers_text, page_text, snapshot_of, texts

Make = Callable[..., Path]


async def test_unknown_numbers_are_dashes_with_a_reason_and_never_zero(session: Make) -> None:
    path = session(count=False, power_unavailable=True)
    async with live(path) as (app, pilot):
        text = screen_text(app)
        assert "power —" in text
        assert text.count("unavailable") == 2
        assert "the driver gives no bandwidth counter" in text
        assert "the workload counts no FLOP" in text
        assert " 0 W" not in text and " 0 B/s" not in text and "0 FLOP/s" not in text
        await pilot.press("i", shows="every number")
        assert isinstance(app.screen, PageScreen)
        await pilot.press("slash", *"power", shows="not supported by this board")


def test_gauges_without_a_value_leave_their_room_to_the_others(session: Make) -> None:
    rows = page_text(session(count=False, gpus=0), (120, 40)).splitlines()
    at = next(i for i, row in enumerate(rows) if "unavailable" in row)
    assert rows[at : at + 2] == [
        " Memory bandwidth unavailable: no GPU; the workload counts no bytes",
        " Model FLOP/s unavailable: the workload counts no FLOP",
    ]
    assert "1m20s" in rows[at - 1], "it stands below the time axis"
    assert sum("│" in row or "┤" in row for row in rows) == 11 + 11, "utilization and loss"


async def test_eight_gpus_are_a_grid_and_tab_and_digits_select(session: Make) -> None:
    async with live(session(gpus=8)) as (app, pilot):
        text = screen_text(app)
        assert "▸ 0 run" in text and "7  ·" in text
        assert "GPU 0  NVIDIA H100 80GB HBM3  1 of 8" in text
        await pilot.press("tab", shows="▸ 1 run")
        await shows(pilot, "2 of 8")
        await pilot.press("shift+tab", "shift+tab", shows="▸ 7  ·")
        await pilot.press("3", shows="▸ 3  ·")
        await pilot.press("down", shows="▸ 4  ·")
        await pilot.press("up", shows="▸ 3  ·")
        await pilot.press("9")
        assert "▸ 3  ·" in screen_text(app)


def test_a_failed_run_without_a_reported_error_shows_its_last_words(session: Make) -> None:
    last = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has"
    log = [("stderr", "Traceback"), ("stderr", last), ("stdout", "bye")]
    text = page_text(session(meta=finished(1), alive=False, log=log))
    assert " ✗ CUDA out of memory (tried 20.00 GiB)" in text.splitlines()[1]
    assert "✗ exit code 1 ━━" in text
    log = [("stderr", "Traceback"), ("stderr", "RuntimeError: boom")]
    text = page_text(session("02", meta=finished(1), alive=False, log=log))
    assert " ✗ exit code 1: RuntimeError: boom" in text and text.count("exit code 1") == 1


def test_a_run_without_steps_says_why_and_once(session: Make) -> None:
    why = "torch was imported, but no optimizer took a step"
    over = {**finished(), "hook": {"given": True, "text": f"{why}: more of it"}}
    made: dict[str, Any] = {"kind": "command", "steps": False, "meta": over, "alive": False}
    text = page_text(session("01", **made, pipes=True, known_card=True), (100, 30))
    assert f" no throughput, step times or loss: {why}\n" in text
    text = page_text(session("02", **made, gpus=0), (100, 30))
    assert text.count(why) == 1 and "unavailable: no timed step was reported" in text
    text = page_text(session("03", kind="command", steps=False))
    assert " → no steps yet: torch or step lines give them; --hook loss reads the loss\n" in text


def test_what_is_waited_for_stands_with_the_workload_alone(session: Make) -> None:
    """The title keeps the name of the program."""
    ahead = {"launch": {"t": NS}, "hook": {"given": True}, "waiting": {"for": "import", "t": NS}}
    title, *rows = page_text(session(kind="command", steps=False, meta=ahead)).splitlines()
    assert title.endswith(" ▶ running  1:30") and " step —  importing torch, 89 s" in rows
    done = {"end": {"t": 80 * NS}}
    title, *rows = page_text(session("02", meta=done)).splitlines()
    assert title.endswith(" ▶ running  1:30")
    assert any(row.endswith(" %  timed steps done, profiling kernels, 10 s") for row in rows)


def test_an_epochs_event_is_told_in_the_words_of_the_session(session: Make) -> None:
    text = page_text(session(events=[(37.0, "epoch", "epoch 8, loss 0.1")]))
    assert " ◆ at 0:37: epoch 8, loss 0.1\n" in text
    text = page_text(session("older", events=[(37.0, "epoch", "8, loss 0.1")]))
    assert " ◆ at 0:37: epoch 8, loss 0.1\n" in text


def test_where_a_loss_comes_from_stands_on_the_page_of_numbers(session: Make) -> None:
    told = "the loss is from lines in the format of nanoGPT"
    path = session(events=[(80.0, "xid", "Xid 13"), (89.0, "progress-lines", told)])
    text = page_text(path)
    assert told not in text and " ◆ at 1:20: Xid 13\n" in text
    assert f"\n   {told}\n" in numbers_text(path)


def test_a_loss_that_was_printed_too_late_is_told_on_the_screen(session: Make) -> None:
    told = "all loss and accuracy came at once after the last step"
    assert f"◆ at 1:29: {told}" in page_text(session(events=[(89.0, "progress-lines", told)]))


def test_how_steps_are_told_stands_on_the_page_of_numbers_beside_a_printed_count(
    session: Make,
) -> None:
    log = [("stdout", f"step {n}/400") for n in range(10, 310, 10)]
    path = session(kind="command", steps=False, log=log)
    assert "no steps yet: torch" not in page_text(path)
    assert "→ no steps yet: torch or step lines give them; --hook loss" in numbers_text(path)


def test_before_the_first_figures_all_have_one_reason(session: Make) -> None:
    """In its first seconds the lines of a program are not read yet, as its count is."""
    waiting = {"launch": {"t": NS}, "waiting": {"for": "own lines", "t": NS}}
    path = session(kind="command", steps=False, meta=waiting)
    page = numbers_text(path, 120)
    assert page.count("   figures soon\n") == 8, "FLOP/s, two MFU, bytes/s, four of the steps"
    assert "no steps" not in page
    gauges = [each for each in snapshot_of(path, View(), 90.0).gauges if each.key == "flops"]
    assert texts(empty_rows(gauges, 80)) == [" Model FLOP/s: figures soon"]


def test_what_is_of_the_last_seconds_is_called_so(session: Make) -> None:
    assert "   samples/s now  " in numbers_text(session())
    assert "   samples/s  " in numbers_text(session("02", meta=finished(), alive=False))


async def test_space_holds_the_view_and_lets_it_go(session: Make) -> None:
    path = session()
    async with live(path) as (app, pilot):
        await pilot.press("space", shows="paused, Space goes on")
        put(path, meta("run", {"model": "Later"}))
        screen = on_top(app, LiveScreen)
        await until(pilot, lambda: "Later" in repr(screen._newest))
        assert "Later" not in screen_text(app)
        await pilot.press("space", shows="Later")
        assert "paused, Space goes on" not in screen_text(app)


async def test_zoom_goes_round_and_up_and_down(session: Make) -> None:
    async with live(session()) as (_, pilot):
        await shows(pilot, "history: 1 min")
        for keys, expected in (("z", "all"), ("z", "10 s"), ("z", "1 min")):
            await pilot.press(*keys)  # there are no five minutes yet
            await shows(pilot, f"history: {expected}")
        await pilot.press("plus", shows="history: 10 s")
        await pilot.press("plus", shows="history: 10 s")
        await pilot.press("minus", "minus", shows="history: all")


@pytest.mark.parametrize("answer", ["enter", "escape"])
async def test_s_asks_and_the_run_goes_on_unless_stopping_is_chosen(
    session: Make, fake: Fake, answer: str
) -> None:
    async with live(session()) as (app, pilot):
        await pilot.press("s", shows="Stop this run?")
        await shows(pilot, " mnist-cnn in bare ")
        await pilot.press("y", "n", "s", "q", answer, hides="Stop this run?")
        await app.workers.wait_for_complete()
    assert fake.asked == []


async def test_the_chosen_answer_runs_the_stop_command(session: Make, fake: Fake) -> None:
    path = session()
    async with live(path) as (_, pilot):
        await pilot.press("s", "right", "enter")
        await until(pilot, lambda: fake.asked == [["stop", str(path)]])


async def test_a_run_that_is_over_cannot_be_stopped(session: Make) -> None:
    async with live(session(meta=finished(), alive=False)) as (app, pilot):
        screen = app.screen
        await pilot.press("s")
        assert app.screen is screen and "s stop" not in screen_text(app)


async def test_q_leaves_and_tells_how_to_come_back(session: Make) -> None:
    path = session()
    async with live(path) as (app, pilot):
        await pilot.press("q")
    assert app.return_value == 0
    assert f"gpuwatch attach {path}" in "\n".join(app.farewell)


@pytest.mark.parametrize(("over", "here"), [(False, True), (True, True), (False, False)])
async def test_q_on_home_tells_of_the_run_that_was_started_here(
    session: Make, fake: Fake, over: bool, here: bool
) -> None:
    path = session(meta=finished() if over else {}, alive=not over)
    async with running(lambda: LiveScreen(path, follow=True)) as (app, pilot):
        app.started += [path.parent] if here else []
        await pilot.press("escape", opens=HomeScreen)
        await pilot.press("q")
    told = ["the run goes on", f"come back: gpuwatch attach {path}"]
    assert app.farewell[:2] == (told if here and not over else [])


async def test_q_on_home_tells_of_the_newest_that_goes_on_and_of_how_many_others(
    session: Make, fake: Fake
) -> None:
    first, second = session("a/01"), session("b/01")
    over = session("c/01", meta=finished(), alive=False)
    for started, others in (([first, second, over], 1), ([first, over], 0), ([over], 0)):
        async with running(HomeScreen) as (app, pilot):
            app.started += [path.parent for path in started]
            await pilot.press("q")
        told = [line for line in app.farewell if "come back" in line]
        assert told == [f"come back: gpuwatch attach {path}" for path in started[:-1][-1:]]
        assert (app.farewell[-1:] == ["1 other goes on: gpuwatch sessions"]) == bool(others)


MISSING = {"code": "image-missing", "text": "there is no image x", "hint": "docker pull x"}
STUDY = ("01-bare", "02-docker", "03-apptainer")


@pytest.mark.parametrize("size", [(80, 24), (160, 50)])
def test_a_run_of_several_says_its_place_and_what_failed_before(
    session: Make, size: tuple[int, int]
) -> None:
    first = session(meta=finished(1), alive=False)
    plan(first.parent, *STUDY)
    title = page_text(session("02-docker", environment="docker=img"), size).splitlines()[0]
    assert "mnist-cnn in docker=img" in title
    assert "2 of 3, 1 failed before  ▶ running" in title and len(title) <= size[0]


def test_a_run_that_could_not_start_is_not_told_as_failed(session: Make) -> None:
    plan(session("02-docker", environment="docker=img").parent, *STUDY, problems={"1": [MISSING]})
    title = page_text(session("03-apptainer", environment="apptainer"), (80, 24)).splitlines()[0]
    assert "3 of 3, 1 did not run  ▶ running" in title


def test_the_end_of_a_study_sums_it_up_in_one_line(session: Make) -> None:
    path = session(meta=finished(), alive=False)
    session("02-docker", meta=finished(1), alive=False)
    plan(path.parent, *STUDY, problems={"3": [MISSING]})
    rows = [row for row in page_text(path).splitlines() if "over" in row or "3 runs" in row]
    assert [row[:47] for row in rows] == [" ✓ 3 runs: 1 finished, 1 failed, 1 did not run "]


async def test_a_study_that_goes_on_is_not_summed_up(session: Make) -> None:
    path = session(meta=finished(), alive=False)
    running = session("02-docker")
    plan(path.parent, *STUDY)
    async with live(path) as (app, pilot):
        assert "✓ finished  1:30" in screen_text(app)
        await pilot.press("q")
    assert "come back: gpuwatch attach" in app.farewell
    assert "2 of 3  ▶ running" in page_text(running)


async def test_q_in_a_study_tells_what_stays_true_for_all_of_it(session: Make) -> None:
    path = session()
    plan(path.parent, *STUDY)
    async with live(path) as (app, pilot):
        await pilot.press("q")
    assert app.farewell == [
        "the study of 3 runs goes on",
        "come back: gpuwatch attach",
        f"stop all:  gpuwatch stop {path.parent}",
    ]


async def test_q_in_the_last_run_of_a_study_names_that_run(session: Make) -> None:
    path = session("03-apptainer")
    plan(path.parent, *STUDY)
    async with live(path) as (app, pilot):
        await pilot.press("q")
    assert f"come back: gpuwatch attach {path}" in app.farewell


@pytest.mark.parametrize(
    ("file", "problems", "question"),
    [
        ("01-bare", {}, "Stop this run and the 2 after it?"),
        ("01-bare", {"2": [MISSING]}, "Stop this run and the one after it?"),
        ("03-apptainer", {}, "Stop this run?"),
    ],
)
async def test_s_says_that_the_runs_after_it_are_not_started_either(
    session: Make, file: str, problems: dict[str, object], question: str
) -> None:
    path = session(file)
    plan(path.parent, *STUDY, problems=problems)
    async with live(path) as (_, pilot):
        await pilot.press("s", shows=question)


async def test_the_end_of_a_run_is_seen_while_watching(session: Make, fake: Fake) -> None:
    path = session()
    async with live(path) as (_, pilot):
        end(path)
        await shows(pilot, "✓ finished")
        await pilot.press("enter", opens=HomeScreen)


def test_a_run_that_ends_between_two_looks_is_not_told_as_lost(session: Make) -> None:
    path = session(alive=False)
    with SessionReader(path) as reader:
        collector = Collector(reader)
        end(path)
        assert collector.snapshot(View()).status.state is State.FINISHED


async def test_c_compares_with_the_study(session: Make) -> None:
    session("02-docker", environment="docker", meta=finished(), alive=False)
    path = session(meta=finished(), alive=False)
    plan(path.parent, "01-bare", "02-docker")
    async with live(path) as (_, pilot):
        await pilot.press("c", shows="docker against bare")
        await pilot.press("escape", shows="✓ finished")


async def test_c_without_a_study_asks_for_another_session(session: Make, fake: Fake) -> None:
    session("02-docker", meta=finished(), alive=False)  # another one in its folder by chance
    async with live(session(meta=finished(), alive=False)) as (app, pilot):
        await shows(pilot, "l log  p processes  o roofline  z zoom")
        assert "c compare" not in screen_text(app)
        await pilot.press("c", shows="mark another session")


async def test_escape_goes_home_and_enter_only_when_over(session: Make, fake: Fake) -> None:
    async with live(session()) as (app, pilot):
        await pilot.press("enter")
        assert isinstance(app.screen, LiveScreen)
        await pilot.press("escape", opens=HomeScreen)


async def test_t_changes_the_colours(session: Make) -> None:
    async with live(session()) as (app, pilot):
        dark = colours(app)
        await pilot.press("t")
        await until(pilot, lambda: not dark & colours(app))
        light = colours(app)
        await pilot.press("t")
        await until(pilot, lambda: not light & colours(app))
        own = colours(app)
    assert dark and light and not dark & light
    assert own and not any(name.startswith("#") for name in own)


HOSTILE = "[bold]x[/] \x1b[31mred\x1b]0;title\x07 a\x07b\u202ec\u200bd \x9b31me"


async def test_a_file_that_is_no_session_is_told_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "x.gpuwatch"
    path.write_text("no")
    async with live(path) as (_, pilot):
        await shows(pilot, "not a gpuwatch session")
        await pilot.press("q")


def test_a_gpu_that_is_lost_keeps_its_history_and_says_why(session: Make) -> None:
    change = "INSERT INTO change (t, channel, method, source, reason) VALUES (?, ?, ?, ?, ?)"
    path = put(session(), (change, (1, 0, "unavailable", "NVML", "GPU is lost")))
    text = page_text(path, (120, 40))
    assert "unavailable, GPU is lost" in text and "100%┤" in text


async def test_absurd_values_neither_crash_nor_hang(session: Make) -> None:
    rows = [
        (f"UPDATE tick SET c{n} = 1e308, c{n + 1} = -1e308 WHERE n > 100", ()) for n in (0, 2, 4)
    ]
    steps = "UPDATE step SET samples = 1e308, flop = 1e308, bytes = -1 WHERE n > 100"
    async with live(put(session(), *rows, (steps, ()))) as (app, pilot):
        await pilot.press("z", "z", "i", shows="every number")
        assert app.return_code is None


def test_a_lost_run_says_how_to_take_it_up(session: Make) -> None:
    assert "? lost" in page_text(session(alive=False))
