"""What decides how fast the screens are, as far as it is the same on every machine."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyte
import pytest
from rich.color import ColorSystem
from textual.drivers.headless_driver import HeadlessDriver
from textual.geometry import Region
from textual.pilot import Pilot
from textual.screen import Screen
from textual.strip import Strip

from gpuwatch.cli.screen import first_frame
from gpuwatch.session.writing.statements import insert
from gpuwatch.session.writing.store import SessionStore
from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.live.screen import LiveScreen
from gpuwatch.tui.widgets.canvas import Canvas
from gpuwatch.tui.widgets.pen import Pen, _look
from tests.terminal import Pty, surroundings

from .harness import live, shows, until
from .sessions import NS, Script, write
from .test_imports import loaded_by

pytestmark = pytest.mark.usefixtures("programs")

Make = Callable[..., Path]

SIZE = (120, 40)
LOAD = {"utilization": 0.7, "bandwidth": 2e12, "usage": 4e10, "power": 500, "temperature": 60}
ALLOWED = 1500
"""Bytes of one update, at one update a second."""


# The first picture.


def test_the_first_frame_loads_neither_textual_nor_what_else_takes_long() -> None:
    loaded = loaded_by("gpuwatch.cli")
    slow = {"textual", "rich", "asyncio", "argparse", "typing", "json", "sqlite3", "subprocess"}
    assert "gpuwatch.cli.screen.first_frame" in loaded and not loaded & slow


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
    variables = surroundings(HOME=str(home))
    variables.pop("XDG_DATA_HOME", None)
    terminal = Pty([sys.executable, *command], environment=variables)
    terminal.end()
    terminal.close()
    return terminal.text()


def test_the_first_frame_says_what_is_true_at_once(tmp_path: Path) -> None:
    (tmp_path / ".local/share/gpuwatch/studies/20260101-mnist-cnn").mkdir(parents=True)
    source = "from gpuwatch.cli import first_frame as f; f.show(); f.withdraw()"
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


def caught(pid: int) -> int:
    """The signals that a process has handlers for, a bit for each."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("SigCgt:")[2].split()[0], 16)


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, signal.SIGINT])
def test_who_is_told_to_end_while_the_screen_loads_gives_the_terminal_back(
    tmp_path: Path, number: signal.Signals
) -> None:
    path = tmp_path / "s.gpuwatch"
    write(path, Script(seconds=30, alive=False))
    screen = Pty([sys.executable, "-m", "gpuwatch", "replay", str(path)])
    try:
        screen.wait("loading the screen")
        while not caught(screen.process.pid) >> (number - 1) & 1:
            time.sleep(0.001)
        screen.process.send_signal(number)
        # 0: Textual was there already.
        assert screen.end() in (0, 128 + number)
        assert screen.text().count("\x1b[?1049l") == 1 and "Traceback" not in screen.text()
    finally:
        screen.close()


def test_a_signal_before_the_app_began_leaves_the_frame_to_be_withdrawn(tmp_path: Path) -> None:
    source = (
        "from gpuwatch.cli import first_frame as f\nf.show()\ntry:\n"
        "    with f.handed_over(): raise SystemExit(143)\nfinally: f.withdraw()"
    )
    assert in_a_terminal("-c", source, home=tmp_path).endswith("\x1b[?1049l")


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


async def test_eight_gpus_whose_values_all_jump_send_at_most_2300_bytes(session: Make) -> None:
    """Such as change as a GPU's do send 1400: ``benchmarks/tui``."""
    path = session(kind="machine", gpus=8, interval=1.0, known_card=True)
    async with live(path, SIZE) as (app, pilot):
        await pilot.press("g")
        await shows(pilot, "8 GPUs")
        await pilot.pause()
        sent = Sent(app)
        await watched(app, pilot, path, 10)
        assert len(sent.updates) == 10
        assert sent.size / 10 <= 2300


async def test_no_picture_of_the_live_screen_goes_through_a_layout(
    session: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also beside the widgets that Textual puts on a screen."""

    def laid_out(canvas: Canvas, crop: Region) -> list[Strip]:
        raise AssertionError(crop)

    path = session(kind="machine", gpus=2, interval=1.0, known_card=True)
    async with live(path, SIZE, toasts=True) as (app, pilot):
        assert len(app.screen.children) > 1
        sent = Sent(app)
        monkeypatch.setattr(Canvas, "render_lines", laid_out)
        await watched(app, pilot, path, 3)
        assert len(sent.updates) == 3


def test_an_app_in_a_terminal_has_no_widgets_that_nothing_is_said_with() -> None:
    app = GpuwatchApp(lambda: Screen())
    assert app._disable_notifications and app._disable_tooltips


async def test_a_snapshot_that_says_nothing_new_sends_nothing(session: Make) -> None:
    async with live(session(kind="machine", gpus=2), SIZE) as (app, pilot):
        screen = app.screen
        assert isinstance(screen, LiveScreen) and screen.snapshot is not None
        sent = Sent(app)
        for _ in range(5):
            screen.take(screen.snapshot)
            await pilot.pause()
        assert sent.updates == []


class Cells(pyte.Screen):  # type: ignore[misc]
    """What a terminal shows."""

    def __init__(self) -> None:
        super().__init__(*SIZE)
        self.take = pyte.Stream(self).feed

    def select_graphic_rendition(self, *attributes: int, **more: bool) -> None:
        """Faint is kept as blinking: of the two the emulator knows only that."""
        known = {2: (5,), 22: (22, 25)}
        left, kept = list(attributes), []
        while left:
            code = left.pop(0)
            count = 0 if code not in (38, 48) else 4 if left[0] == 2 else 2  # a colour's numbers
            kept += [*known.get(code, (code,)), *left[:count]]
            del left[:count]
        super().select_graphic_rendition(*kept, **more)

    @property
    def plain(self) -> bool:
        """Whether no style is left on."""
        return bool(self.cursor.attrs == self.default_char)

    def draw_whole(self, app: GpuwatchApp, colours: ColorSystem) -> None:
        """The app's screen, each cell by itself."""
        for y, strip in enumerate(app.screen._compositor.render_strips()):
            self.take(f"\x1b[{y + 1};1H")
            for text, style, _ in strip:
                attributes, *grounds = _look(style, colours) if style else ((), "39", "49")
                on = "".join(f"\x1b[{code}m" for code in ("0", *attributes, *grounds))
                self.take(f"{on}{text}")
        self.take("\x1b[0m")


@pytest.mark.parametrize("colours", [ColorSystem.TRUECOLOR, ColorSystem.STANDARD])
async def test_what_is_sent_leaves_the_terminal_as_the_screen_is(
    session: Make, colours: ColorSystem
) -> None:
    path = session(kind="machine", gpus=8, interval=1.0, known_card=True)
    async with live(path, SIZE) as (app, pilot):
        app.console._color_system = colours
        terminal, whole = Cells(), Cells()
        terminal.draw_whole(app, colours)
        before = terminal.display
        sent = Sent(app)
        await watched(app, pilot, path, 8)
        for update in sent.updates:
            terminal.take(update)
            assert terminal.plain
        whole.draw_whole(app, colours)
    assert terminal.display == whole.display != before
    assert terminal.buffer == whole.buffer


def test_a_style_is_said_once_and_ends_with_what_was_written() -> None:
    from rich.style import Style

    pen = Pen(ColorSystem.TRUECOLOR)
    pen.move(4, 2)
    for text, style in (("12", "bold #ff0000 on #000000"), ("3", "bold #ff0000 on #000000")):
        pen.write(text, Style.parse(style))
    pen.write("W", Style.parse("#00ff00 on #000000"))
    told = "\x1b[3;5H\x1b[1;38;2;255;0;0;48;2;0;0;0m123\x1b[22;38;2;0;255;0mW\x1b[0m"
    assert pen.sequence() == told
