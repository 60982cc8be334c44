"""The picture that stands on the terminal before Textual is loaded."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyte
import pytest
from rich.console import Console

from gpuwatch.tui.display_options import USUAL, DisplayOptions
from gpuwatch.tui.feed.machine_recorder import MachineRecorder
from gpuwatch.tui.home.listing import HomeListing
from gpuwatch.tui.home.opening import HomeOpening
from gpuwatch.tui.home.screen import HomeScreen
from gpuwatch.tui.terminal import first_picture
from gpuwatch.tui.widgets.line import Line
from tests.conftest import Cli
from tests.terminal import TAKEN_OVER, Pty

from ..conftest import Fake
from ..harness import running, shows
from ..sessions import Script, write
from ..test_imports import loaded_by

SIZE = (100, 30)
OTHER_SCREEN = "\x1b[?1049h"
FINISHED = {"result": {"code": 0, "t": 30_000_000_000}}


def saved(path: Path) -> Path:
    write(path, Script(seconds=30, alive=False, meta=FINISHED))
    return path


def cells(sent: bytes, size: tuple[int, int] = SIZE) -> list[list[tuple[object, ...]]]:
    """Every cell of a terminal that was sent so much: its character and how it looks."""
    screen = pyte.Screen(*size)
    stream = pyte.ByteStream(screen)
    stream.feed(sent)
    return [
        [
            (cell.data, cell.fg, cell.bg, cell.bold, cell.reverse)
            for cell in (screen.buffer[y][x] for x in range(size[0]))
        ]
        for y in range(size[1])
    ]


@pytest.mark.parametrize("module", ["live.opening", "home.opening", "home.listing"])
def test_it_needs_no_textual(module: str) -> None:
    loaded = loaded_by(f"gpuwatch.tui.{module}")
    assert not [name for name in loaded if name.partition(".")[0] in ("textual", "asyncio")]
    assert "rich.console" not in loaded


@pytest.mark.parametrize(
    ("options", "variables"),
    [
        ((), {"COLORTERM": "truecolor"}),
        (("--theme", "light"), {"COLORTERM": "truecolor"}),
        ((), {"COLORTERM": "", "TERM": "xterm-256color"}),
        ((), {"COLORTERM": "", "TERM": "xterm"}),
        ((), {"NO_COLOR": "1"}),
        (("--ascii",), {"COLORTERM": "truecolor"}),
    ],
)
def test_of_a_session_it_is_the_one_that_textual_draws(
    cli: Cli, tmp_path: Path, options: Sequence[str], variables: dict[str, str]
) -> None:
    env = {**cli.env, "TERM": "xterm-256color", **variables}
    terminal = Pty(cli.argv(*options, "replay", str(saved(tmp_path / "s.gpuwatch"))), SIZE, env)
    try:
        early, _, _ = terminal.wait(TAKEN_OVER).partition(TAKEN_OVER.encode())
        terminal.quiet(1.0)
        first, last = cells(early), cells(terminal.sent)
        assert "utilization" in "".join(str(cell[0]) for row in first for cell in row)
        assert first == last
        assert terminal.text().count(OTHER_SCREEN) == 1
        terminal.type("q")
        assert terminal.end() == 0
    finally:
        terminal.close()


def test_a_moment_that_is_asked_for_is_not_preceded_by_another(cli: Cli, tmp_path: Path) -> None:
    path = saved(tmp_path / "s.gpuwatch")
    terminal = Pty(cli.argv("replay", str(path), "--at", "10"), SIZE, cli.env)
    try:
        early, _, _ = terminal.wait(TAKEN_OVER).partition(TAKEN_OVER.encode())
        assert b"utilization" not in early
        terminal.wait("utilization")
        terminal.type("q")
        assert terminal.end() == 0
    finally:
        terminal.close()


def test_a_file_that_cannot_be_shown_is_told_as_without_it(cli: Cli, tmp_path: Path) -> None:
    broken = tmp_path / "broken.gpuwatch"
    broken.write_bytes(b"SQLite format 3\0" + bytes(range(256)) * 64)
    terminal = Pty(cli.argv("replay", str(broken)), SIZE, cli.env)
    try:
        assert terminal.end() != 0
        assert "gpuwatch: error: " in terminal.text().partition("\x1b[?1049l")[2]
        assert "Traceback" not in terminal.text()
    finally:
        terminal.close()


def test_the_home_screen_takes_over_what_was_read(cli: Cli) -> None:
    home = cli.home / ".local/share/gpuwatch/studies/20260101-000000-mnist-cnn"
    saved(home / "01-bare.gpuwatch")
    terminal = Pty(cli.argv("--interval", "1"), SIZE, cli.env)
    try:
        terminal.wait(TAKEN_OVER)
        terminal.wait("mnist-cnn")
        terminal.wait("no GPU")
        terminal.quiet(0.3)
        shown = ["".join(str(cell[0]) for cell in row).rstrip() for row in cells(terminal.sent)]
        assert any("sessions  1" in row for row in shown)
        terminal.type("q")
        assert terminal.end() == 0
    finally:
        terminal.close()


class Recorder(MachineRecorder):
    """One whose session is there when the test says so."""

    def __init__(self) -> None:
        self.path: Path | None = None

    def session(self) -> Path | None:
        return self.path


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The pictures, as text."""
    pictures: list[str] = []

    def draw(lines: Sequence[Line], look: DisplayOptions) -> None:
        pictures.append("\n".join("".join(text for text, _ in line.spans()) for line in lines))

    monkeypatch.setattr(first_picture, "size", lambda: SIZE)
    monkeypatch.setattr(first_picture, "draw", draw)
    return pictures


def lister(tmp_path: Path, source: str) -> tuple[str, ...]:
    """A command in place of gpuwatch's own."""
    program = tmp_path / "lister.py"
    program.write_text(source)
    return sys.executable, str(program)


def until(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.01)


EMPTY = 'print(\'{"sessions": [], "studies": []}\')'


@pytest.fixture
def opening(tmp_path: Path, drawn: list[str]) -> Iterator[tuple[HomeOpening, Recorder]]:
    recorder = Recorder()
    listing = HomeListing(lister(tmp_path, EMPTY))
    found = HomeOpening(recorder, listing, USUAL)
    yield found, recorder
    found.close()
    listing.close()


def test_home_is_drawn_as_soon_as_more_of_it_is_known(
    opening: tuple[HomeOpening, Recorder], drawn: list[str], tmp_path: Path
) -> None:
    found, recorder = opening
    until(lambda: bool(drawn))
    assert "looking at the devices" in drawn[0] and "q leave" in drawn[0]
    recorder.path = saved(tmp_path / "machine.gpuwatch")
    until(lambda: len(drawn) > 1)
    assert "H100" in drawn[-1] and found.collector is not None
    found.hand_over()
    read = found.read_list()
    assert read is not None and read.listed.entries == () and read.complaint is None
    found.collector.reader.close()


def test_after_the_hand_over_nothing_is_drawn(
    opening: tuple[HomeOpening, Recorder], drawn: list[str], tmp_path: Path
) -> None:
    found, recorder = opening
    found.hand_over()
    before = len(drawn)
    recorder.path = saved(tmp_path / "machine.gpuwatch")
    assert found.read_list() is not None
    assert len(drawn) == before and found.collector is None


def test_a_list_that_fails_says_why(tmp_path: Path, drawn: list[str]) -> None:
    source = "import sys; sys.exit('gpuwatch: error: the folder burns')"
    listing = HomeListing(lister(tmp_path, source))
    found = HomeOpening(Recorder(), listing, USUAL)
    until(lambda: bool(drawn))
    assert "the folder burns" in drawn[0]
    found.close()
    listing.close()


async def test_leaving_waits_for_no_list_that_takes_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fake: Fake
) -> None:
    monkeypatch.setattr(first_picture, "size", lambda: None)
    listing = HomeListing(lister(tmp_path, "import time; time.sleep(600)"))
    found = HomeOpening(Recorder(), listing, USUAL)
    found.hand_over()
    async with running(lambda: HomeScreen(opening=found)) as (_, pilot):
        await shows(pilot, "reading the sessions")
        begun = time.monotonic()
    assert time.monotonic() - begun < 5 and not found._thread.is_alive()
    listing.close()


def test_closing_ends_a_list_that_takes_for_ever(tmp_path: Path, drawn: list[str]) -> None:
    listing = HomeListing(lister(tmp_path, "import time; time.sleep(600)"))
    found = HomeOpening(Recorder(), listing, USUAL)
    begun = time.monotonic()
    found.close()
    listing.close()
    assert found.read_list() is None and not drawn and time.monotonic() - begun < 5
    assert listing._process.returncode is not None


@pytest.mark.parametrize("colorterm", [None, "truecolor", " 24bit ", "yes"])
@pytest.mark.parametrize(
    "term", ["xterm", "xterm-256color", "XTERM-256COLOR", "screen-16color", "xterm-kitty", "linux"]
)
def test_colours_are_those_that_the_screen_will_have(colorterm: str | None, term: str) -> None:
    environment = {"TERM": term} | ({} if colorterm is None else {"COLORTERM": colorterm})
    console = Console(force_terminal=True, legacy_windows=False, _environ=environment)
    assert first_picture.color_system(environment) is console._color_system
