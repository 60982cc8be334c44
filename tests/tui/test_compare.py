"""The compare screen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gpuwatch.analysis.compare import compare
from gpuwatch.tui.compare import CompareScreen
from gpuwatch.tui.compare_rows import body_rows, layout
from tests.analysis.sessions import CPU, GPU, OTHER_GPU, summary

from .harness import live, running, screen_text, shows, until
from .sessions import finished, plan

Make = Callable[..., Path]


def many(session: Make, count: int) -> list[Path]:
    """Sessions of one workload, each a tenth slower than the one before."""
    return [
        session(
            f"{n:02d}-env", environment=f"env{n}", pace=1 + n / 10, meta=finished(), alive=False
        )
        for n in range(count)
    ]


async def test_medians_stand_side_by_side_with_ratios_against_the_first(session: Make) -> None:
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
        assert "env1" in screen_text(app) and "env4" not in screen_text(app)
        await pilot.press("right", "right", "right", "right")
        await shows(pilot, "env4")
        assert "env0" in screen_text(app), "the first stays beside every other"
        await pilot.press("left")
        await until(pilot, lambda: "env4" not in screen_text(app))


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
        await shows(pilot, "ratios are against session 2")
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
    missing = {"code": "image-missing", "text": "no [b]image[/] x", "fix": "docker pull x"}
    plan(path.parent, "01-bare", "02-docker=x", problems={"2": [missing]})
    async with live(path) as (app, pilot):
        await pilot.press("c")
        await shows(pilot, "did not run")
        text = screen_text(app)
    assert "✗ docker=x did not run: no [b]image[/] x; docker pull x" in text
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
        await shows(pilot, "other sessions beside the baseline")


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
        for row in body_rows(compared, layout(compared, 80, 0), ())
    ]
    other = [
        "".join(text for text, _ in row.spans())
        for row in body_rows(compared, layout(compared, 80, 1), ())
    ]
    assert any("GPU power gpu0" in row for row in beside)
    assert not any("GPU power gpu1" in row for row in beside)
    assert any("GPU power gpu1" in row for row in other)
    assert not any("FLOP/…" in row or "FLOP…" in row for row in (*beside, *other))
