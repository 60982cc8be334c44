"""What decides how fast the screens are, as far as it is the same on every machine."""

from __future__ import annotations

import os
import pty
import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rich.color import ColorSystem
from textual.drivers.headless_driver import HeadlessDriver
from textual.pilot import Pilot

from gpuwatch.cli import first_frame
from gpuwatch.session.store import SessionStore, insert
from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.arrived import Arrived
from gpuwatch.tui.live import LiveScreen
from gpuwatch.tui.narrow import Pen, _look

from .conftest import ROOT
from .harness import live, until
from .sessions import NS
from .test_imports import loaded_by

Make = Callable[..., Path]

SIZE = (120, 40)
LOAD = {"utilization": 0.7, "bandwidth": 2e12, "usage": 4e10, "power": 500, "temperature": 60}
ALLOWED = 1500
"""Bytes of one update, at one update a second."""


# The first picture.


def test_the_first_frame_loads_neither_textual_nor_what_else_takes_long() -> None:
    loaded = loaded_by("gpuwatch.cli")
    slow = {"textual", "rich", "asyncio", "argparse", "typing", "json", "sqlite3", "subprocess"}
    assert "gpuwatch.cli.first_frame" in loaded and not loaded & slow


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], True),
        (["--interval", "1"], True),
        (["attach"], True),
        (["replay", "last"], True),
        (["--ascii", "replay", "last"], True),
        (["--theme", "dark"], True),
        (["--theme", "dark", "sessions"], False),
        (["--ascii", "run", "mnist-cnn"], False),
        (["--plain"], False),
        (["attach", "--record"], False),
        (["replay", "--help"], False),
        (["sessions"], False),
        (["--record"], False),
    ],
)
def test_only_what_ends_in_a_screen_begins_with_a_frame(
    words: list[str], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "isatty", lambda stream: True)
    assert first_frame.fits(words) is expected
    monkeypatch.setattr(os, "isatty", lambda stream: False)
    assert not first_frame.fits(words)


def in_a_terminal(*command: str, home: Path) -> str:
    """All that a program writes to a terminal."""
    ours, theirs = pty.openpty()
    env = {**os.environ, "HOME": str(home), "PYTHONPATH": str(ROOT / "src")}
    env.pop("XDG_DATA_HOME", None)
    streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    with subprocess.Popen([sys.executable, *command], env=env, **streams) as process:  # type: ignore[call-overload]
        os.close(theirs)
        written = b""
        while True:
            try:
                data = os.read(ours, 65536)
            except OSError:
                data = b""
            if not data:
                break
            written += data
        process.wait(30)
    os.close(ours)
    return written.decode()


def test_the_first_frame_says_what_is_true_at_once(tmp_path: Path) -> None:
    (tmp_path / ".local/share/gpuwatch/studies/20260101-mnist-cnn").mkdir(parents=True)
    source = (
        "import fcntl, struct, termios\n"
        "fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 80, 0, 0))\n"
        "from gpuwatch.cli import first_frame as f; f.show(); f.withdraw()"
    )
    shown = in_a_terminal("-c", source, home=tmp_path)
    assert shown.startswith("\x1b[?1049h") and shown.endswith("\x1b[?1049l")
    assert os.uname().nodename in shown and "1 saved study" in shown
    assert f"{os.cpu_count()} CPUs, load" in shown and "GiB in use" in shown
    assert shown.isascii()


def test_an_error_behind_the_first_frame_stands_on_the_screen_that_stays(tmp_path: Path) -> None:
    shown = in_a_terminal("-m", "gpuwatch", "replay", "nothing", home=tmp_path)
    frame, _, after = shown.partition("\x1b[?1049l")
    assert "\x1b[?1049h" in frame and "error" not in frame
    assert "gpuwatch: error: no session 'nothing'" in after and "\x1b[?1049" not in after


# What is sent.


class Sent:
    """What an app writes to its terminal."""

    def __init__(self, app: GpuwatchApp) -> None:
        self.updates: list[str] = []
        driver = app._driver
        assert isinstance(driver, HeadlessDriver)
        driver.write = self.updates.append  # type: ignore[method-assign]

    @property
    def size(self) -> int:
        """In bytes, with what tells a terminal that an update begins and ends."""
        around = len("\x1b[?2026h") + len("\x1b[?2026l")
        return sum(len(update.encode()) + around for update in self.updates)


@pytest.fixture(autouse=True)
def writing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Textual's app without a terminal is to write as with one."""
    monkeypatch.setattr(HeadlessDriver, "is_headless", False)


def grow(path: Path, seconds: int) -> Iterator[int]:
    """Record one second after the other; gives its session time."""
    dice = random.Random(6)
    store = SessionStore.reopen(path)
    metrics = [metric.rpartition(".")[2] for _, metric in store.channels()]
    sql = insert("tick", len(metrics), "n", "t")
    last = store.last("tick")
    *_, (t, _) = store.ticks_since(0)
    for second in range(1, seconds + 1):
        values = [LOAD.get(metric, 0.5) * dice.uniform(0.75, 1.1) for metric in metrics]
        store.write([(sql, (last + second, t + second * NS, *values))])
        yield t + second * NS
    store.close()


async def watched(app: GpuwatchApp, pilot: Pilot[int], path: Path, seconds: int) -> None:
    """The screen, until it has shown each of so many seconds more."""
    screen = app.screen
    assert isinstance(screen, LiveScreen)
    for t in grow(path, seconds):
        await until(pilot, lambda t=t: screen.snapshot is not None and screen.snapshot.t >= t)  # type: ignore[misc]
        await pilot.pause()


@pytest.mark.parametrize("gpus", [1, 8])
async def test_an_update_of_the_live_screen_is_at_most_1500_bytes(session: Make, gpus: int) -> None:
    path = session(kind="machine", gpus=gpus, interval=1.0, known_card=True)
    async with live(path, SIZE) as (app, pilot):
        sent = Sent(app)
        await watched(app, pilot, path, 10)
        assert len(sent.updates) == 10, "one for each second, and nothing else"
        assert sent.size / 10 <= ALLOWED


async def test_a_snapshot_that_says_nothing_new_sends_nothing(session: Make) -> None:
    async with live(session(kind="machine", gpus=2), SIZE) as (app, pilot):
        screen = app.screen
        assert isinstance(screen, LiveScreen) and screen.snapshot is not None
        sent = Sent(app)
        for _ in range(5):
            screen.on_arrived(Arrived(screen.snapshot))
            await pilot.pause()
        assert sent.updates == []


class Cells:
    """A terminal that knows positions and styles, and nothing else."""

    def __init__(self) -> None:
        self.cells: dict[tuple[int, int], tuple[str, frozenset[str]]] = {}

    def take(self, update: str) -> None:
        x = y = 0
        on: dict[str, str] = {}
        for sequence, character in re.findall(r"\x1b\[([\d;]*[A-Za-z])|(.)", update, re.DOTALL):
            if sequence.endswith("H"):
                y, x = (int(number) - 1 for number in sequence[:-1].split(";"))
            elif sequence.endswith("m"):
                self._style(on, sequence[:-1].split(";"))
            elif character:
                self.cells[x, y] = character, frozenset(on.values())
                x += 1
        assert not on, "a style is left on"

    def _style(self, on: dict[str, str], codes: list[str]) -> None:
        while codes:
            code = codes.pop(0)
            place = {"3": "colour", "9": "colour", "4": "ground", "10": "ground"}
            ground = place.get(code[:-1], "")
            if code == "0":
                on.clear()
            elif code in ("22", "27"):
                for ended in ("1", "2") if code == "22" else ("7",):
                    on.pop(ended, None)
            elif code in ("39", "49"):
                on.pop(ground, None)
            elif code in ("38", "48"):
                count = 4 if codes[0] == "2" else 2
                on[ground] = ";".join([code, *codes[:count]])
                del codes[:count]
            elif ground:
                on[ground] = code
            else:
                on[code] = code


@pytest.mark.parametrize("colours", [ColorSystem.TRUECOLOR, ColorSystem.STANDARD])
async def test_what_is_sent_leaves_the_terminal_as_the_screen_is(
    session: Make, colours: ColorSystem
) -> None:
    path = session(kind="machine", gpus=8, interval=1.0, known_card=True)
    async with live(path, SIZE) as (app, pilot):
        app.console._color_system = colours
        sent = Sent(app)
        await watched(app, pilot, path, 8)
        terminal = Cells()
        for update in sent.updates:
            terminal.take(update)
        wrong = []
        for y, strip in enumerate(app.screen._compositor.render_strips()):
            x = 0
            for text, style, _ in strip:
                attributes, *grounds = _look(style, colours) if style else ((), "39", "49")
                look = frozenset([*attributes, *(g for g in grounds if g not in ("39", "49"))])
                for character in text:
                    if terminal.cells.get((x, y), (character, look)) != (character, look):
                        wrong.append((x, y, character, terminal.cells[x, y]))
                    x += 1
        assert len(terminal.cells) > 100 and wrong == []


def test_a_style_is_said_once_and_ends_with_what_was_written() -> None:
    from rich.style import Style

    pen = Pen(ColorSystem.TRUECOLOR)
    pen.move(4, 2)
    for text, style in (("12", "bold #ff0000 on #000000"), ("3", "bold #ff0000 on #000000")):
        pen.write(text, Style.parse(style))
    pen.write("W", Style.parse("#00ff00 on #000000"))
    told = "\x1b[3;5H\x1b[1;38;2;255;0;0;48;2;0;0;0m123\x1b[22;38;2;0;255;0mW\x1b[0m"
    assert pen.sequence() == told
