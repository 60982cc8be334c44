"""The compare screen."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from gpuwatch.analysis.comparison.side_by_side import compare
from gpuwatch.analysis.results import Difference, TableRow
from gpuwatch.core.metrics import Method
from gpuwatch.core.models import Environment, Workload
from gpuwatch.session.study import labels
from gpuwatch.session.study.plan import PLAN, Part, Plan, PlannedRun
from gpuwatch.session.study.plan_file import document
from gpuwatch.session.study.study_folder import sessions_in
from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.compare.cell_rows import column_of, sections
from gpuwatch.tui.compare.cell_rows import place_of as place_of_cells
from gpuwatch.tui.compare.columns import difference_rows, layout, quantity_rows
from gpuwatch.tui.compare.rows import body_rows, place_of
from gpuwatch.tui.compare.screen import CompareScreen
from gpuwatch.tui.compare.sections import Answer, against, answer
from gpuwatch.tui.compare.verdict_rows import _plot, verdict_rows
from gpuwatch.tui.feed.reading import Post
from gpuwatch.tui.home.screen import HomeScreen
from tests.analysis.sessions import CPU, GPU, OTHER_GPU, summary
from tests.report import results

from ..conftest import Fake, entry
from ..harness import live, running, screen_text, shows, until
from ..sessions import finished, plan

pytestmark = pytest.mark.usefixtures("every_size")

Make = Callable[..., Path]


def many(session: Make, count: int) -> list[Path]:
    """Sessions of one workload, each slower than the one before by a tenth of the first."""
    return [
        session(
            f"{n:02d}-env",
            environment=f"env{n}",
            pace=1 + n / 10,
            start=100 * n,
            meta=finished(),
            alive=False,
        )
        for n in range(count)
    ]


async def test_the_values_of_two_runs_stand_side_by_side_with_ratios_against_the_first(
    session: Make,
) -> None:
    async with running(lambda: CompareScreen(many(session, 2))) as (app, pilot):
        await shows(pilot, "step time, median")
        row = next(r for r in screen_text(app).splitlines() if "step time, median" in r)
        assert "5.12 ms" in row and "5.63 ms ×1.100" in row and "measured" in row


async def test_it_scrolls_to_maxima_differences_and_notes(session: Make) -> None:
    async with running(lambda: CompareScreen(many(session, 2))) as (app, pilot):
        await shows(pilot, "step time, median")
        await pilot.press("end")
        await shows(pilot, "what differs around the runs")
        await shows(pilot, "one run each: this describes the runs")
        assert "1 mnist-cnn" in screen_text(app), "the heading stays"
        await pilot.press("pageup")
        await shows(pilot, "── maximum")
        await pilot.press("home", "down", "up")
        await shows(pilot, "start-up and time")


async def test_sessions_that_do_not_fit_are_a_key_away(session: Make) -> None:
    async with running(lambda: CompareScreen(many(session, 5))) as (app, pilot):
        await shows(pilot, "←→ 3 more")
        assert " env1 " in heading(app) and "env4" not in heading(app)
        await pilot.press("right", "right", "right", "right")
        await until(pilot, lambda: "env4" in heading(app))
        assert "env0" in heading(app), "the first stays beside every other"
        await pilot.press("left")
        await until(pilot, lambda: "env4" not in heading(app))


def study(folder: Path) -> list[Path]:
    """A study of three environments in seven blocks and a warm-up block; returns its sessions."""
    folder.mkdir(exist_ok=True)
    plan = results.study_result(folder).plan
    assert plan is not None
    (folder / PLAN).write_text(json.dumps(document(plan)))
    return sessions_in(folder)


def heading(app: GpuwatchApp) -> str:
    """The row of the environments, above that of the states."""
    rows = screen_text(app).splitlines()
    return rows[next(at for at, row in enumerate(rows) if "✓ finished" in row) - 1] + " "


def row_of(text: str, name: str) -> str:
    return next(row for row in text.splitlines() if name in row)


async def test_c_keeps_the_order_of_the_study_and_shows_the_run_it_was_pressed_on(
    session: Make,
) -> None:
    paths = many(session, 4)
    async with live(paths[3]) as (app, pilot):
        await pilot.press("c")
        await shows(pilot, "ratios are against session 1")
        text = screen_text(app)
    assert "1 mnist-cnn" in text and "4 mnist-cnn" in text and "2 mnist-cnn" not in text
    assert "×1.300" in row_of(text, "step time, median")


async def test_ratios_are_against_the_first_run_that_did_not_fail(session: Make) -> None:
    paths = [
        session(meta=finished(1), alive=False),
        session("02", environment="docker=a", meta=finished(), alive=False),
        session("03", environment="docker=b", pace=1.1, meta=finished(), alive=False),
    ]
    async with running(lambda: CompareScreen(paths), (110, 30)) as (app, pilot):
        await shows(pilot, "ratios are against session 2 (1 failed)")
        assert row_of(screen_text(app), "step time, median").count("×") == 1
        assert "×1.100" in row_of(screen_text(app), "step time, median")


async def test_a_ratio_of_any_size_stands_apart_from_the_method(session: Make) -> None:
    for pace in (0.0603, 0.00131, 3000.0):
        paths = [
            session(f"1-{pace}", meta=finished(), alive=False),
            session(f"2-{pace}", pace=pace, seconds=95.0, meta=finished(), alive=False),
        ]
        async with running(lambda paths=paths: CompareScreen(paths)) as (app, pilot):
            await shows(pilot, "step time, median")
            rows = screen_text(app).splitlines()
        assert any("×" in row for row in rows)
        for row in (row for row in rows if "×" in row and "measured" in row):
            assert row.rpartition("×")[2].split()[-1] == "measured" and " measured" in row, row


async def test_names_use_the_room_there_is(session: Make) -> None:
    name = "docker=registry/team/image:24.01-py3"
    paths = [
        session(meta=finished(), alive=False),
        session("02", environment=name, meta=finished(), alive=False),
    ]
    async with running(lambda: CompareScreen(paths), (80, 24)) as (app, pilot):
        await shows(pilot, "docker=registry/tea…")
    async with running(lambda: CompareScreen(paths), (160, 50)) as (app, pilot):
        await shows(pilot, name)
        assert max(map(len, screen_text(app).splitlines())) <= 160


async def test_runs_of_the_study_that_did_not_take_place_are_told_with_the_reason(
    session: Make,
) -> None:
    path = session(meta=finished(), alive=False)
    missing = {"code": "image-missing", "text": "no [b]image[/] x", "hint": "docker pull x"}
    plan(path.parent, "01-bare", "02-docker=x", problems={"2": [missing]})
    async with live(path) as (app, pilot):
        await pilot.press("c")
        await shows(pilot, "did not run")
        text = screen_text(app)
    assert "✗ docker=x did not run: no [b]image[/] x" in text and "Fix: docker pull x" in text
    assert "5.12 ms" in text


async def test_unknown_values_are_dashes(session: Make) -> None:
    paths = [
        session(meta=finished(), alive=False),
        session("02", steps=False, kind="command", name="x", meta=finished(), alive=False),
    ]
    async with running(lambda: CompareScreen(paths)) as (app, pilot):
        await shows(pilot, "step time, median")
        row = next(r for r in screen_text(app).splitlines() if "step time, median" in r)
        assert "—" in row and "×" not in row


async def test_a_file_that_cannot_be_read_is_told(session: Make, tmp_path: Path) -> None:
    paths = [session(), tmp_path / "none.gpuwatch"]
    async with running(lambda: CompareScreen(paths)) as (_, pilot):
        await shows(pilot, "no such file")
        await pilot.press("question_mark")
        await shows(pilot, "kernels of the profiles")


def test_gpus_of_runs_that_are_not_shown_have_no_rows(tmp_path: Path) -> None:
    gauges = {("gpu0", "hw.gpu.power"): 600.0}
    two = {**gauges, ("gpu1", "hw.gpu.power"): 600.0}
    compared = compare(
        [
            summary(tmp_path / "a.gpuwatch", gauges=gauges),
            summary(tmp_path / "b.gpuwatch", gauges=gauges),
            summary(tmp_path / "c.gpuwatch", gauges=two, devices=(GPU, OTHER_GPU, CPU)),
        ]
    )
    beside = [
        "".join(text for text, _ in row.spans())
        for row in body_rows(compared, place_of(compared, 80, 0))
    ]
    other = [
        "".join(text for text, _ in row.spans())
        for row in body_rows(compared, place_of(compared, 80, 1))
    ]
    assert any("GPU power gpu0" in row for row in beside)
    assert not any("GPU power gpu1" in row for row in beside)
    assert any("GPU power gpu1" in row for row in other)
    assert not any("FLOP/…" in row or "FLOP…" in row for row in (*beside, *other))


async def test_the_verdict_stands_first_then_its_interval_then_medians(tmp_path: Path) -> None:
    paths = study(tmp_path)
    async with running(lambda: CompareScreen(paths), (120, 50)) as (app, pilot):
        await shows(pilot, "SLOWER")
        rows = screen_text(app).splitlines()
    assert not any("…" in row for row in rows), "long names have shorter words"
    order = ["= SAME: docker", "▲ SLOWER: apptainer", "├", "+1 %", "step time, steady"]
    places = [next(at for at, row in enumerate(rows) if word in row) for word in order]
    assert places == sorted(places)
    assert "7 runs" in "\n".join(rows), "the warm-up block is not in the medians"
    assert "×1.031" in row_of("\n".join(rows), "step time, steady"), "that of the verdict"


async def test_two_medians_of_one_run_have_two_names(session: Make) -> None:
    paths = many(session, 2)
    async with running(lambda: CompareScreen(paths)) as (app, pilot):
        await shows(pilot, "── steady step time of mnist-cnn")
        assert "step time, median" in screen_text(app)


async def test_sessions_that_were_given_names_are_called_by_them(session: Make) -> None:
    paths = many(session, 3)
    for path, name in zip(paths[1:], ("base", "low lr"), strict=True):
        labels.change(path.parent, path.name, partial(replace, name=name))
    async with running(lambda: CompareScreen(paths), (130, 30)) as (app, pilot):
        await shows(pilot, "low lr (env2): step time")
        await until(pilot, lambda: "base (env1)" in heading(app))
        assert "low lr (env2)" in heading(app) and heading(app).split()[0] == "env0"
        await pilot.press("h")
        await shows(pilot, "b 2 base (env1)")


async def test_what_the_columns_are_stays_while_their_rows_scroll(tmp_path: Path) -> None:
    paths = study(tmp_path)
    async with running(lambda: CompareScreen(paths)) as (app, pilot):
        await shows(pilot, "SLOWER")
        assert "judged runs" not in screen_text(app).splitlines()[1]
        while "── maximum" not in screen_text(app):
            await pilot.press("pagedown")
        rows = screen_text(app).splitlines()
        assert "bare" in rows[1] and "docker" in rows[1] and "judged runs" in rows[2]
        await pilot.press("right")
        await until(pilot, lambda: "apptainer" in screen_text(app).splitlines()[1])


async def test_a_study_is_compared_from_the_home_screen_without_marks(
    tmp_path: Path, fake: Fake
) -> None:
    paths = study(tmp_path / "study")
    fake.list(*(entry(path) for path in paths))
    async with running(HomeScreen) as (_, pilot):
        await shows(pilot, "mnist-cnn")
        await pilot.press("c")
        await shows(pilot, "SLOWER")


async def test_marked_in_another_order_the_first_mark_is_the_baseline(session: Make) -> None:
    paths = many(session, 2)
    async with running(lambda: CompareScreen(paths[::-1])) as (app, pilot):
        await shows(pilot, "×0.909")
        assert "1 mnist-cnn" in screen_text(app) and "env1" in heading(app).split()[0]


async def test_marks_of_one_study_in_blocks_keep_its_baseline_and_ratios_are_against_it(
    session: Make,
) -> None:
    names = ["01-docker", "02-bare", "03-bare", "04-docker"]
    planned = in_blocks(names, ("bare", "docker"))
    docker, bare = [session(n, environment=n[3:], meta=finished(), alive=False) for n in names[:2]]
    (docker.parent / PLAN).write_text(json.dumps(document(planned)))
    async with running(lambda: CompareScreen([docker, bare])) as (app, pilot):
        await shows(pilot, "against bare")
        assert "ratios are against session 1" in screen_text(app)
        assert heading(app).split()[:2] == ["bare", "docker"]


async def test_a_stopped_first_mark_is_no_baseline_and_that_is_said(session: Make) -> None:
    paths = [
        session("01", environment="a", meta=finished(stopped="stop"), alive=False),
        session("02", environment="b", meta=finished(), alive=False),
        session("03", environment="c", pace=1.1, meta=finished(), alive=False),
    ]
    async with running(lambda: CompareScreen(paths), (110, 60)) as (app, pilot):
        await shows(pilot, "against b")
        assert heading(app).split()[0] == "b"
        await pilot.press("end")
        await shows(pilot, "a gave no value: the others are compared with b")


async def test_of_a_study_that_goes_on_the_screen_says_as_of_which_run_and_counts_those_over(
    session: Make,
) -> None:
    names = [f"{at:02d}-{'bare' if at % 2 else 'docker'}" for at in range(1, 9)]
    for name in names[:4]:
        session(name, environment=name[3:], meta=finished())
    path = session(names[4])
    (path.parent / PLAN).write_text(json.dumps(document(in_blocks(names))))
    async with running(lambda: CompareScreen(sessions_in(path.parent)), (80, 40)) as (app, pilot):
        await shows(pilot, "as of run 4 of 8: medians against bare")
        row = row_of(screen_text(app), "judged runs")
    assert "2 runs, 1 goes on" in row


async def test_of_a_study_that_is_over_nothing_is_said_of_when(tmp_path: Path) -> None:
    async with running(lambda: CompareScreen(study(tmp_path))) as (app, pilot):
        await shows(pilot, "medians against bare")
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


def test_medians_stand_against_the_cell_that_the_verdicts_are_against(tmp_path: Path) -> None:
    result = results.study_result(tmp_path)
    (question,) = result.questions
    moved = replace(
        question, contrasts=tuple(replace(each, baseline=1, other=0) for each in question.contrasts)
    )
    result = replace(result, questions=(moved,))
    assert place_of_cells(moved, 80, 0).order == (0, 1)
    assert place_of_cells(moved, 80, 1).order == (1, 2), "the baseline stays in sight"
    last = question.cells[2].runs[0].session.path
    assert column_of(result, last) == 1
    title = against(answer(result, None))
    assert title.endswith(f"medians against {question.cells[1].label}")


def test_what_differs_by_design_stands_below_its_verdict(tmp_path: Path) -> None:
    result = results.study_result(tmp_path)
    (question,) = result.questions
    chosen = tuple(replace(c, by_design=("command: a against b",)) for c in question.contrasts)
    result = replace(result, questions=(replace(question, contrasts=chosen),))
    text = ["".join(text for text, _ in row.spans()).strip() for row in verdict_rows(result, 100)]
    assert text.count("· differs by design: command: a against b") == len(chosen) > 0


def test_text_from_outside_is_harmless_in_every_row(tmp_path: Path) -> None:
    result = results.study_result(tmp_path, hostile=results.HOSTILE, blocks=2)
    rows = verdict_rows(result, 100)
    rows += [line for each in sections(result, 100, 0) for line in (*each.heading, *each.body)]
    text = "".join(text for row in rows for text, _ in row.spans())
    assert "\x1b" not in text and "\u202e" not in text and "<script>" in text
    assert max(row.used for row in rows) <= 100


async def test_names_states_and_first_medians_stand_before_the_verdict_and_keys_work_meanwhile(
    session: Make,
) -> None:
    go_on = threading.Event()

    class Held(CompareScreen):
        def _answer(self, post: Post) -> Answer:
            go_on.wait(60)
            return super()._answer(post)

    paths = [*many(session, 2), session("03", meta=finished(1), alive=False)]
    async with running(lambda: Held(paths)) as (app, pilot):
        await shows(pilot, "✗ failed")
        text = screen_text(app)
        assert "reading the steps and samples of session 1 of 3" in text
        assert "✓ finished" in row_of(text, "env1") and "ms" in row_of(text, "env1")
        await pilot.press("h")
        await shows(pilot, "b 2 env1")
        await pilot.press("escape", "k")
        await shows(pilot, "env1 against 1 env0")
        await pilot.press("escape")
        go_on.set()
        await shows(pilot, "ratios are against session 1")


async def test_leaving_a_comparison_that_is_not_done_ends_it(session: Make) -> None:
    go_on = threading.Event()
    started: list[CompareScreen] = []

    class Held(CompareScreen):
        def _answer(self, post: Post) -> Answer:
            started.append(self)
            go_on.wait(60)
            return super()._answer(post)

    async with running(lambda: Held(many(session, 2))) as (_, pilot):
        await until(pilot, lambda: bool(started))
        await pilot.press("q")
        go_on.set()
    started[0]._reading._thread.join(60)
    assert not started[0]._reading._thread.is_alive() and started[0].result is None


async def test_two_workloads_have_no_verdict_and_why_stands_first(session: Make) -> None:
    paths = [
        session(meta=finished(), alive=False),
        session("02", name="vit", meta=finished(), alive=False),
    ]
    async with running(lambda: CompareScreen(paths)) as (app, pilot):
        await shows(pilot, "nothing to compare: mnist-cnn, vit are different workloads")
        assert "nothing to compare" in screen_text(app).splitlines()[1]


def test_an_interval_says_which_side_is_slower(tmp_path: Path) -> None:
    (question,) = results.study_result(tmp_path).questions
    text = ["".join(t for t, _ in row.spans()) for row in _plot(question, 80)]
    zero = text[1].index("│")
    assert text[0].index("faster") < zero < text[0].index("slower")
    assert text[2].index("●") > zero and text[2].index("├") < text[2].index("┤")
    roles = {role for text, role in list(_plot(question, 80))[2].spans() if "●" in text}
    assert roles == {"bad"}


def test_a_bound_has_its_direction() -> None:
    heads = [[("bare", "text")], [("docker", "text")], [("conda", "text")]]
    row = TableRow(
        *("work per step", "device traffic", "By"),
        values=(1.5e9, 1.6e9, None),
        lows=(None,) * 3,
        highs=(None,) * 3,
        methods=(Method.BOUND, Method.BOUND, Method.UNAVAILABLE),
        ratios=(None,) * 3,
        is_traffic=True,
        bounds=("at most", "at least", None),
    )
    (_, line) = quantity_rows([row], layout(heads, 0, 120, 0))
    text = "".join(text for text, _ in line.spans())
    assert "≤1.50 GB" in text and "≥1.60 GB" in text and "≥—" not in text


def test_differences_stand_whole_behind_whose_they_are() -> None:
    heads = [[("bare", "text")], [("docker", "text")], [("conda", "text")]]
    path = "/usr/local/nvidia/lib:" * 6
    differences = [
        Difference("workload", "torch", ("2.6.0", "2.7.1", "2.7.1")),
        Difference("process", "LD_LIBRARY_PATH", (None, path, path)),
    ]
    place = layout(heads, 0, 100, 0)
    rows = difference_rows(differences, place, ["bare", "docker", "conda"])
    text = ["".join(text for text, _ in row.spans()) for row in rows]
    assert text[1].split() == ["workload:", "torch", "2.6.0", "2.7.1", "2.7.1"]
    assert text[2].strip() == "LD_LIBRARY_PATH"
    assert text[3].split() == ["bare", "—"]
    assert text[4].startswith("   docker, conda  /usr/local")
    assert "".join("".join(text[4:]).split()).count("/usr/local/nvidia/lib:") == 6
    assert max(map(len, text)) <= 100
