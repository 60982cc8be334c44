"""The position of a run in its study, in the first row of the live screen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gpuwatch.session.reading.status import State, Status
from gpuwatch.session.study import labels
from gpuwatch.session.study.progress import StudyPosition
from gpuwatch.tui.feed.snapshot import Snapshot
from gpuwatch.tui.feed.study import CurrentStudy
from gpuwatch.tui.live.screen import LiveScreen
from gpuwatch.tui.widgets.head_rows import title_row

from ..harness import live
from ..sessions import finished
from ..snapshots_of import page_text
from .test_study_rows import planned

Make = Callable[..., Path]
BLOCKS = 3
PLACE = StudyPosition(5, 24, 0, 0, 19, block=2, blocks=7, seconds_left=185.0)


@pytest.fixture
async def snapshot(session: Make) -> Snapshot:
    async with live(session(environment="docker=img")) as (app, _):
        screen = app.screen
        assert isinstance(screen, LiveScreen) and screen.snapshot is not None
        return screen.snapshot


def test_a_run_is_called_by_its_name_and_by_what_it_runs(session: Make) -> None:
    path = session(environment="docker=img")
    labels.change(path.parent, path.name, lambda label: replace(label, name="low lr"))
    assert page_text(path).startswith(" gpuwatch low lr: mnist-cnn ")


def title(snapshot: Snapshot, place: StudyPosition | None, width: int) -> str:
    row = title_row(replace(snapshot, place=place), width, paused=False)
    return "".join(text for text, _ in row.spans())


async def test_what_came_long_after_the_timed_steps_stands_beside_the_elapsed_time(
    snapshot: Snapshot,
) -> None:
    parts = [("steps", 0.0, 17e9), ("profile", 17e9, 18e9), ("ncu", 18e9, 89.6e9)]
    over = replace(
        snapshot, status=Status(State.STOPPED, "stopped"), seconds=17.0, parts=tuple(parts)
    )
    assert title(over, None, 120).endswith("■ stopped  0:17 + 1:12 ncu ")
    assert title(over, None, 80).endswith("■ stopped  0:17 ")
    assert title(over, PLACE, 120).endswith("■ stopped  0:17 "), "its place is told"


@pytest.mark.parametrize(
    ("width", "text"),
    [
        (160, "block 2 of 7, run 5 of 24, about 3 min left  ▶ running"),
        (90, "run 5 of 24, about 3 min left  ▶ running"),
        (66, "run 5 of 24  ▶ running"),
    ],
)
def test_block_run_and_time_left_take_the_words_that_fit(
    snapshot: Snapshot, width: int, text: str
) -> None:
    row = title(snapshot, PLACE, width)
    assert f"  {text}" in row and len(row) == width
    assert "mnist-cnn in docker=img" in row or width < 80


def test_what_failed_before_stands_beside_it_at_every_width(snapshot: Snapshot) -> None:
    place = replace(PLACE, failed=2, not_run=1)
    for width in (80, 110, 160):
        row = title(snapshot, place, width)
        assert ", 2 failed before, 1 did not run  ▶ running" in row and len(row) == width


def run(session: Make, files: list[str], at: int, *, alive: bool) -> Path:
    """A run of the plan with 90 seconds, ten seconds after the previous one."""
    meta = {"session": {"id": files[at], "index": at + 1}, **({} if alive else finished())}
    return session(files[at], start=100.0 * at, meta=meta, alive=alive)


def test_the_time_left_follows_from_the_runs_before(session: Make, tmp_path: Path) -> None:
    files = planned(tmp_path / "study", ("bare",), BLOCKS)
    for at in (0, 1):
        run(session, files, at, alive=False)
    path = run(session, files, 2, alive=True)
    row = page_text(path, (160, 50)).splitlines()[0]
    # This run has taken its 90 s; the last one takes 90 s more after a pause of 10 s.
    assert "block 2 of 3, run 3 of 4, about 2 min left  ▶ running" in row


def test_a_run_that_is_over_leaves_no_time(session: Make, tmp_path: Path) -> None:
    files = planned(tmp_path / "study", ("bare",), BLOCKS)
    for at in (0, 1):
        run(session, files, at, alive=False)
    study = CurrentStudy(run(session, files, 2, alive=True))
    assert study.place is not None and study.place.seconds_left == pytest.approx(100)
    study.update(live=False)
    assert study.place.seconds_left is None and study.place.number == 3
