"""A screen that dies, or whose connection does, changes nothing about the run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gpuwatch.session.reading.status import State
from tests.conftest import Cli
from tests.terminal import Pty
from tests.waiting import until

from .aftermath import kept, kill, nothing_left, sessions, short_id, stepping
from .environments import goes_on, whole
from .table import Row

STEPS = 100


def test_the_recording_outlives_its_terminal_and_attach_shows_it(
    cli: Cli, tmp_path: Path, times: Callable[[int, int], int], note_fault: Callable[[Row], None]
) -> None:
    tried = times(1, 20)
    for number in range(tried):
        out = tmp_path / f"out-{number}"
        first = _screen(cli, out)
        stepping(out)
        first.hang_up()
        assert first.end() == 0
        (path,) = sessions(out)
        if number == 0:
            _attach_and_leave(cli, path)
        said = _ended(cli, out)
    said += "; `gpuwatch attach` shows it as before"
    note_fault(
        Row("screen", "SSH connection lost (terminal hung up)", tried, "nothing", "nothing", said)
    )


def test_the_recording_outlives_a_screen_that_is_killed(
    cli: Cli, tmp_path: Path, times: Callable[[int, int], int], note_fault: Callable[[Row], None]
) -> None:
    tried = times(1, 20)
    for number in range(tried):
        out = tmp_path / f"out-{number}"
        screen = _screen(cli, out)
        stepping(out)
        kill(screen.process.pid)
        assert screen.end() == -9
        assert b"\x1b[?1049h" in screen.sent and b"\x1b[?1049l" not in screen.sent
        screen.close()
        if number == 0:
            _attach_and_leave(cli, sessions(out)[0])
        said = _ended(cli, out)
    left = "the terminal in the mode of the screen: `reset` restores it"
    note_fault(Row("screen", "killed (SIGKILL)", tried, "nothing", left, said))


def test_stopping_from_the_screen_asks_first(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    terminal = _screen(cli, out)
    terminal.type("s")
    terminal.wait("Stop it")
    terminal.type("\x1b[C\r")
    (path,) = sessions(out)
    until(lambda: not kept(path).status.live)
    assert kept(path).status.state is State.STOPPED
    terminal.type("q")
    assert terminal.end() == 0


def _screen(cli: Cli, out: Path) -> Pty:
    (cli.home / "go").unlink(missing_ok=True)
    command = cli.argv("run", "--out", out, "--", *goes_on("screen", cli.home, STEPS))
    terminal = Pty(command, environment=cli.env)
    terminal.wait("running")
    return terminal


def _attach_and_leave(cli: Cli, path: Path) -> None:
    second = Pty(cli.argv("attach", path), environment=cli.env)
    second.wait("running")
    second.type("q")
    assert second.end() == 0
    assert f"gpuwatch attach {short_id(path)}" in second.text()


def _ended(cli: Cli, out: Path) -> str:
    """Wait for the run's own end; what it is called, with all of the run in its session."""
    (path,) = sessions(out)
    (cli.home / "go").touch()
    until(lambda: not kept(path).status.live)
    nothing_left(cli, out)
    found = kept(path)
    whole(found, STEPS)
    assert (found.status.state, found.status.exit_code) == (State.FINISHED, 0)
    assert (path.parent / "summary.md").exists()
    assert set(found.kinds) <= {"interval-missed"}, "a busy machine may leave a sample out"
    return f"the session: {found.status.text}"
