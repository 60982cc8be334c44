"""The screen of machines elsewhere, of sessions that were recorded."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gpuwatch.session.machine_now import MachineNow
from gpuwatch.session.rows import GpuProcessRow
from gpuwatch.tui.feed.processes import ProcessNow
from gpuwatch.tui.home.fleet.reader import Host, first_shown, host_rows
from gpuwatch.tui.home.fleet.screen import FleetScreen, MachineTable
from gpuwatch.tui.live.screen import MachineScreen
from gpuwatch.tui.new_run.screen import NewRunScreen

from ..conftest import Fake, entry
from ..harness import running, screen_text, shows, until
from ..sessions import finished

Make = Callable[..., Path]


def there(name: str, session: Path | None) -> MachineNow:
    return MachineNow(name, session, None, time.monotonic() + 3600)  # heard of all the time


async def test_each_machine_has_its_gpus_below_it(session: Make, fake: Fake) -> None:
    one, two = session("one", gpus=2), session("two", gpus=1)
    away = MachineNow("ssh=c", None, "no \x1b[31mroute", time.monotonic() - 65)
    now = (there("ssh=a", one), there("ssh=b", two), away, MachineNow("ssh=d"))
    async with running(lambda: FleetScreen(lambda: now), (120, 40)) as (app, pilot):
        await shows(pilot, "RAM")
        lines = screen_text(app).splitlines()
        assert lines[0].startswith(" gpuwatch 4 machines, 1 away")
        rows = lines[next(n for n, line in enumerate(lines) if "utilization" in line) + 1 :]
        assert [line.split()[0].lstrip("▸") for line in rows[:7]] == [
            "ssh=a", "0", "1", "ssh=b", "0", "ssh=c", "ssh=d",
        ]  # fmt: skip
        assert "/700 W" in rows[1] and "GiB" in rows[2]
        assert re.search(r"last heard [1-9]\d*:\d\d ago$", rows[5]) and "\x1b" not in rows[5]
        assert "is being reached" in rows[6]
        await pilot.press("down", "enter", opens=MachineScreen)
        assert isinstance(app.screen, MachineScreen) and app.screen.path == two
        await pilot.press("s", "e", "c", "escape", opens=FleetScreen)


async def test_numbers_of_a_machine_that_fell_silent_are_not_shown(
    session: Make, fake: Fake
) -> None:
    silent = MachineNow("ssh=a", session("one"), None, time.monotonic() - 65)
    async with running(lambda: FleetScreen(lambda: (silent,)), (100, 20)) as (app, pilot):
        told = r"away: nothing is heard of it, last heard [1-9]\d*:\d\d ago"
        await until(pilot, lambda: re.search(told, screen_text(app)) is not None)
        assert "GiB" not in screen_text(app)


class Busy(FleetScreen):
    """On the first GPU of each machine is a process."""

    def take(self, hosts: tuple[Host, ...]) -> None:
        use = (GpuProcessRow(0, "gpu0", 1, None, None, 9, True, share=0.5),)
        one = ProcessNow(11, "train.py", "alice", False, None, use, 1.0, 2**30, 0, True, 10**9)
        super().take(
            tuple(
                replace(host, snapshot=host.snapshot and replace(host.snapshot, processes=(one,)))
                for host in hosts
            )
        )


async def test_processes_are_of_the_selected_machine_and_sessions_of_here(
    session: Make, fake: Fake
) -> None:
    fake.list(entry(session("run", meta=finished(), alive=False)))
    now = (there("ssh=a", session("one", gpus=2)), MachineNow("ssh=b", None, "no route"))
    async with running(lambda: Busy(lambda: now), (140, 45)) as (app, pilot):
        await shows(pilot, "processes on the GPUs of ssh=a")
        await shows(pilot, "sessions  1")
        await pilot.press("tab", shows="Enter details")
        assert "k signal" not in screen_text(app), "they do not run here"
        await pilot.press("tab", shows="space mark")
        await pilot.press("shift+tab", "shift+tab", "down", hides="processes on")


async def test_machines_are_narrowed_by_words_and_by_being_away(session: Make, fake: Fake) -> None:
    fake.list(entry(session("run", meta=finished(), alive=False)))
    now = (there("ssh=a", session("one")), MachineNow("ssh=b", None, "no route"))
    async with running(lambda: FleetScreen(lambda: now), (100, 30)) as (app, pilot):
        await shows(pilot, "2 machines")
        await shows(pilot, "ssh=a")
        await shows(pilot, "ssh=b")
        await pilot.press("slash", *"away", hides="ssh=a")
        await pilot.press("enter", shows="ssh=b")
        await shows(pilot, "/away")
        await until(pilot, lambda: isinstance(app.focused, MachineTable))
        await pilot.press("escape", shows="ssh=a")
        await pilot.press("slash", *"nothing", "enter")
        await shows(pilot, "no machine matches nothing: Esc shows all")


async def test_alerts_of_machines_out_of_sight_are_told(session: Make, fake: Fake) -> None:
    hot = session("hot", gpus=1, throttled=True)
    now = (*(there(f"ssh=gpu{n}", session(f"n{n}", gpus=8)) for n in range(4)), there("ssh=z", hot))
    async with running(lambda: FleetScreen(lambda: now), (100, 30)) as (app, pilot):
        await shows(pilot, " ! ssh=z: ")
        assert "▸ssh=gpu0" in screen_text(app) and "\n ssh=z" not in screen_text(app)
        await pilot.press("end", shows="▸ssh=z")
        await shows(pilot, "! 1 warning")


async def test_a_click_selects_a_machine_and_a_double_click_opens_it(
    session: Make, fake: Fake
) -> None:
    now = (there("ssh=a", session("one")), there("ssh=b", session("two")))
    async with running(lambda: FleetScreen(lambda: now), (100, 30)) as (app, pilot):
        await shows(pilot, "▸ssh=a")
        await shows(pilot, "ssh=b")
        y = next(n for n, line in enumerate(screen_text(app).splitlines()) if "ssh=b" in line)
        await pilot.click(offset=(5, y))
        await shows(pilot, "▸ssh=b")
        await pilot.click(offset=(5, y), times=2)
        await until(pilot, lambda: isinstance(app.screen, MachineScreen))


@pytest.mark.parametrize(
    ("place", "filled"), [("ssh=gpu1,python=py", "ssh=gpu1,python=py"), ("slurm,job=4711", "")]
)
async def test_a_new_run_is_for_the_selected_machine(fake: Fake, place: str, filled: str) -> None:
    async with running(lambda: FleetScreen(lambda: (MachineNow(place),))) as (app, pilot):
        await shows(pilot, "1 machine")
        await pilot.press("n", opens=NewRunScreen)
        assert isinstance(app.screen, NewRunScreen) and app.screen.form.on == filled


async def test_sixty_four_machines_are_scrolled(session: Make, fake: Fake) -> None:
    path = session("one", gpus=8)
    now = tuple(there(f"ssh=gpu{n}", path) for n in range(64))
    async with running(lambda: FleetScreen(lambda: now), (80, 24)) as (_, pilot):
        await shows(pilot, "▸ssh=gpu0 ")
        await shows(pilot, " gpuwatch 64 machines, 63 not in sight")
        await pilot.press("end", shows="▸ssh=gpu63")
        await pilot.press("up", "up", shows="▸ssh=gpu61")
        await pilot.press("home", shows="▸ssh=gpu0 ")


async def test_rows_that_have_no_room_are_told(session: Make, fake: Fake) -> None:
    run = session("run", meta=finished(), alive=False)
    fake.list(*[entry(run)] * 30)
    path = session("one", gpus=8)
    now = (there("ssh=a", path), there("ssh=b", path))
    async with running(lambda: FleetScreen(lambda: now), (120, 40)) as (app, pilot):
        await shows(pilot, "2 more rows of ssh=b\n")
        await pilot.press("down", hides="more rows of")
        assert screen_text(app).count("/700 W") == 8


def test_rows_fit_every_width() -> None:
    host = Host("ssh=" + "x" * 300, None, "y" * 300, 65.0, None)
    for width in (40, 60, 80, 240):
        assert all(row.used <= width for row in host_rows(host, True, width))


def test_the_selected_machine_is_whole_where_it_can_be() -> None:
    hosts = [Host(f"ssh={n}", None, None, None, None) for n in range(10)]
    assert [first_shown(hosts, n, 0, 4) for n in (0, 3, 4, 9)] == [0, 0, 1, 6]
    assert first_shown(hosts, 2, 5, 4) == 2
    assert first_shown(hosts, 9, 0, 0) == 9
