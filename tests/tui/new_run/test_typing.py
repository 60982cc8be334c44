"""What is typed is written where there is a field, and answers no question."""

from __future__ import annotations

import shlex
import shutil
import sys
from contextlib import closing
from pathlib import Path

import pytest

from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.home.screen import HomeScreen
from gpuwatch.tui.new_run.screen import NewRunScreen
from tests.tmux import Pane

from ..conftest import ROOT, Fake, entry
from ..harness import running, shows
from ..sessions import Script, finished, plan, write

TYPED = "uniq_dynamics.py --days 3 -y"
"""Its second letters are q, d and y, as those of many names are."""
LETTERS = "quickly defy jazz boxing n h k w v m p t"


def form(app: GpuwatchApp) -> NewRunScreen:
    assert isinstance(app.screen, NewRunScreen)
    return app.screen


@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
def test_typing_a_command_in_a_terminal_deletes_no_session(tmp_path: Path) -> None:
    study = tmp_path / "data" / "gpuwatch" / "studies" / "kept"
    plan(study, "01-bare")
    kept = write(
        study / "01-bare.gpuwatch", Script(seconds=8, meta=finished(seconds=8), alive=False)
    )
    script = tmp_path / "home.sh"
    homes = " ".join(
        f"{name}={shlex.quote(str(tmp_path / folder))}"
        for name, folder in (("HOME", "h"), ("XDG_DATA_HOME", "data"), ("XDG_STATE_HOME", "state"))
    )
    source = f"PYTHONPATH={shlex.quote(str(ROOT / 'src'))} {homes}"
    script.write_text(f"{source} {sys.executable} -m gpuwatch; echo code $?\n")
    with closing(Pane(tmp_path, (80, 24))) as terminal:
        terminal.type(f"clear; sh {script}", "Enter")
        terminal.wait("✓ finished")
        terminal.type("n")
        terminal.wait("start a run")
        terminal.type(TYPED)
        terminal.wait(f" {TYPED}")
        terminal.type("", "Escape")
        terminal.wait("✓ finished")
        # Typed on the list by mistake, too: d asks, and what follows is no answer.
        terminal.type("dyyyy")
        terminal.wait("Delete mnist-cnn")
        terminal.type(LETTERS)
        terminal.type("", "Enter")
        terminal.wait_gone("Delete mnist-cnn")
        assert kept.exists()
        terminal.type("d")
        terminal.wait("Delete mnist-cnn")
        terminal.type("", "Right", "Enter")
        terminal.wait("deleted study kept")
        assert not kept.exists()


async def test_letters_are_written_where_the_cursor_is(fake: Fake, tmp_path: Path) -> None:
    fake.list(entry(tmp_path / "a.gpuwatch"))
    async with running(HomeScreen) as (app, pilot):
        await shows(pilot, "✓ finished")
        await pilot.press("n", opens=NewRunScreen)
        await pilot.press(*TYPED, "left", "backspace", "home", "x")
        assert form(app).form.command == f"x{TYPED[:-2]}y"
    assert not [call for call in fake.asked if call[0] == "delete"]


async def test_only_escape_leaves_the_form(fake: Fake) -> None:
    async with running(HomeScreen) as (app, pilot):
        await pilot.press("n", opens=NewRunScreen)
        for key in "quitdy":
            await pilot.press(key)
            assert isinstance(app.screen, NewRunScreen), key
        await pilot.press("escape", opens=HomeScreen)
    assert not [call for call in fake.asked if "--detach" in call]
