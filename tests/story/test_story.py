"""The whole story in tmux, recorded; what is played of it is what was on the screen."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from .animation import animate
from .story import play, terminal, variables

STEPS = Path(__file__).parent.parent / "cli" / "steps.py"

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


@pytest.mark.slow
@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (160, 50)])
def test_start_watch_leave_come_back_stop_compare_export(
    tmp_path: Path, columns: int, rows: int
) -> None:
    home, programs = tmp_path / "home", tmp_path / "bin"
    home.mkdir()
    programs.mkdir()
    command = programs / "gpuwatch"
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m gpuwatch "$@"\n')
    command.chmod(0o755)
    train = home / "train.py"
    train.write_text(STEPS.read_text())
    with terminal(tmp_path, variables(home, programs), columns, rows) as shown:
        shown.type("cd; clear\r")
        program = ["--", sys.executable, str(train)]
        report = play(shown, [*program, "4000", "0.05"], [*program, "60", "0.05"])
        shown.save(tmp_path / "story.cast", "gpuwatch")
    assert (home / report).read_text().startswith("<!DOCTYPE html>")

    head, *lines = (tmp_path / "story.cast").read_text().splitlines()
    assert json.loads(head)["width"] == columns
    times = [json.loads(line)[0] for line in lines]
    assert times == sorted(times)
    drawn = animate(tmp_path / "story.cast")
    tree = ElementTree.fromstring(drawn)
    assert "running" in "".join(tree.itertext())
    assert "http" not in drawn.replace("http://www.w3.org/2000/svg", "")
