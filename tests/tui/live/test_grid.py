"""The grid of all GPUs: its panels, their layout and its keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gpuwatch.core.metrics import Method
from gpuwatch.tui.feed.snapshot import View
from gpuwatch.tui.live.page import page_of, panel_rows
from gpuwatch.tui.live.rows import Options
from gpuwatch.tui.live.screen import LiveScreen
from gpuwatch.tui.widgets.device_rows import grid_rows
from gpuwatch.tui.widgets.gauge_rows import value_parts

from ..harness import live, on_top, screen_text, shows, until
from ..sessions import finished
from ..snapshots_of import numbers_text, snapshot_of, texts

Make = Callable[..., Path]
GRID = View(grid=True)


async def test_g_shows_all_gpus_and_g_again_one(session: Make) -> None:
    async with live(session(gpus=8)) as (app, pilot):
        await pilot.press("g", shows="8 GPUs, the run uses 2")
        rows = screen_text(app).splitlines()
        assert [sum(f"GPU {n}" in row for row in rows) for n in range(8)] == [1] * 8
        assert sum(row.count(" util. ") for row in rows) == 8
        assert sum(row.count("/80.0 GiB") for row in rows) == 8
        assert sum(row.count("/700 W") for row in rows) == sum(row.count("°C") for row in rows) == 8
        assert "▸GPU 0 run" in rows[2] and "step 16,820/40,000" in rows[-2]
        await pilot.press("g", shows="1 of 8, Tab for the next")


def test_a_run_without_a_gpu_of_its_own_uses_none(session: Make) -> None:
    snapshot = snapshot_of(session(gpus=2), GRID)
    devices = [replace(each, row=replace(each.row, used=False)) for each in snapshot.devices]
    page = page_of(replace(snapshot, devices=tuple(devices)), Options(), 80, 23)
    assert any(row.startswith(" 2 GPUs, the run uses none ") for row in texts(page.lines))


async def test_enter_opens_the_chosen_one_and_escape_the_one_before(session: Make) -> None:
    async with live(session(gpus=8)) as (_, pilot):
        await pilot.press("g", shows="▸GPU 0")
        await pilot.press("tab", "down", shows="▸GPU 3")
        await pilot.press("up", shows="▸GPU 1")
        await pilot.press("5", shows="▸GPU 5")
        await shows(pilot, "Enter open")
        await pilot.press("enter", shows="GPU 5  NVIDIA H100 80GB HBM3  6 of 8")
        await pilot.press("g", shows="▸GPU 5")
        await pilot.press("escape", shows="6 of 8")


async def test_a_panel_that_is_clicked_is_opened(session: Make) -> None:
    async with live(session(gpus=8), (120, 40)) as (app, pilot):
        await pilot.press("g", shows="▸GPU 0")
        rows = screen_text(app).splitlines()
        y = next(at for at, row in enumerate(rows) if "GPU 3" in row)
        await pilot.click(offset=(rows[y].index("GPU 3") + 2, y + 1))
        await shows(pilot, "GPU 3  NVIDIA H100 80GB HBM3  4 of 8")


async def test_a_session_of_one_gpu_offers_no_grid(session: Make) -> None:
    async with live(session()) as (app, pilot):
        await pilot.press("g")
        assert "GPU utilization" in screen_text(app) and "GPUs" not in screen_text(app)


@pytest.mark.parametrize("size", [(120, 30), (160, 57), (200, 60), (80, 40)])
async def test_the_newest_samples_stand_at_the_right_end_of_every_panel(
    session: Make, size: tuple[int, int]
) -> None:
    path = session(gpus=8, seconds=60.0, throttled=True)
    async with live(path, size, seconds=60.0) as (app, pilot):
        await pilot.press("g", shows="▸GPU 0")
        screen = on_top(app, LiveScreen)

        def fits() -> bool:
            return screen.snapshot is not None and all(
                len(panel.history) == xs.stop - xs.start - 6
                for panel in screen.snapshot.panels
                for xs, _, _ in screen._page.gpus
            )

        await until(pilot, fits)
        rows = screen_text(app).splitlines()
        for xs, ys, id_ in screen._page.gpus:
            lowest = rows[ys.start + 4 : ys.stop - 1][-1:]
            assert lowest and lowest[0].ljust(size[0])[xs.stop - 2] != " ", id_


@pytest.mark.usefixtures("every_size")
@pytest.mark.parametrize("width", [60, 80, 100, 130])
@pytest.mark.parametrize("gpus", [2, 8, 16, 72])
def test_a_list_of_gpus_that_does_not_fit_says_how_many_are_hidden(
    session: Make, width: int, gpus: int
) -> None:
    devices = snapshot_of(session(gpus=gpus)).gpus
    for chosen in ("gpu0", "gpu1", f"gpu{gpus - 1}"):
        for most in range(2, 10):
            lines = grid_rows(devices, chosen, width, most, mark_used=True)
            rows = texts(lines)
            assert len(rows) <= most and all(line.used <= width for line in lines)
            seen = sum(row.count("%") for row in rows)
            hidden = f"  … {gpus - seen} more, g shows all"
            assert (rows[-1] == hidden) == (seen < gpus)
            assert sum("▸" in row for row in rows) == 1, "the selected GPU is visible"
            assert seen == gpus or gpus > 2 * (most - 1)


async def test_all_gpus_have_a_title_one_time_axis_and_what_the_training_says(
    session: Make,
) -> None:
    log = [("stdout", f"line {n}") for n in range(5)]
    async with live(session(gpus=8, log=log), (120, 40)) as (app, pilot):
        await pilot.press("g", shows="▸GPU 0")
        await shows(pilot, "utilization, history: 1 min")
        rows = screen_text(app).splitlines()
        (at,) = (at for at, row in enumerate(rows) if "└" in row)
        assert rows[at].count("┴1m20s") == 2 and "workload" in rows[at + 1]
        assert "step 16,8" in rows[at + 2] and "loss" in rows[at + 3]
        assert rows[at + 5].endswith(" line 4") and len(rows) == at + 7, "no row is blank"


@pytest.mark.parametrize(("height", "drawn"), [(12, False), (24, False), (40, True)])
def test_the_history_is_told_of_where_one_is_drawn(session: Make, height: int, drawn: bool) -> None:
    lines = page_of(snapshot_of(session(gpus=8), GRID), Options(), 80, height).lines
    shown = "\n".join("".join(text for text, _ in line.spans()) for line in lines)
    assert ("100%┤" in shown) == ("utilization, history: " in shown) == drawn


def test_what_is_wrong_with_a_gpu_is_marked_in_its_panel(session: Make) -> None:
    snapshot = snapshot_of(session(gpus=8, throttled=True), GRID)
    assert [bool(panel.problem) for panel in snapshot.panels] == [True, True, *[False] * 6]
    for height in (8, 16, 44):
        rows = texts(panel_rows(snapshot.panels, "gpu0", 160, height, mark_used=True))
        marked = [part for row in rows for part in row.split("GPU ")[1:] if " ! " in part]
        assert len(marked) == 2, height
    assert any("! clocks held down (power)" in row for row in rows)


@pytest.mark.parametrize("width", [80, 120, 160])
def test_a_bound_of_the_bandwidth_has_its_mark_in_a_panel_too(session: Make, width: int) -> None:
    path = session(gpus=2, memory_busy=True, known_card=True, count=False)
    snapshot = snapshot_of(path, GRID)
    assert value_parts(snapshot.gauges[1]) == ("≤1.34", "TB/s")
    rows = texts(panel_rows(snapshot.panels, "gpu0", width, 9, mark_used=True))
    figures = [row for row in rows if "bandwidth" in row]
    assert all("bandwidth ≤1.34 TB/s" in row and "°C" in row for row in figures) and figures


@pytest.mark.parametrize("goes_on", [True, False])
def test_a_memory_that_is_0_percent_busy_bounds_no_bandwidth(session: Make, goes_on: bool) -> None:
    """The driver gives whole percents: at most 0 B/s is more than is known."""
    idle = {(f"gpu{at}", "hw.gpu.memory.busy"): 0.0 for at in (0, 1)}
    over = {} if goes_on else {"meta": finished(), "alive": False}
    path = session(gpus=2, memory_busy=True, known_card=True, count=False, sampled=idle, **over)
    snapshot = snapshot_of(path, GRID)
    gauge = snapshot.gauges[1]
    assert gauge.reading.method is Method.UNAVAILABLE and not any(gauge.history)
    assert "the driver gives no bandwidth counter for this GPU" in str(gauge.reading.reason)
    text = "\n".join(texts(panel_rows(snapshot.panels, "gpu0", 120, 9, mark_used=True)))
    assert text.count("bandwidth —") == 2 and "≤" not in text + numbers_text(path)
