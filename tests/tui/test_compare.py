"""The compare screen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gpuwatch.tui.compare import CompareScreen

from .harness import running, screen_text, shows, until
from .sessions import finished

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
        await shows(pilot, "other sessions beside the first")
