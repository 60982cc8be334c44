"""A terminal that is lost, resized or too small, and a screen that is suspended."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.terminal import Pty
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("programs")

Make = Callable[..., Path]


@pytest.fixture
def terminal(session: Make) -> Iterator[Callable[..., Pty]]:
    opened: list[Pty] = []

    def make(**options: object) -> Pty:
        command = [sys.executable, "-m", "gpuwatch", "replay", str(session())]
        opened.append(Pty(command, **options))  # type: ignore[arg-type]
        opened[-1].taken_over("step ")
        return opened[-1]

    yield make
    for terminal in opened:
        terminal.close()


@pytest.mark.parametrize("untold", [False, True], ids=["told", "nobody is told of it"])
def test_a_lost_terminal_ends_the_screen_without_a_word(
    terminal: Callable[..., Pty], untold: bool
) -> None:
    screen = terminal(ignores_hang_up=untold)
    screen.hang_up()
    assert screen.end() == 0


def test_a_hang_up_alone_ends_the_screen_and_gives_the_terminal_back(
    terminal: Callable[..., Pty],
) -> None:
    screen = terminal()
    screen.process.send_signal(signal.SIGHUP)
    assert screen.end() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_who_is_told_to_end_leaves_as_ctrl_c_does(
    terminal: Callable[..., Pty], number: signal.Signals
) -> None:
    screen = terminal()
    screen.process.send_signal(number)
    assert screen.end() == 0
    assert "come back:" in screen.text() and "Traceback" not in screen.text()


def test_a_screen_follows_every_size_and_says_where_it_is_too_small(
    terminal: Callable[..., Pty],
) -> None:
    screen = terminal(size=(120, 40))
    for columns, rows in ((200, 60), (10, 3), (1, 1), (60, 16), (80, 5), (39, 24), (10, 3)):
        screen.resize(columns, rows)
    screen.wait("too small")
    start = len(screen.sent)
    screen.resize(60, 16)
    screen.wait("H100", start=start)
    screen.type("q")
    assert screen.end() == 0


def test_a_screen_can_be_left_for_the_shell_and_come_back_to(terminal: Callable[..., Pty]) -> None:
    screen = terminal()
    screen.type("\x1a")
    screen.wait("\x1b[?1049l")
    until(lambda: screen.state() == "T")
    start = len(screen.sent)
    screen.process.send_signal(signal.SIGCONT)
    screen.wait("mnist-cnn", start=start)
    assert b"\x1b[?1049h" in screen.sent[start:]
    screen.type("q")
    assert screen.end() == 0


def test_a_click_on_a_key_presses_it(terminal: Callable[..., Pty]) -> None:
    screen = terminal()
    screen.taken_over("stop")  # the session is read: "? help  q leave  s stop"

    def left() -> bool:  # a footer that is made anew meanwhile takes no click
        if screen.process.poll() is None:
            screen.type("\x1b[<0;12;24M\x1b[<0;12;24m")
            screen.read(0.4)
        return screen.process.poll() is not None

    until(left)
    assert screen.end() == 0
    assert b"\x1b[?1000l" in screen.sent


_AFTER = """
import os, signal, sys
from pathlib import Path
from gpuwatch.tui.app import run_live
numbers = [signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGWINCH, signal.SIGTSTP]
received = []
for number in numbers:
    signal.signal(number, lambda number, frame: received.append(number))
run_live(Path(sys.argv[1]))
for number in numbers:
    os.kill(os.getpid(), number)
print("after:", received == numbers)
"""


def test_after_the_screen_signals_are_handled_as_before_it(session: Make) -> None:
    with closing(Pty([sys.executable, "-c", _AFTER, str(session())])) as screen:
        screen.wait("step ")
        screen.type("q")
        assert screen.end() == 0
        assert "after: True" in screen.text() and "Traceback" not in screen.text()
