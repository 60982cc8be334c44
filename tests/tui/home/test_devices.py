"""The head of the home screen: GPUs with their memory, who is on them, and the CPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gpuwatch.tui.commands import Entry
from gpuwatch.tui.feed.snapshot import MISSING, Snapshot
from gpuwatch.tui.home.devices import device_rows, on_gpu_rows
from gpuwatch.tui.home.list import Item
from gpuwatch.tui.home.rows import HomeState, home_rows, short_path
from gpuwatch.tui.home.screen import HomeScreen

from ..conftest import Fake
from ..harness import running, until
from ..process_sessions import LOADERS, RUN, STRANGER, Made, add
from ..snapshots_of import snapshot_of, texts

Make = Callable[..., Path]


def machine(session: Make, *processes: Made, file: str = "01-bare", gpus: int = 1) -> Snapshot:
    return snapshot_of(add(session(file, kind="machine", gpus=gpus), *processes))


@pytest.mark.parametrize("width", [60, 80, 100, 120, 160, 200])
def test_every_gpu_has_a_bar_of_its_memory_beside_that_of_its_use(
    session: Make, width: int
) -> None:
    told = texts(device_rows(machine(session, gpus=8), width, 40))
    cells = [row for row in told if "GiB" in row and "W" in row]
    assert len(cells) == (4 if width >= 140 else 8)
    assert all(len(row) <= width for row in told)
    one = cells[0][: width // 2] if width >= 140 else cells[0]
    before, between = one.split(" %")[0], one.split(" %")[1]
    assert before.count("━") + before.count("─") > 4
    assert between.count("━") + between.count("─") > 4


def test_gpus_that_do_not_fit_are_counted(session: Make) -> None:
    told = texts(device_rows(machine(session, gpus=16), 60, 20))
    assert told[-3].strip() == "11 more GPUs"


def test_a_gpu_that_is_alone_has_two_bars_where_there_is_room(session: Make) -> None:
    snapshot = machine(session, gpus=1)
    assert any(row.startswith(" memory ") for row in texts(device_rows(snapshot, 80, 23)))
    short = texts(device_rows(snapshot, 60, 15))
    assert not any(row.startswith(" memory ") for row in short) and "GiB" in short[1]


def test_an_unknown_clock_of_the_cpu_is_left_out(session: Make) -> None:
    snapshot = machine(session, gpus=0)
    assert "GHz" in texts(device_rows(snapshot, 80, 23))[-1]
    (cpu,) = [device for device in snapshot.devices if device.row.kind == "cpu"]
    unknown = replace(cpu, readings={**cpu.readings, "hw.cpu.frequency": MISSING})
    told = texts(device_rows(replace(snapshot, devices=(unknown,)), 80, 23))
    assert told[-1].rstrip().endswith("GiB")


def test_only_processes_on_gpus_are_told_and_no_more_than_there_is_room_for(session: Make) -> None:
    snapshot = machine(session, RUN, *LOADERS, STRANGER)
    told = texts(on_gpu_rows(snapshot, 80, 9))
    assert "on the GPUs" in told[0] and "4711" in told[2] and "31337" in told[3] and len(told) == 4
    assert len(texts(on_gpu_rows(snapshot, 80, 3))) == 3 and on_gpu_rows(snapshot, 80, 1) == []
    assert "no process on the GPUs" in texts(on_gpu_rows(machine(session, file="02"), 80, 9))[0]
    assert on_gpu_rows(machine(session, *LOADERS, file="03", gpus=0), 80, 9) == []


@pytest.mark.parametrize(("height", "many", "there"), [(23, 30, 0), (23, 2, 2), (39, 30, 2)])
def test_processes_leave_eight_rows_to_the_list(
    session: Make, height: int, many: int, there: int
) -> None:
    run = Entry(Path("/s/01"), "finished", "gcn", "bare", "", 1.0, None, None, "s")
    items = tuple(Item(replace(run, path=Path(f"/s/{n}"))) for n in range(many))
    state = HomeState(
        devices=machine(session, RUN, STRANGER),
        entries=tuple(item.entry for item in items if item.entry),
        items=items,
    )
    rows, layout = home_rows(state, 80, height)
    assert sum("4711" in row or "31337" in row for row in texts(rows)) == there
    assert len(rows) == height and layout.count >= min(many, 8)


async def test_the_cpus_use_stays_until_a_new_recording_knows_it(fake: Fake, session: Make) -> None:
    async with running(HomeScreen) as (app, pilot):
        screen = app.screen
        assert isinstance(screen, HomeScreen)

        def has_cpu() -> bool:
            known = screen.state.devices
            return known is not None and any(each.row.kind == "cpu" for each in known.devices)

        await until(pilot, has_cpu)
        known = screen.state.devices
        assert known is not None
        devices = tuple(replace(device, readings={}) for device in known.devices)
        young = replace(known, devices=devices, t=1_000_000_000)
        screen.take(young)
        assert screen.state.devices is not young
        old = replace(young, t=5_000_000_000)
        screen.take(old)
        assert screen.state.devices is old


def test_a_path_is_cut_in_the_middle_and_its_file_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    path = Path("/home/me/.local/share/gpuwatch/studies/2026-a-study/01-bare.gpuwatch")
    assert short_path(path, 80) == "~/.local/share/gpuwatch/studies/2026-a-study/01-bare.gpuwatch"
    assert short_path(path, 40) == "~/.local/share/gpuwatc…/01-bare.gpuwatch"
    assert short_path(Path("/else/x.gpuwatch"), 40) == "/else/x.gpuwatch"
