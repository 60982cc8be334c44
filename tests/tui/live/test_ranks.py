"""The ranks of a run on the live screen, in replay, and on their page."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.analysis.ranks.history import OwnTimes
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.tui.feed.collector import Collector
from gpuwatch.tui.feed.samples import Window
from gpuwatch.tui.feed.snapshot import View
from gpuwatch.tui.live.pages import SHADES, rank_rows
from gpuwatch.tui.widgets.ascii import to_ascii

from ...rank_steps import SECOND, rank_steps, written
from ...rank_steps import rank_rows as rows_of_ranks
from ..harness import check_snapshot, live, screen_text, shows
from ..sessions import finished
from ..snapshots_of import snapshot_of

Make = Callable[..., Path]


def options(ranks: int = 4, seconds: float = 90.0, **more: Any) -> dict[str, Any]:
    """Of a session whose rank 2 (or ``slow``) is 12 % slower, with a lower clock."""
    slow = more.pop("slow", 2)
    steps = rank_steps(ranks, seconds, slow=slow, by=more.pop("by", 0.12), tokens=4096.0, **more)
    clocks = {(f"gpu{n}", "hw.gpu.clock.sm"): 1.98e9 for n in range(ranks)}
    if slow is not None:
        clocks[f"gpu{slow}", "hw.gpu.clock.sm"] = 1.41e9
    return {
        "gpus": ranks,
        "seconds": seconds,
        "kind": "command",
        "name": "train.py",
        "ranks": written(rows_of_ranks(ranks), steps),
        "sampled": clocks,
    }


async def test_a_line_names_the_slowest_rank_and_what_goes_with_it(session: Make) -> None:
    async with live(session(**options()), (80, 24)) as (app, pilot):
        await shows(pilot, "4 ranks · slowest 2, +12 %, SM clock")
        await pilot.press("r", shows="rank 2 is slower than the median of the others")
        text = screen_text(app)
        assert "slower, +12 %" in text and "gpu2" in text
        assert "SM clock 1.41 GHz, others 1.98 GHz" in " ".join(text.split())
        await pilot.press("r", hides="ranks at")


@pytest.mark.parametrize("size", [(80, 24), (160, 50)], ids=str)
async def test_the_page_of_the_ranks_looks_as_it_did(session: Make, size: tuple[int, int]) -> None:
    async with live(session(**options()), size) as (app, pilot):
        await shows(pilot, "4 ranks")
        await pilot.press("r", shows="own time beside")
        check_snapshot(f"ranks-{size[0]}x{size[1]}", screen_text(app))


async def test_a_run_without_ranks_has_neither_line_nor_key(session: Make) -> None:
    async with live(session(), (80, 24)) as (app, pilot):
        await shows(pilot, "samples/s")
        assert "rank" not in screen_text(app)
        await pilot.press("r")
        await pilot.pause()
        assert "ranks at" not in screen_text(app)


def test_shades_can_be_told_apart_in_ascii_and_without_colours() -> None:
    glyphs = [text for text, _ in SHADES]
    assert len(set(glyphs)) == len({to_ascii(each) for each in glyphs}) == len(glyphs)
    assert "?" not in {to_ascii(each) for each in glyphs}


def test_the_map_has_the_slow_rank_in_its_shade_and_nothing_before_the_steps(session: Make) -> None:
    now = snapshot_of(session(**options()), View(seconds=None, columns=45))
    first, slow = now.ranks.ranks[0].columns, now.ranks.ranks[2].columns
    assert first[:2] == (None, None)
    assert max(value for value in first if value is not None) < 0.02
    assert all(value == pytest.approx(0.12, abs=0.04) for value in slow[3:34])
    text = "".join("".join(t for t, _ in row) + "\n" for row in rank_rows(now, 80))
    assert "▸rank 2" in text and "▓▓▓▓" in text


def test_looking_back_the_ranks_are_as_they_were(session: Make) -> None:
    path = session(
        **options(4, 300.0, by=0.3, since=200.0), meta=finished(seconds=300.0), alive=False
    )
    before = snapshot_of(path, View(at=150 * SECOND))
    assert before.ranks.line == "4 ranks · none stands out" and not before.ranks.straggler
    after = snapshot_of(path)
    assert after.ranks.line.startswith("4 ranks · slowest 2, +30 %")
    whole = snapshot_of(path, View(at=150 * SECOND, seconds=None, columns=60))
    columns = whole.ranks.ranks[2].columns
    assert columns[20] is not None and set(columns[31:]) == {None}


def test_a_long_run_is_kept_in_few_buckets_and_read_in_pieces(session: Make) -> None:
    path = session(**options(2, 900.0, slow=1), meta=finished(seconds=900.0), alive=False)
    with SessionReader(path) as reader:
        collector = Collector(reader)
        collector.update()
        early = collector.snapshot(View(seconds=None, columns=30)).ranks
        assert early is not None and early.ranks[0].columns[2] is None
        while collector.backfill():
            pass
        late = collector.snapshot(View(seconds=None, columns=30)).ranks
        assert late is not None and late.ranks[0].columns[2] == 0.0


def test_a_long_history_keeps_its_means_in_few_rows() -> None:
    times = OwnTimes()
    rows = rank_steps(2, 400.0, slow=1, by=0.12, noise=0.0)
    for day in range(200):
        times.add(replace(row, t=row.t + day * 3600 * SECOND) for row in rows)
    assert all(len(each.ends) <= 16_384 for each in times._new.values())
    view = Window(0, 200 * 3600 * SECOND, 200)
    first, second = times.columns([0, 1], view.edges(), view.end)
    assert first[3] == 0.0 and second[3] == pytest.approx(0.12) == second[190]


def test_a_run_of_one_process_loads_no_numpy(session: Make) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from gpuwatch.session.reading.reader import SessionReader\n"
        "from gpuwatch.tui.feed.collector import Collector\n"
        "from gpuwatch.tui.feed.snapshot import View\n"
        f"collector = Collector(SessionReader(Path({str(session())!r})))\n"
        "collector.update(); collector.snapshot(View())\n"
        "assert not {'numpy', 'scipy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
