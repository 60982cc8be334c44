"""The compare screen."""

from __future__ import annotations

import json
import math
import re
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.analysis.results import StudyResult
from gpuwatch.analysis.study.read import read_study
from gpuwatch.core.models import Environment, Workload
from gpuwatch.session.study import labels
from gpuwatch.session.study.plan import PLAN, Part, Plan, PlannedRun
from gpuwatch.session.study.plan_file import document
from gpuwatch.session.study.study_folder import sessions_in
from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.compare.answer import answer, column_of, sections
from gpuwatch.tui.compare.screen import CompareScreen
from gpuwatch.tui.feed.posting import Post
from gpuwatch.tui.home.screen import HomeScreen
from gpuwatch.tui.widgets.line import Line
from tests.analysis.recorded_studies import BARE, DOCKER, blocks_of, recorded
from tests.report import results

from ..conftest import Fake, entry
from ..harness import live, running, screen_text, shows, until
from ..sessions import finished, plan
from ..snapshots_of import texts

pytestmark = pytest.mark.usefixtures("every_size")

Make = Callable[..., Path]

whole = partial(CompareScreen, whole=True)
"""The screen after ``a``: with all figures."""


OVER: dict[str, Any] = {"meta": finished(), "alive": False}


def many(session: Make, count: int) -> list[Path]:
    """Sessions of one workload, each slower than the one before by a tenth of the first."""
    return [
        session(f"{n:02d}-env{n}", environment=f"env{n}", pace=1 + n / 10, start=100 * n, **OVER)
        for n in range(count)
    ]


async def test_the_values_of_two_runs_stand_side_by_side_with_ratios_against_the_first(
    session: Make,
) -> None:
    async with running(lambda: whole(many(session, 2))) as (app, pilot):
        await shows(pilot, "step time, median")
        row = row_of(screen_text(app), "step time, median")
        assert "5.12 ms" in row and "5.63 ms +10.0 %" in row and "measured" in row


async def test_only_what_differs_is_shown_the_largest_change_first_and_a_shows_all(
    session: Make,
) -> None:
    async with running(lambda: CompareScreen(many(session, 2)), (100, 60)) as (app, pilot):
        await shows(pilot, "what differs")
        rows = screen_text(app).split("what differs")[1].splitlines()
        assert "step time, steady mean" in rows[2], "judged, so first"
        del rows[2]
        found = [re.search(r"(?:×([\d.]+)|([+-][\d.]+) %)  ", row) for row in rows]
        ratios = [float(f[1]) if f[1] else 1 + float(f[2]) / 100 for f in found if f]
        assert len(ratios) > 2
        sizes = [abs(math.log(ratio)) for ratio in ratios]
        rounded = [round(size, 2) for size in sizes]
        assert rounded == sorted(rounded, reverse=True) and sizes[-1] > 0.009
        assert "a: all figures" in screen_text(app) and "GPU temperature" not in screen_text(app)
        await pilot.press("a", shows="start-up and time")
        await shows(pilot, " a less ")
        await pilot.press("a", shows="what differs")
        await shows(pilot, " a all ")


async def test_a_stays_where_the_reader_is(session: Make) -> None:
    async with running(lambda: CompareScreen(many(session, 2)), (80, 24)) as (app, pilot):
        await shows(pilot, "what differs")
        await pilot.press("pagedown", hides=" 1 to ")
        (first,) = re.findall(r" (\d+) to \d+ of ", screen_text(app))
        await pilot.press("a", shows=" a less ")
        await shows(pilot, f" {first} to ")
        await pilot.press("end")
        await until(pilot, lambda: f" {first} to " not in screen_text(app))
        (last,) = re.findall(r" (\d+) to \d+ of ", screen_text(app))
        await pilot.press("a")
        await shows(pilot, f" {first} to ")
        await pilot.press("a")
        await shows(pilot, f" {last} to ")


async def test_it_scrolls_to_maxima_differences_and_notes(session: Make) -> None:
    async with running(lambda: whole(many(session, 2))) as (app, pilot):
        await shows(pilot, "step time, median")
        await pilot.press("end", shows="one run each: this describes the runs")
        while "maximum:" not in screen_text(app):
            await pilot.press("pageup")
        assert screen_text(app).splitlines()[1].split() == ["env0", "env1", "method"], "it stays"
        await pilot.press("home", "down", "up", shows="start-up and time")


async def test_sessions_that_do_not_fit_are_a_key_away(session: Make) -> None:
    async with running(lambda: whole(many(session, 5))) as (app, pilot):
        await shows(pilot, "←→ 2 more")
        assert heading(app) == ["env0", "env1", "env2", "method"]
        await pilot.press("right", "right", "right", "right")
        await until(pilot, lambda: heading(app) == ["env0", "env3", "env4", "method"])
        await pilot.press("left")
        await until(pilot, lambda: heading(app) == ["env0", "env2", "env3", "method"])


def study(folder: Path) -> list[Path]:
    """A study of three environments in seven blocks and a warm-up block; returns its sessions."""
    folder.mkdir(exist_ok=True)
    plan = results.study_result(folder).plan
    assert plan is not None
    (folder / PLAN).write_text(json.dumps(document(plan)))
    return sessions_in(folder)


def heading(app: GpuwatchApp) -> list[str]:
    """The names of the columns."""
    rows = screen_text(app).splitlines()
    return next(row for row in rows if row.endswith("method")).split()


def row_of(text: str, name: str) -> str:
    return next(row for row in text.splitlines() if name in row)


async def test_c_keeps_the_order_of_the_study_and_shows_the_run_it_was_pressed_on(
    session: Make,
) -> None:
    paths = many(session, 4)
    plan(paths[0].parent, *(path.stem for path in paths))
    async with live(paths[3]) as (app, pilot):
        await pilot.press("c", shows="NO VERDICT")
        await pilot.press("a", shows="step time, median")
        assert heading(app) == ["env0", "env2", "env3", "method"]
        assert "6.65 ms" in row_of(screen_text(app), "step time, median")


async def test_ratios_are_against_the_first_run_that_did_not_fail(session: Make) -> None:
    second = session("02", environment="docker=a", **OVER)
    third = session("03", environment="docker=b", pace=1.1, **OVER)
    paths = [session(meta=finished(1), alive=False), second, third]
    async with running(lambda: whole(paths), (110, 30)) as (app, pilot):
        await shows(pilot, "bare: exit code 1")
        await shows(pilot, "docker=b against docker=a")
        assert row_of(screen_text(app), "step time, median").count(" %") == 1
        assert "+10.0 %" in row_of(screen_text(app), "step time, median")


async def test_a_ratio_of_any_size_stands_apart_from_the_method(session: Make) -> None:
    for pace in (0.0603, 0.00131, 3000.0):
        other = session(f"2-{pace}", pace=pace, seconds=95.0, **OVER)
        paths = [session(f"1-{pace}", **OVER), other]
        async with running(lambda paths=paths: whole(paths)) as (app, pilot):
            await shows(pilot, "step time, median")
            words = screen_text(app).split()
        assert any(word.startswith("×") for word in words) and "measured" in words


async def test_long_names_are_letters_with_a_legend_above(session: Make) -> None:
    name = "docker=registry/team/image:24.01-py3"
    paths = [session(**OVER), session("02", environment=name, **OVER)]
    async with running(lambda: whole(paths)) as (app, pilot):
        await shows(pilot, f"B  mnist-cnn, 02, {name}")
        first = screen_text(app).splitlines()[1].split()
        assert first[:3] == ["A", "mnist-cnn,", "01-bare,"] and first[-1] == "(baseline)"
        assert heading(app) == ["A", "B", "method"]


async def test_runs_of_the_study_that_did_not_take_place_are_told_with_the_reason(
    session: Make,
) -> None:
    path = session(meta=finished(), alive=False)
    missing = {"code": "image-missing", "text": "no [b]image[/] x", "hint": "docker pull x"}
    plan(path.parent, "01-bare", "02-docker=x", problems={"2": [missing]})
    async with live(path) as (app, pilot):
        await pilot.press("c", shows="did not run")
        text = screen_text(app)
    assert "docker=x did not run: no [b]image[/] x" in text and "Fix: docker pull x" in text
    assert "5.12 ms" in text


async def test_unknown_values_are_dashes(session: Make) -> None:
    paths = [session(**OVER), session("02", steps=False, kind="command", name="x", **OVER)]
    async with running(lambda: whole(paths), (80, 60)) as (app, pilot):
        await shows(pilot, "step time, median")
        row = row_of(screen_text(app), "step time, median")
        assert "—" in row and "%" not in row


async def test_a_file_that_cannot_be_read_is_told(session: Make, tmp_path: Path) -> None:
    paths = [session(), tmp_path / "none.gpuwatch"]
    async with running(lambda: whole(paths)) as (_, pilot):
        await shows(pilot, "no such file")
        await pilot.press("question_mark", shows="kernels of the profiles")


async def test_the_verdict_stands_first_then_its_interval_then_medians(tmp_path: Path) -> None:
    paths = study(tmp_path)
    async with running(lambda: whole(paths), (120, 50)) as (app, pilot):
        await shows(pilot, "SLOWER")
        rows = screen_text(app).splitlines()
    order = ["= SAME    docker", "▲ SLOWER  apptainer", "├", "+1 %", "step time, typical"]
    places = [next(at for at, row in enumerate(rows) if word in row) for word in order]
    assert places == sorted(places) and places[0] == 1
    judged = row_of("\n".join(rows), "judged runs").split()
    assert judged == ["judged", "runs", "7", "7", "7"], "the warm-up block is not in the medians"
    assert "+3.1 %" in row_of("\n".join(rows), "step time, typical"), "that of the verdict"


async def test_sessions_that_were_given_names_are_called_by_them(session: Make) -> None:
    paths = many(session, 3)
    for path, name in zip(paths[1:], ("base", "low lr"), strict=True):
        labels.change(path.parent, path.name, partial(replace, name=name))
    async with running(lambda: whole(paths), (130, 30)) as (app, pilot):
        await shows(pilot, "low lr (env2): typical step")
        assert heading(app) == ["A", "B", "C", "method"]
        await pilot.press("h", shows="B base (env1), mnist-cnn")


async def test_what_the_columns_are_stays_while_their_rows_scroll(tmp_path: Path) -> None:
    paths = study(tmp_path)
    async with running(lambda: whole(paths), (60, 24)) as (app, pilot):
        await shows(pilot, "SLOWER")
        while "maximum:" not in screen_text(app):
            await pilot.press("pagedown")
        assert screen_text(app).splitlines()[1].split() == ["bare", "docker"]
        await pilot.press("right")
        await until(pilot, lambda: "apptainer" in screen_text(app).splitlines()[1])


async def test_a_study_is_compared_from_the_home_screen_without_marks(
    tmp_path: Path, fake: Fake
) -> None:
    paths = study(tmp_path / "study")
    fake.list(*(entry(path) for path in paths))
    async with running(HomeScreen) as (_, pilot):
        await shows(pilot, "mnist-cnn")
        await pilot.press("c", shows="SLOWER")


async def test_marked_in_another_order_the_first_mark_is_the_baseline(session: Make) -> None:
    paths = many(session, 2)
    async with running(lambda: whole(paths[::-1])) as (app, pilot):
        await shows(pilot, "-9.1 %")
        assert heading(app)[0] == "env1"


async def test_marks_of_one_study_in_blocks_keep_its_baseline_and_ratios_are_against_it(
    session: Make,
) -> None:
    names = ["01-docker", "02-bare", "03-bare", "04-docker"]
    planned = in_blocks(names, ("bare", "docker"))
    docker, bare = [session(n, environment=n[3:], meta=finished(), alive=False) for n in names[:2]]
    (docker.parent / PLAN).write_text(json.dumps(document(planned)))
    async with running(lambda: whole([docker, bare])) as (_, pilot):
        await shows(pilot, "against bare")
        await shows(pilot, "docker against bare")
        await shows(pilot, "judged runs")


async def test_a_stopped_first_mark_is_no_baseline_and_that_is_said(session: Make) -> None:
    stopped = finished(stopped="stop")
    paths = [
        session("01", environment="a", steps=False, meta=stopped, alive=False),
        session("02", environment="b", **OVER),
        session("03", environment="c", pace=1.1, **OVER),
    ]
    async with running(lambda: whole(paths), (110, 60)) as (_, pilot):
        await shows(pilot, "c against b")
        await pilot.press("end", shows="was reported): b is the baseline")


async def test_of_a_study_that_goes_on_the_screen_says_as_of_which_run_and_counts_those_over(
    session: Make,
) -> None:
    names = [f"{at:02d}-{'bare' if at % 2 else 'docker'}" for at in range(1, 9)]
    for name in names[:4]:
        session(name, environment=name[3:], meta=finished())
    path = session(names[4])
    (path.parent / PLAN).write_text(json.dumps(document(in_blocks(names))))
    async with running(lambda: whole(sessions_in(path.parent)), (80, 40)) as (app, pilot):
        await shows(pilot, "as of run 4 of 8: docker against bare")
        await shows(pilot, "1 going on")
        assert row_of(screen_text(app), "judged runs").split()[2:4] == ["2", "2"]


async def test_of_a_study_that_is_over_nothing_is_said_of_when(tmp_path: Path) -> None:
    async with running(lambda: whole(study(tmp_path))) as (app, pilot):
        await shows(pilot, "docker and apptainer against bare")
        assert "as of run" not in screen_text(app)


def in_blocks(names: list[str], order: tuple[str, ...] = ()) -> Plan:
    """A plan of runs in two environments, two runs to a block."""
    workload = Workload("mnist-cnn", "workload")
    environments = {each: Environment(each, each) for each in [*order, *(n[3:] for n in names)]}
    part = Part("p", (workload,), tuple(environments.values()), blocks=len(names) // 2)
    runs = tuple(
        PlannedRun(at, f"{name}.gpuwatch", workload, environments[name[3:]], block=(at + 1) // 2)
        for at, name in enumerate(names, 1)
    )
    return Plan("study", (part,), runs)


async def test_how_far_the_reading_is_stands_before_the_verdict_and_other_pages_wait_for_it(
    session: Make,
) -> None:
    go_on = threading.Event()

    class Held(CompareScreen):
        def _compare(self, post: Post) -> None:
            go_on.wait(60)
            super()._compare(post)

    async with running(lambda: Held(many(session, 2))) as (_, pilot):
        await shows(pilot, "reading session 1 of 2 …")
        for key in ("h", "k"):
            await pilot.press(key, shows="the sessions are still being read")
        go_on.set()
        await shows(pilot, "NO VERDICT")


async def test_leaving_a_comparison_that_is_not_done_ends_it(session: Make) -> None:
    go_on = threading.Event()
    started: list[CompareScreen] = []

    class Held(CompareScreen):
        def _compare(self, post: Post) -> None:
            started.append(self)
            go_on.wait(60)
            super()._compare(post)

    async with running(lambda: Held(many(session, 2))) as (_, pilot):
        await until(pilot, lambda: bool(started))
        await pilot.press("q")
        go_on.set()
    for thread in threading.enumerate():
        if thread.name == "compare":
            thread.join(60)
            assert not thread.is_alive()
    assert started[0].result is None


async def test_two_workloads_have_no_verdict_and_why_stands_first(session: Make) -> None:
    paths = [session(**OVER), session("02", name="vit", **OVER)]
    async with running(lambda: whole(paths)) as (app, pilot):
        await shows(pilot, "INVALID: different workloads: mnist-cnn, vit")
        assert "INVALID" in screen_text(app).splitlines()[1]


async def test_of_two_programs_the_key_that_compares_them_is_told_and_shown(session: Make) -> None:
    paths = [
        session(at, name=name, kind="command", meta=finished(), alive=False)
        for at, name in (("01", "a.py"), ("02", "b.py"))
    ]
    async with running(lambda: CompareScreen(paths)) as (app, pilot):
        await shows(pilot, "x across")
        told = " ".join(screen_text(app).split())
        assert "INVALID: different commands: a.py, b.py (x compares them)" in told
        await pilot.press("x", shows="NO VERDICT")


def rows(result: StudyResult, width: int, column: int = 0) -> list[Line]:
    """All rows of the screen."""
    shown = sections(answer(result, None).whole, width, column)
    return [line for section in shown for line in (*section.heading, *section.body)]


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_text_from_outside_is_harmless_and_no_row_is_wider_than_the_screen(
    tmp_path: Path, width: int
) -> None:
    shown = rows(results.study_result(tmp_path, hostile=results.HOSTILE, blocks=2), width)
    text = "".join(texts(shown))
    assert "\x1b" not in text and "\u202e" not in text and "<script>" in text
    assert max(row.used for row in shown) <= width


def test_an_interval_says_which_side_is_slower(tmp_path: Path) -> None:
    shown = rows(results.study_result(tmp_path), 80)
    at, sides = next((n, text) for n, text in enumerate(texts(shown)) if "▸ slower" in text)
    apptainer = texts(shown)[at + 2]
    zero = apptainer.index("│")
    assert sides.index("faster") < zero < sides.index("slower")
    assert apptainer.index("●") > zero and apptainer.index("├") < apptainer.index("┤")
    assert {role for text, role in shown[at + 2].spans() if "●" in text} == {"bad"}


def test_a_verdict_has_its_mark_and_colour_and_what_is_worse_its_own(tmp_path: Path) -> None:
    recorded(tmp_path, [blocks_of(5, BARE, DOCKER)], {BARE.label: 1.0, DOCKER.label: 1.1})
    shown = [row.spans() for row in rows(read_study(tmp_path), 120)]
    assert next(role for row in shown for text, role in row if "▲ SLOWER" in text) == "bad"
    by_name = {"".join(text for text, _ in row).strip()[:18]: row for row in shown}
    assert by_name["step time, typical"][-1][1] == "strong"
    assert by_name["timed steps (c)   "][-1][1] == "text"
    brief = sections(answer(read_study(tmp_path), None).brief, 120, 0)
    shown = [row.spans() for section in brief for row in section.body]
    by_name = {"".join(text for text, _ in row).strip()[:18]: row for row in shown}
    text, role = by_name["step time, typical"][-1]
    assert (text.strip(), role) == ("552 ms +10.0 % worse (+9.8 to +10.2)", "bad")
    assert by_name["algorithmic bytes/"][-1][1] == "strong"


def test_the_baseline_of_the_verdicts_stays_beside_the_run_that_was_asked_for(
    tmp_path: Path,
) -> None:
    result = results.study_result(tmp_path)
    (question,) = result.questions
    turned = tuple(replace(each, baseline=1, other=0) for each in question.contrasts)
    moved = replace(question, contrasts=turned)
    found = answer(replace(result, questions=(moved,)), None)
    last = question.cells[2].runs[0].session.path
    column = column_of(found, last)
    assert column == 1
    shown = sections(found.whole, 62, column)
    headings = [texts(list(each.heading)) for each in shown if each.left_out == (1, 0)]
    assert ["docker", "apptainer"] in [" ".join(each).split() for each in headings]


async def test_x_judges_across_commands_where_that_is_why_there_is_no_verdict(
    session: Make,
) -> None:
    def of(steps: str) -> Path:
        program = {"name": "train.py", "kind": "command", "parameters": {}}
        workload = {**program, "arguments": ["train.py", steps]}
        launch = {"t": 0, "command": ["python3", "train.py", steps]}
        meta = {**finished(), "workload": workload, "launch": launch}
        return session(f"0{steps}", kind="command", meta=meta, alive=False)

    paths = [of("1"), of("2")]
    async with running(lambda: CompareScreen(paths)) as (app, pilot):
        await shows(pilot, "different command")
        assert "(x compares them)" in " ".join(screen_text(app).split())
        await pilot.press("x", shows="NO VERDICT")
        assert "different command" not in screen_text(app)
        await pilot.press("x", shows="different command")
    async with running(lambda: CompareScreen(many(session, 2))) as (app, pilot):
        await shows(pilot, "env1")
        assert "across" not in screen_text(app), "only where it changes something"
