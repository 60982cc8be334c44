"""Histories of compared runs: letters, scale, alignment."""

from __future__ import annotations

import json
import re
import sqlite3
from array import array
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from gpuwatch.analysis.study.read import read
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.study.plan import PLAN
from gpuwatch.session.study.plan_file import document
from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.compare.curves import METRICS, STEP_TIME, Curve, Curves, Metric, read_curves
from gpuwatch.tui.compare.history_rows import Overlay, Series, View, _place, history_rows
from gpuwatch.tui.compare.screen import CompareScreen
from gpuwatch.tui.display_options import DisplayOptions
from gpuwatch.tui.feed.snapshot import View as LiveView
from gpuwatch.tui.widgets.ascii import to_ascii
from tests.analysis.sessions import SECOND, WARM, record, step_line
from tests.report import results

from ..harness import piloted, running, screen_text, shows, until
from ..sessions import finished
from ..snapshots_of import snapshot_of
from .test_compare import many

Make = Callable[..., Path]
UTILIZATION = METRICS[1]
STEP = next(metric for metric in METRICS if metric.key == STEP_TIME)


def run(values: list[float | None], metric: Metric = UTILIZATION, warm: int = 0) -> Curves:
    """A run with a point per second and ten steps per point; the first ``warm`` are warm-up."""
    places = tuple(float(at - warm) for at in range(len(values)))
    timed = [value for value in values[warm:] if value is not None]
    figure = sum(timed) / len(timed) if timed else None
    steps = tuple(10 * place for place in places)
    curve = Curve(places, steps, tuple(values), "measured", figure=figure)
    return Curves(Path("x"), {metric.key: curve}, {}, True, float(warm), 10 * warm)


def rows(*series: Series, view: View | None = None, size: tuple[int, int] = (80, 22)) -> list[str]:
    lines = history_rows(series, view or View(UTILIZATION), *size)
    assert len(lines) <= size[1] and max(line.used for line in lines) <= size[0]
    return ["".join(text for text, _ in line.spans()) for line in lines]


def heights(text: list[str], letter: str) -> set[int]:
    """The rows of the graph that contain the letter."""
    return {at for at, row in enumerate(text) if "│" in row and letter in row.partition("│")[2]}


def test_a_constant_half_is_drawn_at_half_the_height_of_a_scale_from_zero() -> None:
    text = rows(Series("bare", (run([0.5] * 60),), 1))
    (height,) = heights(text, "a")
    last = next(at for at, row in enumerate(text) if "└" in row) - 1
    labels = [text[at].partition("│")[0].strip() for at in (1, height, last)]
    assert labels == ["100 %", "50 %", "0 %"] and 2 * height == 1 + last


def test_a_run_without_steps_is_of_the_whole_run_and_since_its_launch() -> None:
    whole = Series("script", (replace(run([0.25] * 60), timed=False),), 1)
    text = rows(Series("bare", (run([0.75] * 60),), 1), whole, size=(120, 22))
    assert "by time since the first timed step, of b since launch" in text[0]
    assert text[-2].endswith("mean of timed steps") and text[-1].endswith("mean of the whole run")
    assert "by time since launch" in rows(whole)[0]


def test_every_line_has_its_letter_on_it_at_its_end_and_in_the_legend() -> None:
    text = rows(Series("bare", (run([0.25] * 60),), 1), Series("docker", (run([0.75] * 60),), 1))
    (low,), (high,) = heights(text, "a"), heights(text, "b")
    assert high < low
    assert text[low].rstrip().endswith("a") and text[high].rstrip().endswith("b")
    assert text[low].count("a") > 2
    assert " ".join(text[-2].split()).startswith("a bare 25 % mean of timed steps")
    assert " ".join(text[-1].split()).startswith("b docker 75 % mean of timed steps")


def test_a_long_label_gives_way_to_the_words_of_its_figure() -> None:
    legend = rows(Series("run.py 60, bare, its-file, its start " * 3, (run([0.2] * 9),), 1))[-1]
    assert legend.startswith(" a run.py 60, bare, ") and "…  20 %  mean of timed steps" in legend


async def test_a_run_has_the_letter_of_the_front_page_on_its_line(session: Make) -> None:
    paths = [
        session(at, name=name, kind="command", meta=finished(), alive=False)
        for at, name in (("01-" + "a" * 60, "a.py"), ("02-" + "b" * 60, "b.py"))
    ]
    async with running(lambda: CompareScreen(paths), (100, 30)) as (app, pilot):
        await shows(pilot, "B  b.py")
        await pilot.press("h", shows="\n B b.py")
        assert "\n A a.py" in screen_text(app) and "B A" not in screen_text(app)


def test_where_only_ascii_can_be_drawn_lines_are_their_letters() -> None:
    picture = Overlay(20, 5, ascii=True)
    picture.add("a", "text", [0.0] * 40, (0.0, 1.0))
    picture.add("b", "text", [0.0] * 20 + [1.0] * 20, (0.0, 1.0))
    drawn = ["".join(cell for cell, _ in picture.row(at)) for at in range(5)]
    assert all(character in " ab*" for character in "".join(drawn))
    assert drawn[0].strip().strip("b") == "" and drawn[0].startswith(" " * 10)
    assert set(drawn[4][:10]) <= {"*", "a", "b"} and set(drawn[4][11:]) == {"a"}


def test_of_a_cell_the_median_of_its_runs_is_drawn_and_their_range_told() -> None:
    text = rows(Series("bare", tuple(run([v] * 60) for v in (0.2, 0.5, 0.9)), 3))
    assert len(heights(text, "a")) == 1 and "50 %" in text[heights(text, "a").pop()]
    assert "45 %  mean of timed steps, the middle of 3 runs, 20 % to 90 %" in text[-1]


def test_of_a_cell_the_line_ends_with_its_shortest_run() -> None:
    """Of the others alone it would be that of the runs that took longest."""
    short, long = run([0.2] * 30), run([0.2] * 30 + [0.9] * 30)
    text = rows(Series("bare", (short, long), 2), Series("docker", (long,), 1))
    assert "while all runs go on" in text[0]
    height = min(heights(text, "b"))
    assert min(heights(text, "a")) > height, "where docker's single run goes on, it is over"


def test_of_several_gpus_it_is_said_that_the_mean_is_drawn() -> None:
    eight, one = run([0.5] * 60), run([0.5] * 60)
    of_eight = {key: replace(curve, gpus=8) for key, curve in eight.curves.items()}
    mean = replace(eight, curves=of_eight)
    assert "mean of 8 GPUs" in rows(Series("bare", (mean,), 1))[0]
    assert "mean of the GPUs of each run" in rows(Series("bare", (mean, one), 2))[0]
    assert "GPUs" not in rows(Series("bare", (one,), 1))[0]


def test_an_unknown_value_is_a_gap() -> None:
    picture = Overlay(10, 3)
    picture.add("a", "text", [1.0] * 8 + [None] * 4 + [1.0] * 8, (0.0, 1.0))
    drawn = "".join(cell for cell, _ in picture.row(0))
    assert drawn[4:6] == "  " and " " not in drawn[:4] + drawn[6:]


def test_warm_up_lies_before_zero_and_the_means_are_without_it() -> None:
    for by_step in (False, True):
        text = rows(
            Series("bare", (run([0.1] * 6 + [0.6] * 60, warm=6),), 1),
            view=View(UTILIZATION, by_step),
        )
        assert "╌ warm-up" in text[0]
        axis = next(row for row in text if "└" in row)
        assert axis.partition("└")[2].startswith("╌╌")
        assert "60 %  mean of timed steps" in text[-1]


def test_the_axis_ends_with_the_last_step() -> None:
    gauge, steps = run([0.5] * 60), run([0.1] * 25, STEP)
    both = replace(gauge, curves={**gauge.curves, **steps.curves})
    labels = next(row for row in reversed(rows(Series("a", (both,), 1))) if "20s" in row)
    assert "30s" not in labels and "40s" in " ".join(rows(Series("a", (gauge,), 1)))


def test_the_means_are_those_of_the_table_over_the_timed_steps_alone(session: Make) -> None:
    path = session(meta=finished(), alive=False, total_steps=6000)
    curves, summary = read_curves(path), read(path).summary
    for key in (UTILIZATION.key, "hw.gpu.power", "gpuwatch.flop.rate"):
        metric = next(metric for metric in METRICS if metric.key == key)
        placed = _place(0, Series("bare", (curves,), 1), View(metric), (0.0, 90.0), 100)
        assert placed.timed == (summary.metrics[key].mean,), key


def test_rates_of_steps_have_no_ramp_before_the_first_or_after_the_last(session: Make) -> None:
    curves = read_curves(session(meta=finished(), alive=False, total_steps=6000)).curves
    taken = [each for each in curves[STEP.key].values if each]
    for key in ("gpuwatch.flop.rate", "gpuwatch.throughput"):
        of = [each for each in curves[key].values if each is not None]
        assert max(of) / min(of) <= 1.05 * max(taken) / min(taken), key


def test_long_numbers_stand_in_the_margin_and_apart_from_words() -> None:
    flop = next(metric for metric in METRICS if metric.key == "gpuwatch.flop.rate")
    runs = tuple(run([19.9e12 + at] * 30, flop) for at in range(3))
    text = rows(Series("bare", runs, 3), view=View(flop, close_up=True))
    graph = [row for row in text if "│" in row]
    assert len({row.index("│") for row in graph}) == 1
    assert "19.9 TFLOP/s " in text[-1] and "of 3 runs" in text[-1]
    assert "scale not from zero" in text[0]
    around_zero = run([at / 100 - 0.2 for at in range(60)], flop)
    assert (
        "not from zero"
        not in rows(Series("a", (around_zero,), 1), view=View(flop, close_up=True))[0]
    )


def test_one_wild_step_does_not_flatten_the_others() -> None:
    values: list[float | None] = [0.005] * 59
    text = rows(Series("bare", (run([*values, 3.0], STEP),), 1), view=View(STEP))
    assert "peaks cut off" in text[0]
    assert "6.00 ms" in text[1]


def test_a_stall_is_as_long_and_as_high_as_it_was(tmp_path: Path) -> None:
    """In the mean of a column it would be a tenth, and a ramp before it."""
    ends = [*range(1, 101), *range(171, 271)]
    steps = [step_line(n, 71.0 if n == 101 else 1.0, WARM + end) for n, end in enumerate(ends, 1)]
    path = record(tmp_path / "a.gpuwatch", steps=steps, step_seconds=13.5)
    for points in (20, 1000):
        curves = read_curves(path, points)
        assert max(v for v in curves.curves[STEP_TIME].values if v is not None) == 71.0
    placed = _place(0, Series("a", (curves,), 1), View(STEP), (0.0, 270.0), 54)
    assert set(placed.values[:20]) == {1.0} and set(placed.values[21:34]) == {71.0}
    live = snapshot_of(path, LiveView(metric=STEP_TIME, seconds=None, columns=54)).picked
    assert live is not None and live.scale == 100 and live.history.count(71.0) in (14, 15)


def test_the_letter_at_an_end_is_where_the_line_ends() -> None:
    text = rows(
        Series("bare", (run([0.25] * 30),), 1),
        Series("docker", (run([0.75] * 60),), 1),
        Series("other", (run([0.25] * 30),), 1),
    )
    (low,) = heights(text, "a")
    line = text[low].rstrip()
    assert line.endswith("ac") and len(line) < 52
    assert text[heights(text, "b").pop()].rstrip().endswith("b")


def test_close_up_says_that_its_scale_is_not_from_zero() -> None:
    series = Series("bare", (run([0.005] * 30 + [0.0052] * 30, STEP),), 1)
    assert len(heights(rows(series, view=View(STEP)), "a")) == 1
    text = rows(series, view=View(STEP, close_up=True))
    assert "scale not from zero" in text[0]
    assert max(heights(text, "a")) - min(heights(text, "a")) > 8


def test_what_is_not_there_has_its_reason() -> None:
    why = "the driver gives no counter"
    none = Curves(Path("x"), {}, {UTILIZATION.key: why}, True)
    text = rows(Series("bare", (none,), 1), Series("docker", (), 1))
    assert why in text[-2] and "reading" in text[-1]
    assert any("no values to draw" in row for row in text)


def test_names_from_outside_are_harmless() -> None:
    text = rows(Series(results.HOSTILE, (run([0.5] * 9),), 1))
    assert "\x1b" not in "".join(text) and "\u202e" not in "".join(text)


def test_step_numbers_and_times_of_a_session_agree(session: Make) -> None:
    path = session(meta=finished(), alive=False)
    curves = read_curves(path)
    step_time = curves.curves[STEP_TIME]
    assert curves.timed and curves.warmup_steps == 20
    assert step_time.steps[0] == 0 and step_time.seconds[0] == 0, "the warm-up's end"
    with SessionReader(path) as reader:
        last = list(reader.all_steps())[-1]
    assert step_time.steps[-1] == last.step - 20
    assert all(0.0045 < value < 0.0056 for value in step_time.values if value is not None)
    assert curves.missing["hw.gpu.memory.bandwidth"].startswith("the driver gives no")


def test_of_a_long_run_few_step_lines_are_read_one_by_one_and_no_stall_is_lost(
    session: Make,
) -> None:
    path = session(seconds=2300.0, interval=10.0, total_steps=10**7, alive=False, meta=finished())
    read: list[int] = []

    class Counting(SessionReader):
        def steps(self, after: int = -1, limit: int = 5000):  # type: ignore[no-untyped-def]
            rows = super().steps(after, limit)
            read.append(len(rows))
            return rows

    from gpuwatch.tui.compare import curves as module

    with Counting(path) as reader:
        assert reader.last_step() > 20_000
        lines = module._lines(reader, 100)
        assert lines[0].warmup and lines[-1].n == reader.last_step()
    assert sum(read) <= 300 and len({row.n for row in lines}) > 200
    left_out = next(n for n in range(9000, 10_000) if n not in {row.n for row in lines})
    with closing(sqlite3.connect(path)) as file, file:
        ((t, size),) = file.execute("SELECT t, length(seconds) FROM step WHERE n = ?", (left_out,))
        stall = array("d", [4.0] * (size // 8)).tobytes()
        file.execute("UPDATE step SET seconds = ? WHERE n = ?", (stall, left_out))
    curves = read_curves(path, 100)
    step_time = curves.curves[STEP_TIME]
    assert max(filter(None, step_time.values)) == 4.0
    place = step_time.values.index(4.0)
    assert step_time.seconds[place] == pytest.approx(t / SECOND, abs=30)
    assert list(step_time.seconds) == sorted(step_time.seconds)
    assert None not in curves.curves["gpuwatch.throughput"].values


async def test_h_draws_them_and_m_x_z_change_metric_alignment_and_scale(session: Make) -> None:
    async with running(lambda: CompareScreen(many(session, 2))) as (app, pilot):
        await shows(pilot, "against")
        await pilot.press("h", shows="b 2 env1")
        await shows(pilot, "step time  measured, longest steps  by time since the first timed step")
        await until(pilot, lambda: "reading" not in screen_text(app))
        await pilot.press("m", shows="GPU utilization  measured")
        await pilot.press("x", shows="by timed steps")
        await pilot.press("z", shows="scale not from zero")
        await pilot.press("M", "x", "z", shows="step time  measured, longest steps  by time")
        assert "scale not from zero" not in screen_text(app)
        await pilot.press("question_mark", shows="scale from zero, or over the values alone")
        await pilot.press("escape", "escape", shows="gpuwatch compare  env1 against env0")


async def test_runs_that_cannot_be_told_apart_any_more_are_a_key_away(session: Make) -> None:
    async with running(lambda: CompareScreen(many(session, 10)), (100, 30)) as (app, pilot):
        await shows(pilot, "against")
        await pilot.press("h", shows="←→ 2 more")
        assert "h 8 env7" in screen_text(app) and "9 env8" not in screen_text(app)
        await pilot.press("right", "right", "right", shows="j 10 env9")
        text = screen_text(app)
        assert "a 1 env0" in text, "the baseline stays"
        assert "h 8 env7" in text and "b 2" not in text, "letters are of runs, not of places"
        await pilot.press("left", shows="i 9 env8")
        assert "j 10 env9" not in screen_text(app)


def test_letters_and_colours_are_of_runs_and_of_those_shown_no_two_are_alike() -> None:
    series = [Series(f"run{at:02d}", (run([at / 100] * 9),), 1) for at in range(67)]
    seen: dict[str, set[tuple[str, str]]] = {}
    for skipped in range(60):
        shown = [series[0], *series[1 + skipped : 8 + skipped]]
        lines = history_rows(shown, View(UTILIZATION), 80, 22, skipped)[-8:]
        legend = [
            ("".join(t for t, _ in line.spans()).split(), line.spans()[0][1]) for line in lines
        ]
        assert len({words[0] for words, _ in legend}) == len({role for _, role in legend}) == 8
        for words, role in legend:
            seen.setdefault(words[1], set()).add((words[0], role))
    assert all(len(signs) == 1 for signs in seen.values()) and len(seen) == 67


async def test_of_a_study_each_cell_is_a_line_and_tab_takes_the_next_case(tmp_path: Path) -> None:
    made = results.study_result(tmp_path, blocks=2, workloads=("resnet50", "vit"))
    assert made.plan is not None
    (tmp_path / PLAN).write_text(json.dumps(document(made.plan)))
    paths = sorted(tmp_path.glob("*.gpuwatch"))
    async with running(lambda: CompareScreen(paths), (100, 30)) as (app, pilot):
        await shows(pilot, "NO VERDICT")
        await pilot.press("h", shows="resnet50  case 1 of 2")
        await until(pilot, lambda: screen_text(app).count("of 2 runs") == 3)
        await pilot.press("tab", shows="vit  case 2 of 2")
        await pilot.press("shift+tab", shows="resnet50  case 1 of 2")


async def test_where_only_ascii_can_be_drawn_nothing_is_lost(session: Make) -> None:
    paths = many(session, 2)
    app = GpuwatchApp(lambda: CompareScreen(paths), DisplayOptions(ascii=True))
    async with piloted(app) as pilot:
        await shows(pilot, "against")
        verdict = screen_text(app)
        await pilot.press("h")
        await until(pilot, lambda: bool(re.search(r"a 1 env0 +[\d.]+ ms  mean", screen_text(app))))
        for text in (verdict, screen_text(app)):
            assert to_ascii(text).count("?") == text.count("?"), "every glyph has one of ASCII"
        assert "aaaa" in screen_text(app) or "****" in screen_text(app)


async def test_of_sessions_that_cannot_be_read_there_is_no_other_page(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("01-bare.gpuwatch", "02-docker.gpuwatch")]
    for path in paths:
        path.write_text("no session")
    async with running(lambda: CompareScreen(paths), (200, 30)) as (_, pilot):
        await shows(pilot, "02-docker.gpuwatch is left out")
        for key in ("h", "k"):
            await pilot.press(key, shows="no session could be read")
