"""The roofline of a live run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.core.units import NS
from gpuwatch.tui.feed.snapshot import View
from gpuwatch.tui.live.rows import bound_rows
from gpuwatch.tui.live.screen import LiveScreen

from ..harness import live, screen_text, shows, until
from ..sessions import finished
from ..snapshots_of import page_text, roofline_text, snapshot_of, texts
from .test_ceilings import measured

Make = Callable[..., Path]


async def test_o_shows_the_last_minute_and_all_timed_steps_under_named_roofs(session: Make) -> None:
    path = session(bandwidth_measured=True, meta=measured())
    async with live(path) as (app, pilot):
        await pilot.press("o", shows="● last minute")
        text = screen_text(app)
        assert "305 TFLOP/s  counted; 71 % of the roof there" in text
        assert "◇ timed steps" in text and "297 TFLOP/s" in text
        assert "2.90 TB/s measured copy" in text and "430T fp32 measured" in text
        assert "= compute-bound: 71 % of the measured float32 product" in text
        assert "calibrate" not in text
        assert text.count("●") == 2, "in the legend and in the plane"
        await pilot.press("o", shows="GPU utilization")


def test_without_ceilings_it_says_what_is_missing_and_what_mends_it(session: Make) -> None:
    shown = roofline_text(session())
    assert "cannot tell what bounds the run" in shown
    assert "gpuwatch calibrate" in shown


def test_a_run_that_is_not_counted_has_the_reason_in_place_of_a_point(session: Make) -> None:
    shown = roofline_text(session(count=False, known_card=True))
    assert "no FLOP/s are known" in shown
    assert "3.35 TB/s data-sheet peak" in shown


def test_a_run_that_the_pipes_bound_is_at_most_at_its_triangles(session: Make) -> None:
    given = {"count": False, "known_card": True, "pipes": True, "bandwidth_measured": True}
    shown = roofline_text(session(**given), (120, 40))
    assert " ▼ last minute  ≤" in shown and " ▽ timed steps  ≤" in shown
    assert "; ≤" in shown and "●" not in shown and "◇" not in shown


def test_a_run_that_is_over_has_its_timed_steps_alone(session: Make) -> None:
    path = session(known_card=True, meta=finished(), alive=False)
    shown = roofline_text(path)
    assert "◇ timed steps" in shown
    assert "last minute" not in shown


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=str)
def test_what_bounds_a_run_is_said_while_it_goes_on_where_there_is_room_and_when_it_is_over(
    session: Make, size: tuple[int, int]
) -> None:
    given = {"bandwidth_measured": True}
    over = session(**given, meta=measured() | finished(), alive=False)
    assert " = compute-bound" in page_text(over, size)
    shown = page_text(session("02", **given, meta=measured()), size)
    assert (" = in the last minute compute-bound" in shown) == (size[1] > 24)
    then = snapshot_of(over, View(at=40 * NS, playing=True))
    assert then.bound.startswith("so far compute-bound"), "of an earlier moment, too"


def test_of_a_run_that_is_over_it_is_said_why_nothing_is_known_to_bound_it(session: Make) -> None:
    given = {"count": False, "known_card": True}
    rows = page_text(session(**given, meta=finished(), alive=False), (80, 24)).splitlines()
    (row,) = [row for row in rows if row.startswith(" = ")]
    assert row.startswith(" = cannot tell: no FLOP/s are known")
    assert " = cannot" not in page_text(session("02", **given), (120, 40))


def test_a_verdict_that_does_not_fit_keeps_the_clauses_that_do() -> None:
    """And tells the key that shows the rest, where that fits as well."""
    whole = "launch- or host-bound: 89 % of the time no kernel ran; 5 % of it was the data loader's"
    told = [texts(bound_rows(whole, width, 1))[0] for width in (100, 80, 60, 40)]
    clauses, first = " = launch- or host-bound: 89 % of the time no kernel ran", whole.split(":")[0]
    assert told == [f" = {whole}", f"{clauses}  o shows why", clauses, f" = {first}  o shows why"]


async def test_it_is_computed_only_while_it_is_looked_at(session: Make) -> None:
    async with live(session()) as (app, pilot):
        screen = app.screen
        assert isinstance(screen, LiveScreen) and screen.snapshot is not None
        assert screen.snapshot.roofline is None
        await pilot.press("o")
        await until(pilot, lambda: screen.snapshot is not None and bool(screen.snapshot.roofline))
        await pilot.press("escape")
        await until(pilot, lambda: screen.snapshot is not None and not screen.snapshot.roofline)
        assert app.screen is screen


async def test_its_footer_has_no_key_of_the_gauges_and_it_says_what_a_key_did(
    session: Make,
) -> None:
    async with live(session(), (160, 50)) as (app, pilot):
        assert "z zoom" in screen_text(app) and "m metric" in screen_text(app)
        await pilot.press("o", shows="● last minute", hides="z zoom")
        assert "m metric" not in screen_text(app) and "l log" in screen_text(app)
        await pilot.press("left_square_bracket", shows="» the session has no events")


async def test_it_moves_on_while_the_run_does_and_is_held_by_space(session: Make) -> None:
    async with live(session()) as (_, pilot):
        await pilot.press("o", "space", shows="paused, Space goes on")
        await shows(pilot, "● last minute")
        await pilot.press("space", hides="paused, Space goes on")


def test_what_a_cpu_run_reached_is_held_against_measured_ceilings(session: Make) -> None:
    cpu = {
        "device": {"kind": "cpu", "uuid": None, "name": "AMD EPYC 9654"},
        "ceilings": {"bandwidth": {"value": 4e12}, "float32": {"value": 1e15}},
    }
    shown = roofline_text(session(gpus=0, meta={"ceilings": cpu}))
    assert "4.00 TB/s measured copy" in shown
    assert "host-bound: the program's processes used 11 %" in shown


ODD: list[dict[str, Any]] = [
    {"count": {"flop_per_step": 1e300, "bytes_per_step": 1e-300}},
    {"count": {"flop_per_step": 1e-300, "bytes_per_step": 1e300}},
    {"count": {"flop_per_step": 0, "bytes_per_step": 0}},
    {"counters": {"flop_per_step": 1e12, "dram_read_bytes_per_step": "x"}},
]


@pytest.mark.parametrize("steps", [True, False])
def test_what_the_pipes_did_at_most_is_the_point_of_a_run_that_is_not_counted(
    session: Make, steps: bool
) -> None:
    options = {"count": False, "known_card": True, "pipes": True, "bandwidth_measured": True}
    shown = roofline_text(session(steps=steps, **options))
    assert "FLOP/s  bound, measured bytes" in shown
    text = shown
    assert text.count("≤") == 4, "FLOP per byte and FLOP/s, of the last minute and of all"
    assert ("timed steps" in text) is steps and ("whole run" in text) is not steps
    assert "cannot tell what bounds the run" in text
