"""A lost connection does nothing to a run: seen on real terminals."""

from __future__ import annotations

import sys
from pathlib import Path

from gpuwatch.session.reader import SessionReader
from gpuwatch.session.status import State, Status, status
from tests.conftest import Cli
from tests.terminal import Pty

from .test_record import STEPS, sessions, until


def test_the_recording_outlives_its_terminal_and_attach_shows_it(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    steps = 500
    command = cli.argv("run", "--out", out, "--", sys.executable, STEPS, steps, 0.02)
    first = Pty(command, environment=cli.env)
    first.wait("running")
    until(lambda: sessions(out))
    (path,) = sessions(out)
    first.hang_up()
    first.end()

    second = Pty(cli.argv("attach", path), environment=cli.env)
    second.wait("running")
    second.type("q")
    assert second.end() == 0
    assert f"gpuwatch attach {path}" in second.text().replace("\r\n", "")

    until(lambda: not _status(path).live, seconds=60)
    with SessionReader(path) as reader:
        assert [row.step for row in reader.steps(limit=10**6)] == list(range(1, steps + 1))
    assert _status(path).state is State.FINISHED
    until(lambda: (path.parent / "summary.md").exists())


def test_stopping_from_the_screen_asks_first(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = cli.argv("run", "--out", out, "--", sys.executable, STEPS, 5000, 0.02)
    terminal = Pty(command, environment=cli.env)
    terminal.wait("running")
    terminal.type("s")
    terminal.wait("Stop")
    terminal.type("y")
    (path,) = sessions(out)
    until(lambda: not _status(path).live)
    assert _status(path).state is State.STOPPED
    terminal.type("q")
    assert terminal.end() == 0


def _status(path: Path) -> Status:
    with SessionReader(path) as reader:
        return status(reader.meta(), path)
