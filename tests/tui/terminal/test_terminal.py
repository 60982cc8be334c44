"""The program in a real terminal, small and large."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from gpuwatch.core import paths
from gpuwatch.session.study.progress import tally
from tests.terminal import SEQUENCES as KNOWN
from tests.terminal import Pty, surroundings
from tests.tmux import Pane

from ..conftest import ROOT
from ..sessions import end, finished

Make = Callable[..., Path]

pytestmark = [
    pytest.mark.usefixtures("programs"),
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed"),
]


@pytest.mark.parametrize(("width", "height"), [(80, 24), (160, 50)])
def test_a_run_is_watched_left_and_found_again(
    session: Make, tmp_path: Path, width: int, height: int
) -> None:
    path = session()
    source = f"from gpuwatch.tui.app import run_live; from pathlib import Path; raise SystemExit(run_live(Path({str(path)!r})))"  # noqa: E501
    command = f"PYTHONPATH={shlex.quote(str(ROOT / 'src'))} {sys.executable} -c {shlex.quote(source)}; echo code $?"  # noqa: E501
    script = tmp_path / "watch.sh"
    script.write_text(command + "\n")
    with closing(Pane(tmp_path, (width, height))) as terminal:
        terminal.type(f"clear; sh {script}", "Enter")
        terminal.wait("step 16,820/40,000")
        shown = terminal.wait("? help")
        rows = shown.splitlines()
        assert "gpuwatch mnist-cnn in bare" in rows[0] and "▶ running" in rows[0]
        assert len(rows) <= height and max(map(len, rows)) <= width
        assert any("q leave" in row for row in rows[-2:])
        assert "█" in shown and "100%┤" in shown
        terminal.type("z")
        terminal.wait("history: all")
        terminal.type("q")
        shown = terminal.wait("code 0")
        assert "come back: gpuwatch attach" in shown
        assert "█" not in shown, "the terminal was restored"


def test_the_end_of_a_run_is_told_on_the_desktop_once_in_words(session: Make) -> None:
    path = session()
    source = f"from gpuwatch.tui.app import run_live; from pathlib import Path; run_live(Path({str(path)!r}))"  # noqa: E501
    with closing(Pty([sys.executable, "-c", source])) as terminal:
        terminal.taken_over("step ")
        end(path)
        terminal.wait("\x1b]9;gpuwatch: mnist-cnn in bare: the run is over after 1:30: finished\a")
        terminal.wait("timed steps, mean")
        terminal.type("q")
        assert terminal.end() == 0
        assert terminal.sent.count(b"\x1b]9;") == 1
        told = re.sub(r"\x07\x1b]9;[^\x07]*\x07", "", terminal.text())
        assert "\x1b" not in KNOWN.sub("", told), "no other sequence is torn by it"


def test_a_report_that_is_being_written_is_waited_for_and_told_of(session: Make) -> None:
    path = session(meta=finished(seconds=90.0), alive=False)
    source = f"from gpuwatch.tui.app import run_live; from pathlib import Path; run_live(Path({str(path)!r}))"  # noqa: E501
    with closing(Pty([sys.executable, "-c", source])) as terminal:
        terminal.taken_over("step ")
        terminal.type("eq")
        assert terminal.end() == 0
        assert terminal.text().endswith(f"report: {path.with_suffix('.html')}\r\n")
        assert path.with_suffix(".html").exists()


def test_a_study_that_is_left_is_ended_by_the_command_that_was_printed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    steps = Path(__file__).parents[2] / "cli" / "steps.py"
    program = [sys.executable, str(steps), "100000", "0.05"]
    twice = ["--env", "bare", "--env", "bare"]
    command = shlex.join([sys.executable, "-m", "gpuwatch", "run", *twice, "--", *program])
    script = tmp_path / "run.sh"
    script.write_text(f"export HOME={shlex.quote(str(home))}; cd; {command}; echo code $?\n")
    with closing(Pane(tmp_path, (200, 24))) as terminal:
        terminal.type(f"clear; sh {script}", "Enter")
        assert "1 of 2  ▶ running" in terminal.wait("▶ running  ")
        terminal.type("q")
        shown = terminal.wait("code 0")
        assert "the study of 2 runs goes on" in shown and "come back: gpuwatch attach" in shown
        name = next(row for row in shown.splitlines() if "stop all:" in row).split()[-1]
        stop = [sys.executable, "-m", "gpuwatch", "stop", name]
        subprocess.run(stop, env=surroundings(HOME=str(home)), check=True, timeout=60)
        assert tally(paths.data_home() / name) == "2 runs: 1 stopped, 1 did not run"


def test_the_screen_goes_on_with_the_next_environment_and_ends_in_the_summary(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    steps = Path(__file__).parents[2] / "cli" / "steps.py"
    until_told = "while ! rm go 2>/dev/null; do sleep 0.1; done"
    program = ["sh", "-c", f"{shlex.join([sys.executable, str(steps)])} 10 0.05; {until_told}"]
    twice = ["--env", "bare", "--env", "bare"]
    command = shlex.join([sys.executable, "-m", "gpuwatch", "run", *twice, "--", *program])
    script = tmp_path / "run.sh"
    script.write_text(f"export HOME={shlex.quote(str(home))}; cd; {command}; echo code $?\n")
    with closing(Pane(tmp_path, (100, 70))) as terminal:
        terminal.type(f"clear; sh {script}", "Enter")
        terminal.wait("in bare#1")
        (home / "go").touch()  # the run may be over before the screen has read it
        shown = terminal.wait("in bare#2")
        assert "▶ running" in shown or "starting" in shown
        assert "2 of 2" in shown.splitlines()[0]
        (home / "go").touch()
        terminal.wait("✓ 2 runs: 2 finished")
        terminal.type("q")
        shown = terminal.wait("code 0")
        assert "bare#1" in shown and "bare#2" in shown and "NO VERDICT" in shown


def test_the_screen_goes_on_where_the_first_run_is_over_before_it_is_read(tmp_path: Path) -> None:
    script = "test -e first && sleep 600; touch first"
    twice = ("--env", "bare", "--env", "bare")
    command = [sys.executable, "-m", "gpuwatch", "run", *twice, "--", "sh", "-c", script]
    screen = Pty(command, environment=surroundings(HOME=str(tmp_path)), folder=tmp_path)
    try:
        screen.wait("run 2 of 2\x1b")
    finally:
        screen.close()
        stop = [*command[:3], "stop", "--all"]
        subprocess.run(stop, env=surroundings(HOME=str(tmp_path)), check=True, timeout=120)
