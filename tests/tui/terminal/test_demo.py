"""``gpuwatch demo`` in a real terminal: a recorded card, said to be one."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.tmux import Pane

pytestmark = [
    pytest.mark.usefixtures("programs"),
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed"),
]
DEMO = [sys.executable, "-m", "gpuwatch", "demo"]


def test_the_demo_plays_a_recording_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    where = f"export HOME={shlex.quote(str(tmp_path))} TMPDIR={shlex.quote(str(kept))}; cd"
    script = tmp_path / "demo.sh"
    script.write_text(f"{where}; {shlex.join(DEMO)}; echo code $?\n")
    with closing(Pane(tmp_path, (110, 34))) as terminal:
        terminal.type(f"clear; sh {script}", "Enter")
        shown = terminal.wait("own_resnet.py 2000")
        assert "H200" in shown and re.search(r"recorded 2026-11-2\d  0:\d\d", shown)
        assert re.search(r"! a recording of 2026-11-2\d, of another machine: Enter plays", shown)
        assert len(list(kept.glob("gpuwatch-demo-*"))) == 1
        assert "n new run" not in shown and "l log" in shown
        terminal.type("", "Enter")
        terminal.wait("◀ at ")
        terminal.wait("Space pause")
        terminal.type("q")
        shown = terminal.wait("code 0")
        assert "a run of your own: gpuwatch run" in shown and "come back" not in shown
    assert not list(kept.glob("gpuwatch-demo-*")) and not (tmp_path / ".local").exists()


def test_without_a_terminal_the_demo_says_what_it_needs() -> None:
    done = subprocess.run(DEMO, check=False, capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "the screen needs a terminal" in done.stderr
