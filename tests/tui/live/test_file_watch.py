"""A session file that is deleted, replaced or damaged while it is shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gpuwatch.tui.live.screen import LiveScreen

from ..harness import live, on_top, screen_text, until

Make = Callable[..., Path]


@pytest.mark.parametrize("how", ["deleted", "replaced"])
async def test_a_file_that_is_gone_is_told_with_what_stops_the_run(
    session: Make, tmp_path: Path, how: str
) -> None:
    path = session(seconds=90)
    async with live(path) as (app, pilot):
        if how == "deleted":
            path.unlink()
        else:
            copy = tmp_path / "copy"
            copy.write_bytes(path.read_bytes())
            copy.replace(path)
        await until(pilot, lambda: "recording has stopped" in screen_text(app))
        text = " ".join(screen_text(app).split())
        assert f"the session file was {how}" in text and "the workload still runs" in text
        assert "stop it with s, or in a shell: gpuwatch stop " in text
        await pilot.press("q")
    if how == "deleted":
        assert [line.split(":")[0] for line in app.farewell] == [
            "the run goes on; the session file is gone",
            "stop it",
        ]


async def test_a_damaged_file_is_told_in_whole_sentences(session: Make) -> None:
    path = session(seconds=90)
    async with live(path) as (app, pilot):
        path.write_bytes(path.read_bytes()[:8192])
        screen = on_top(app, LiveScreen)
        await until(pilot, lambda: screen.trouble is not None)
        await pilot.pause()
        shown = "".join(screen_text(app).split())
        assert screen.trouble is not None
        trouble = screen.trouble.trouble
        assert trouble.hint and "".join(trouble.hint.split()) in shown
