"""The home screen: first contact, the list, and the ways from it."""

from __future__ import annotations

import contextlib
import math
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.reading.status import State, process_id
from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.compare.screen import CompareScreen
from gpuwatch.tui.display_options import DisplayOptions
from gpuwatch.tui.feed.feed import DevicesNow
from gpuwatch.tui.feed.snapshot import Alert, Trouble, Unreadable
from gpuwatch.tui.home import screen as home_screen
from gpuwatch.tui.home.screen import DemoScreen, HomeScreen
from gpuwatch.tui.home.watch import little_room
from gpuwatch.tui.live.screen import LiveScreen
from tests import waiting
from tests.disks import mounted

from ..conftest import ROOT, Fake, entry
from ..harness import drawn, live, on_top, running, screen_text, shows, until
from ..sessions import finished

pytestmark = pytest.mark.usefixtures("programs")

Make = Callable[..., Path]


@pytest.fixture
def two(session: Make, fake: Fake) -> list[Path]:
    """Two finished sessions, listed."""
    paths = [
        session(meta=finished(), alive=False),
        session("02-docker", environment="docker=image", meta=finished(), alive=False),
    ]
    fake.list(*(entry(path) for path in paths))
    return paths


async def test_devices_now_come_from_a_recorder_that_ends_with_the_screen(fake: Fake) -> None:
    async with running(HomeScreen) as (_, pilot):
        await shows(pilot, "H100 80GB HBM3")
        recording = next(call for call in fake.asked if call[0] == "--record")
        folder = Path(recording[recording.index("--out") + 1])
        assert recording[recording.index("--while-pid") + 1] == str(os.getpid())
        assert "--quiet" in recording and folder.exists()
    assert not folder.exists()


async def test_a_recorder_that_cannot_start_is_told(
    fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_GPUS", "many")
    async with running(HomeScreen) as (_, pilot):
        await shows(pilot, "the devices cannot be recorded: ValueError")
        await shows(pilot, "r tries again")
        monkeypatch.setenv("FAKE_GPUS", "2")
        await pilot.press("r", shows="2 × H100 80GB HBM3")


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A disk of 64 MiB."""
    with mounted(tmp_path / "small", "size=64m") as folder:
        yield folder


async def test_a_disk_of_recordings_that_is_nearly_full_is_a_warning_after_the_others(
    fake: Fake, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = "! 14.0 MiB of 64.0 MiB left on the disk of recordings"
    (small / "other").write_bytes(bytes(50 << 20))
    async with running(HomeScreen) as (app, pilot):
        await shows(pilot, "H100 80GB HBM3")
        monkeypatch.setenv("XDG_DATA_HOME", str(small))
        await shows(pilot, told)
        home = app.screen
        assert isinstance(home, HomeScreen) and home.state.devices is not None
        home.take(replace(home.state.devices, alerts=(Alert("lost", "gpu0", "GPU 0 is lost"),)))
        lost, disk = home.warnings()
        assert lost == "GPU 0 is lost" and told[2:] in disk
        await pilot.press("i", shows="every number")
        await shows(pilot, told)


def test_a_small_disk_is_not_nearly_full_before_it_is(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(small))
    assert little_room() == ""


async def test_the_disk_here_is_no_matter_of_the_demo(
    fake: Fake, two: list[Path], small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (small / "other").write_bytes(bytes(50 << 20))
    fake.list(entry(two[0]))
    async with running(lambda: DemoScreen(two[0], refresh=0.1), (110, 34)) as (app, pilot):
        await shows(pilot, "sessions  1")
        monkeypatch.setenv("XDG_DATA_HOME", str(small))
        fake.list(*map(entry, two))
        await shows(pilot, "sessions  2")  # the disk is looked at before
        await shows(pilot, "of another machine")
        assert "left on the disk" not in screen_text(app)


async def test_why_a_run_failed_is_told_below_its_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    program = "import sys; print('busy', file=sys.stderr); import no_such_module"
    command = [sys.executable, "-m", "gpuwatch", "--record", "--quiet", "--", sys.executable]
    done = subprocess.run([*command, "-c", program], cwd=ROOT, check=False, capture_output=True)
    assert done.returncode == 1
    async with running(HomeScreen) as (_, pilot):
        await shows(pilot, "✗ failed")
        await shows(pilot, "✗ exit code 1: ModuleNotFoundError: No module named 'no_such_module'")


async def test_the_graphs_stand_still_while_the_cursor_moves(two: list[Path], fake: Fake) -> None:
    why = {"status": "failed", "status_text": "exit code 1: " + "it has a long reason " * 9}
    fake.list(entry(two[0]), entry(two[1], **why))

    def heading(app: GpuwatchApp) -> int:
        rows = screen_text(app).splitlines()
        return next(at for at, row in enumerate(rows) if row.startswith("── sessions"))

    async with running(HomeScreen) as (app, pilot):
        await shows(pilot, "H100 80GB HBM3")
        await pilot.press("end", shows="✗ exit code 1: it has")
        row = heading(app)
        await pilot.press("home", hides="✗ exit code 1")
        assert heading(app) == row


async def test_what_is_sought_has_all_rows_and_the_cursor_on_its_first_one(
    two: list[Path], fake: Fake
) -> None:
    why = {"status": "failed", "status_text": "exit code 1: " + "it has a long reason " * 9}
    fake.list(entry(two[0]), entry(two[1]), entry(fake.folder / "a.gpuwatch", **why))
    async with running(HomeScreen) as (app, pilot):
        screen = on_top(app, HomeScreen)
        await shows(pilot, "✗ failed")
        await pilot.press("end", shows="✗ exit code 1: it has")
        await pilot.press("up", "slash", *"finished", "enter")
        await until(pilot, lambda: len(screen.state.items) == 2)
        assert screen.state.cursor == 0
        await until(pilot, lambda: screen.query_one("#foot").size.height == 1)
        await pilot.press("down", "escape")
        await until(pilot, lambda: len(screen.state.items) == 3)
        assert screen.state.cursor == 1, "all is shown again around what was found"


async def test_in_ascii_a_bound_is_told_from_a_smaller_value(session: Make, fake: Fake) -> None:
    fake.list(
        entry(session(alive=False), peak_gpu_memory_bytes=2**30, peak_gpu_memory_method="bound")
    )
    look = DisplayOptions(ascii=True)
    async with running(HomeScreen, (160, 40), look) as (_, pilot):
        await shows(pilot, "<=1.00 GiB")


async def test_enter_opens_the_session_under_the_cursor(two: list[Path]) -> None:
    async with running(HomeScreen) as (app, pilot):
        await shows(pilot, "✓ finished")
        await pilot.press("down", "enter", opens=LiveScreen)
        assert isinstance(app.screen, LiveScreen) and app.screen.path == two[1]
        await shows(pilot, "docker=image")
        await pilot.press("escape", opens=HomeScreen)
        home = on_top(app, HomeScreen)
        await until(pilot, lambda: home.state.cursor == 1)


async def test_two_marks_and_c_compare(two: list[Path]) -> None:
    async with running(HomeScreen) as (app, pilot):
        await shows(pilot, "✓ finished")
        await pilot.press("c", shows="mark two sessions")
        await pilot.press("space", "space", shows="1 ✓ finished")
        await pilot.press("c", opens=CompareScreen)
        assert isinstance(app.screen, CompareScreen) and app.screen.paths == two
        await shows(pilot, "typical step +0.0 %")
        await pilot.press("q", opens=HomeScreen)


async def test_a_mark_can_be_taken_back(two: list[Path]) -> None:
    async with running(HomeScreen) as (_, pilot):
        await shows(pilot, "✓ finished")
        await pilot.press("space", "up", "space", hides=" 1 ✓")
        await pilot.press("up", "space", "escape", hides=" 1 ✓")


async def test_r_reads_the_list_again_and_keeps_the_cursor(two: list[Path], fake: Fake) -> None:
    async with running(HomeScreen) as (_, pilot):
        await shows(pilot, "sessions  2")
        await pilot.press("down")
        fake.list(entry(Path("/new.gpuwatch")), *(entry(path) for path in two))
        await pilot.press("r", shows="sessions  3")
        await shows(pilot, str(two[1])[:40])


async def test_a_list_that_fails_says_why(fake: Fake) -> None:
    (fake.folder / "sessions.json").unlink()
    async with running(HomeScreen) as (_, pilot):
        await shows(pilot, "✗ FileNotFoundError")


async def test_a_long_list_scrolls_with_the_cursor(fake: Fake) -> None:
    fake.list(*(entry(Path(f"/x/{n:03d}.gpuwatch"), workload=f"run-{n:03d}") for n in range(300)))
    async with running(HomeScreen) as (_, pilot):
        await shows(pilot, "run-000")
        await pilot.press("end", shows="run-299")
        await pilot.press("pageup", hides="run-299")
        await pilot.press("home", shows="/x/000.gpuwatch")


@pytest.mark.parametrize("gpus", [0, 1, 8])
async def test_the_smallest_screen_has_a_session_and_what_is_sought_stands_below_it(
    fake: Fake, monkeypatch: pytest.MonkeyPatch, gpus: int
) -> None:
    monkeypatch.setenv("FAKE_GPUS", str(gpus))
    fake.list(*(entry(fake.folder / f"{n}.gpuwatch") for n in range(20)))
    async with running(HomeScreen, (40, 8)) as (app, pilot):
        await until(pilot, lambda: bool(re.search(r"\d %(.*\n)+ +✓ finished", screen_text(app))))
        await pilot.press("slash", *"finished", shows="\n find: finished")
        assert "✓ finished" in screen_text(app)


async def test_a_lost_run_is_taken_up_and_shown(session: Make, fake: Fake) -> None:
    path = session()
    fake.list(entry(path, status="lost"))
    async with running(HomeScreen) as (_, pilot):
        await shows(pilot, "a record on")
        await pilot.press("a", opens=LiveScreen)
    assert ["attach", "--record", "--detach", str(path)] in fake.asked


async def test_stopping_from_the_list_asks_first(session: Make, fake: Fake) -> None:
    path = session()
    fake.list(entry(path, status="running"))
    async with running(HomeScreen) as (_, pilot):
        await shows(pilot, "s stop")
        await pilot.press("s", shows="Stop this run?")
        await shows(pilot, "mnist-cnn in bare, started")
        await pilot.press("enter")  # lets it go on
        await shows(pilot, "s stop")
        await pilot.press("s", "right", "enter")
        await until(pilot, lambda: ["stop", str(path)] in fake.asked)
    assert [call for call in fake.asked if call[0] == "stop"] == [["stop", str(path)]]


async def test_a_lost_run_whose_processes_are_gone_is_closed_and_told_so_in_one_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_DATA_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    killed_with_its_recorder()
    async with running(HomeScreen) as (_, pilot):
        await shows(pilot, "? lost")
        await pilot.press("s", shows="End what is left of this run?")
        await pilot.press("right", "enter", shows="» closed steps.py in bare, started ")
        await shows(pilot, ": its run had ended")
        await pilot.press("s", "right", "enter", shows="» steps.py in bare, started ")
        await shows(pilot, " is not running")
        await pilot.app.workers.wait_for_complete()


def killed_with_its_recorder() -> Path:
    """A real run of which neither the recorder nor any process is left."""
    program = [sys.executable, str(ROOT / "tests" / "cli" / "steps.py"), "100000", "0.05"]
    command = [sys.executable, "-m", "gpuwatch", "--record", "--detach", "--", *program]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    path = Path(done.stdout.strip())
    with SessionReader(path) as reader:
        known = reader.meta()
    recorder, holder = process_id(known["recorder"]), process_id(known["handle"]["holder"])
    assert recorder is not None and holder is not None
    children = Path(f"/proc/{holder.pid}/task/{holder.pid}/children").read_text().split()
    for pid in (recorder.pid, holder.pid, *map(int, children)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    waiting.until(lambda: not (recorder.alive() or holder.alive()), "they were killed")
    return path


async def test_q_leaves(fake: Fake) -> None:
    async with running(HomeScreen) as (app, pilot):
        await pilot.press("q")
    assert app.return_value == 0 and app.farewell == []


# The form.


@pytest.mark.parametrize("listed", ["the same way", "by another path", "not at all"])
async def test_a_run_that_c_was_pressed_on_stays_marked_until_another_is(
    session: Make, fake: Fake, tmp_path: Path, listed: str
) -> None:
    folder = session(meta=finished(), alive=False).parent
    other = session("elsewhere", meta=finished(), alive=False)
    (tmp_path / "link").symlink_to(folder)
    path = folder / "01-bare.gpuwatch"
    apart = tmp_path / "apart"
    apart.mkdir()
    other = other.rename(apart / other.name)
    opened = tmp_path / "link" / path.name if listed == "by another path" else path
    fake.list(entry(other), *([entry(path)] if listed != "not at all" else []))
    async with live(opened) as (app, pilot):
        await pilot.press("c", shows="this run is marked")
        home = on_top(app, HomeScreen)
        await until(pilot, lambda: bool(home.state.entries))
        if listed == "not at all":
            await shows(pilot, "not listed")
            await pilot.press("c")
        else:
            assert home.state.marked == (path,)
            assert home.state.entries is not None
            assert home.state.entries[home.state.cursor].path == path
            await pilot.press("home", "space", "c")
        await until(pilot, lambda: isinstance(app.screen, CompareScreen))
        first = opened if listed == "not at all" else path
        assert on_top(app, CompareScreen).paths == [first, other]


async def test_histories_and_panels_are_there_again_after_another_screen(
    fake: Fake, session: Make
) -> None:
    session(meta=finished(), alive=False)
    async with running(HomeScreen, (120, 40)) as (app, pilot):
        home = on_top(app, HomeScreen)
        await drawn(pilot)
        before = home.state.devices
        assert before is not None
        await pilot.press("n")
        await until(pilot, lambda: app.screen is not home)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is home)
        await until(
            pilot,
            lambda: (
                home.state.devices is not before
                and home.state.devices is not None
                and home.state.devices.view == before.view
            ),
        )


@pytest.mark.parametrize("key", ["p", "i"])
async def test_the_recorder_of_the_devices_goes_on_below_pages_of_now(fake: Fake, key: str) -> None:
    async with running(HomeScreen, (120, 40)) as (app, pilot):
        home = on_top(app, HomeScreen)
        await until(pilot, lambda: home.state.devices is not None)
        recorder = home._devices
        await pilot.press(key)
        await until(pilot, lambda: app.screen is not home)
        shown = home.state.devices
        await until(pilot, lambda: home.state.devices is not shown)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is home)
        assert home._devices is recorder is not None


async def test_recorders_that_die_one_after_another_are_given_up_until_r(
    fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DevicesNow, "last_words", lambda _: "no space left on device")
    monkeypatch.setattr(home_screen, "_DEATHS_SECONDS", math.inf)
    async with running(HomeScreen, (120, 40)) as (app, pilot):
        home = on_top(app, HomeScreen)
        for _ in range(3):
            await until(pilot, lambda: home.state.devices is not None)
            shown = home.state.devices
            assert shown is not None
            home.take(replace(shown, status=replace(shown.status, state=State.LOST, live=False)))
        assert home._devices is None and home.state.devices is None
        await shows(
            pilot, "the devices cannot be recorded: no space left on device (r tries again)"
        )
        assert "p processes" not in screen_text(app), "there are none to show"
        await pilot.press("r", shows="H100 80GB HBM3")


async def test_the_page_of_processes_says_why_the_devices_are_not_recorded(fake: Fake) -> None:
    async with running(HomeScreen) as (app, pilot):
        home = on_top(app, HomeScreen)
        await until(pilot, lambda: home.state.devices is not None)
        await pilot.press("p", shows="this machine")
        home.take(Unreadable(Trouble("the devices cannot be recorded: the disk is full")))
        await shows(pilot, "the devices cannot be recorded: the disk is full")


async def test_keys_that_need_a_session_are_offered_with_one(fake: Fake, session: Make) -> None:
    async with running(HomeScreen, (160, 40)) as (app, pilot):
        await shows(pilot, "No run was recorded yet")
        keys = screen_text(app).splitlines()[-1]
        assert "n new run" in keys
        assert not any(word in keys for word in ("mark", "compare", "find", "delete", "report"))
        fake.list(entry(session(meta=finished(), alive=False)))
        await pilot.press("r", shows="c compare")
        await pilot.press("slash", shows="esc cancel")
        assert "/ find" not in screen_text(app)


async def test_a_recorder_of_the_devices_that_died_is_replaced_and_it_is_said(fake: Fake) -> None:
    async with running(HomeScreen, (120, 40)) as (app, pilot):
        home = on_top(app, HomeScreen)
        await until(pilot, lambda: home.state.devices is not None)
        shown, first = home.state.devices, home._devices
        assert shown is not None
        home.take(replace(shown, status=replace(shown.status, state=State.LOST, live=False)))
        assert home._devices not in (None, first) and home.state.devices is shown
        await shows(pilot, "the recorder of the devices died: another one was started")
        await until(pilot, lambda: home.state.devices is not shown)
