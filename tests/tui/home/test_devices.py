"""The head of the home screen: GPUs with their memory, who is on them, and the CPU."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from gpuwatch.core.metrics import Method
from gpuwatch.core.units import NS
from gpuwatch.tui.feed.snapshot import Alert, Panel, Reading, Snapshot, View
from gpuwatch.tui.home.devices import alert_rows, device_rows, head_row
from gpuwatch.tui.home.rows import short_path
from gpuwatch.tui.home.screen import HomeScreen, held_texts, idle_gpus
from gpuwatch.tui.processes.table import on_gpus

from ..conftest import Fake
from ..harness import on_top, running, shows, until
from ..process_sessions import LOADERS, RUN, STRANGER, Made, add
from ..sessions import GIB
from ..snapshots_of import snapshot_of, texts

Make = Callable[..., Path]


def machine(session: Make, *processes: Made, file: str = "01-bare", gpus: int = 1) -> Snapshot:
    return snapshot_of(add(session(file, kind="machine", gpus=gpus), *processes))


@pytest.mark.parametrize("width", [60, 80, 100, 120, 160, 240])
def test_every_gpu_has_a_row_with_utilization_memory_power_and_temperature(
    session: Make, width: int
) -> None:
    rows = texts(device_rows(machine(session, gpus=8), width, 10))
    assert len(rows) == 10 and all(len(row) <= width for row in rows)
    assert "utilization" in rows[0] and "memory" in rows[0] and "temp" in rows[0]
    for number, row in enumerate(rows[1:-1]):
        assert row.startswith(f"  {number}  ") and " %" in row and "GiB" in row
        assert "/700 W" in row and "°C" in row
        assert row.count("━") + row.count("─") + row.count("╸") >= 6


@pytest.mark.parametrize("width", [80, 120, 200])
def test_rows_to_spare_go_to_one_gpu_after_the_other_and_the_total_has_one_with_its_mean(
    session: Make, width: int
) -> None:
    snapshot = machine(session, gpus=8)
    heights = range(18, 27) if width < 100 else range(10, 27)
    for height in heights:
        rows = texts(device_rows(snapshot, width, height))
        assert len(rows) == height and re.match(r" all [2-8].+8 busy, mean \d+ %", rows[-1])
        starts = [at for at, row in enumerate(rows) if row[:5].strip()]
        high = [end - start for start, end in pairwise(starts[1:])]
        assert len(high) == 8 and max(high) - min(high) <= 1


def test_a_narrow_row_names_the_owner_where_histories_have_no_room(session: Make) -> None:
    rows = texts(device_rows(machine(session, RUN, STRANGER, gpus=8), 80, 11))
    assert rows[0].endswith("  user, program") and "  +1 root workload" in rows[1]
    bound = texts(device_rows(machine(session, STRANGER, gpus=8, file="03"), 68, 11))
    assert bound[0].endswith("  user") and bound[1].endswith("  bob"), "programs would be cut alike"
    without = texts(device_rows(machine(session, RUN, gpus=8, file="02"), 60, 11))
    assert "user" not in without[0] and "─" in without[1].split("%")[1]


@pytest.mark.parametrize("width", [80, 100, 160])
def test_numbers_of_four_digits_stand_apart(session: Make, width: int) -> None:
    snapshot = machine(session, gpus=16)
    watts = Reading(1420.0, Method.MEASURED, None, "test")
    devices = tuple(
        replace(
            each,
            row=replace(each.row, attributes={**each.row.attributes, "power.limit": 1420.0}),
            readings={**each.readings, "hw.gpu.power": watts},
        )
        for each in snapshot.devices
    )
    rows = texts(device_rows(replace(snapshot, devices=devices), width, 18))
    assert len(rows) == 18
    assert all(" 1420/1420 W " in row and len(row) <= width for row in rows[1:-1])
    assert " 23/23 kW" in rows[-1]


def changed(snapshot: Snapshot, id_: str, **values: float | None) -> Snapshot:
    """With other readings of a GPU, by the last words of their metrics; and limits of H200."""
    limits = {"temperature.slowdown": 89, "temperature.operating.max": 87}
    devices = []
    for each in snapshot.devices:
        if each.row.id == id_:
            read = {
                f"hw.gpu.{name.replace('_', '.')}": Reading(value, Method.MEASURED, None, "test")
                for name, value in values.items()
            }
            row = replace(each.row, attributes={**each.row.attributes, **limits})
            each = replace(each, row=row, readings={**each.readings, **read})
        devices.append(each)
    return replace(snapshot, devices=tuple(devices))


@pytest.mark.parametrize(
    ("use", "share", "celsius", "marks"),
    [(0.09, 0.49, 86, "   "), (0.1, 0.5, 87, "•••"), (0.75, 0.9, 89, "▲▲▲")],
)
def test_loads_and_temperatures_have_a_level_by_colour_and_shape(
    session: Make, use: float, share: float, celsius: float, marks: str
) -> None:
    snapshot = machine(session, gpus=2)
    usage = share * (snapshot.gpus[0].memory_total or 0)
    told = changed(snapshot, "gpu0", utilization=use, memory_usage=usage, temperature=celsius)
    row, without = device_rows(told, 120, 4)[1:3]
    levels = {" ": "good", "•": "warn", "▲": "bad"}
    uses = {" ": "muted", "•": "text", "▲": "good"}  # no alarm where it works
    for unit, mark in zip(("%", "GiB", "°C"), marks, strict=True):
        text, role = next(each for each in row.spans() if each[0].rstrip().endswith(unit))
        assert mark.strip() in text and role == (uses if unit == "%" else levels)[mark]
    assert next(role for text, role in without.spans() if "°C" in text) == "strong", "no limits"


def test_the_total_leaves_a_lost_gpu_out_and_is_unknown_where_one_does_not_tell(
    session: Make,
) -> None:
    snapshot = changed(machine(session, gpus=4), "gpu1", utilization=0.0, power=None)
    total = texts(device_rows(snapshot, 100, 6))[-1]
    assert total.startswith(" all 3 of 4 busy") and "/320 GiB" in total
    assert total.endswith("—  held 1")
    lost = replace(snapshot, alerts=(Alert("lost", "gpu1", "GPU 1 is lost"),))
    total = texts(device_rows(lost, 100, 6))[-1]
    assert total.startswith(" all 3 of 3 busy") and "/240 GiB" in total
    assert total.endswith("/2100 W")


@pytest.mark.parametrize("gpus", [0, 1, 2, 8])
@pytest.mark.parametrize(("width", "height"), [(80, 21), (120, 16), (200, 30)])
def test_devices_fill_the_rows_that_are_left(
    session: Make, gpus: int, width: int, height: int
) -> None:
    snapshot = machine(session, gpus=gpus)
    panels = tuple(Panel(gpu, (0.5,) * 40) for gpu in snapshot.gpus)
    rows = texts(device_rows(replace(snapshot, panels=panels), width, height))
    assert len(rows) == height and max(map(len, rows)) <= width
    assert sum(not row.strip() for row in rows) <= 2, "but between two graphs"


def test_a_gpu_that_is_held_without_work_is_named_with_its_owner_and_since_when(
    session: Make,
) -> None:
    old, new = (
        replace(RUN, started=-50.0),
        replace(STRANGER, gpus=(("gpu1", GIB, 0.0),), started=30),
    )
    snapshot = machine(session, old, new, gpus=2)
    for id_ in ("gpu0", "gpu1"):
        snapshot = changed(snapshot, id_, utilization=0.0)
    began = replace(snapshot, t=5 * NS)
    idle = idle_gpus(None, began)
    now = replace(snapshot, t=100 * NS)
    first, second = held_texts(idle_gpus(idle, now), now)
    clock = r"(\d\d-\d\d )?\d\d:\d\d"
    assert re.fullmatch(
        rf"GPU 0: 36.0 GiB held without work since at least {clock} by root \(python .*\)", first
    )
    assert re.fullmatch(
        rf"GPU 1: 1.00 GiB held without work since {clock} by bob \(python sweep.py\)", second
    )
    assert held_texts(idle, replace(snapshot, t=64 * NS)) == [], "a minute is not over"
    busy = idle_gpus(idle, changed(now, "gpu0", utilization=0.5))
    assert "gpu0" not in busy
    again = idle_gpus(busy, replace(now, t=101 * NS))
    later = replace(now, t=170 * NS)
    assert "since at least" not in held_texts(again, later)[0], "it was seen at work"
    unseen = idle_gpus(busy, changed(now, "gpu0", utilization=None))
    assert "since at least" in held_texts(idle_gpus(unseen, later), later)[0]


def test_a_wide_row_names_user_and_program(session: Make) -> None:
    rows = texts(device_rows(machine(session, RUN, STRANGER, gpus=2), 160, 40))
    assert "user, program" in rows[0] and rows[1].endswith("  root workloads.pyz")


def test_the_total_names_the_gpus_that_rest_as_far_as_there_is_room(session: Make) -> None:
    snapshot = machine(session, gpus=8)
    for id_ in ("gpu2", "gpu5"):
        snapshot = changed(snapshot, id_, utilization=0.0)
    snapshot = changed(snapshot, "gpu5", memory_usage=0.0)
    texts_ = {120: "idle 5; held without work 2", 80: "idle 5; held 2", 60: "idle 5"}
    for width, told in texts_.items():
        assert texts(device_rows(snapshot, width, 10))[-1].endswith(told)


def test_gpus_that_do_not_fit_are_counted(session: Make) -> None:
    rows = texts(device_rows(machine(session, gpus=16), 60, 7))
    assert len(rows) == 7 and rows[-2].strip() == "… 6 more, i shows all"


def test_the_memory_held_stands_beside_each_gpu_also_in_pairs(session: Make) -> None:
    rows = texts(device_rows(machine(session, gpus=8), 60, 5))[:4]
    assert all(len(re.findall(r" %  +[\d.]+/80.0G", row)) == 2 for row in rows), rows


def test_a_single_gpu_has_large_graphs_with_an_axis(session: Make) -> None:
    rows = texts(device_rows(machine(session, gpus=1), 80, 12))
    assert "power" in rows[0] and "GPU utilization" in rows[1] and len(rows) <= 12
    told = changed(machine(session, file="03"), "gpu0", memory_busy=0.3, encoder_utilization=0.0)
    figures = texts(device_rows(told, 160, 30))[0]
    assert "°C   memory busy 30 %   SM clock" in figures
    assert not any(word in figures for word in ("encoder", "PCIe gen", "lanes", "state"))
    assert any("█" in row for row in rows) and any(row.strip().startswith("└") for row in rows)
    assert len(texts(device_rows(machine(session, gpus=1, file="02"), 60, 3))) <= 3


@pytest.mark.parametrize("known", [True, False])
def test_where_no_bandwidth_is_measured_its_bound_is_drawn_as_one(
    session: Make, known: bool
) -> None:
    snapshot = snapshot_of(session(kind="machine", memory_busy=True, known_card=known))
    rows = "\n".join(texts(device_rows(snapshot, 160, 12)))
    assert ("Memory bandwidth" in rows and "≤1.34 TB/s" in rows) == known, rows
    assert ("unavailable: the driver gives no bandwidth" in rows) == (not known)
    several = session("02", kind="machine", memory_busy=True, known_card=known, gpus=2)
    row = texts(device_rows(snapshot_of(several, View(grid=True)), 160, 12))[1]
    assert ("≤1.34 TB/s" in row) == known


def test_without_a_gpu_the_reason_and_the_cpu_stand_there(session: Make) -> None:
    rows = texts(device_rows(machine(session, gpus=0), 80, 23))
    assert rows[0] == " no GPU: runs use the CPU; none was found"
    assert rows[1].startswith(" CPU • ") and rows[1].endswith(" GHz"), "in one row"
    assert re.search(r"memory +41.5/128 GiB", rows[1])
    assert texts([head_row(machine(session, gpus=0, file="02"), 0, "", 80)])[0].startswith(
        " gpuwatch CPU  AMD EPYC"
    )
    assert any("CPU utilization" in row for row in rows)


def on_cpu(snapshot: Snapshot, use: float, load: float) -> Snapshot:
    """With another use of the CPU, of two cores."""
    devices = []
    for each in snapshot.devices:
        if each.row.kind == "cpu":
            attributes = {**each.row.attributes, "core.logical.count": 2, "swap.total": 2**32}
            told = {"hw.cpu.utilization": use, "system.cpu.load_average.1m": load}
            told["system.paging.usage"] = 2.0**30
            read = {name: Reading(value, Method.MEASURED, None, "") for name, value in told.items()}
            row = replace(each.row, name="AMD EPYC", attributes=attributes)
            each = replace(each, row=row, readings={**each.readings, **read})
        devices.append(each)
    return replace(snapshot, devices=tuple(devices))


@pytest.mark.parametrize(
    ("load", "sign"), [(1.9, ("", "good")), (2.1, ("• ", "warn")), (7.51, ("▲ ", "bad"))]
)
def test_a_load_above_the_cores_is_a_warning(
    session: Make, load: float, sign: tuple[str, str]
) -> None:
    rows = device_rows(on_cpu(machine(session, gpus=0), 1.0, load), 120, 12)
    spans = [span for row in rows for span in row.spans()]
    mark, role = sign
    assert (f"{mark}{load:.2f}", role) in [(text.rstrip(), role) for text, role in spans]
    assert any("swap 1.00/4.00 GiB" in row for row in texts(rows))


def test_no_figure_of_the_cpu_moves_to_another_row_as_it_grows(session: Make) -> None:
    snapshot = machine(session, gpus=0)
    low, high = on_cpu(snapshot, 0.05, 0.1), on_cpu(snapshot, 1.0, 10.03)

    def named(snapshot: Snapshot, width: int) -> list[list[str]]:
        rows = texts(device_rows(snapshot, width, 12))
        return [re.findall(" CPU |memory|load|clock", row) for row in rows]

    for width in range(40, 121):
        assert named(low, width) == named(high, width)


def test_in_two_rows_without_a_gpu_one_has_the_use_of_the_cpu(session: Make) -> None:
    snapshot = machine(session, gpus=0)
    why, figures = texts(device_rows(snapshot, 40, 2))
    assert why.startswith(" no GPU") and re.match(r" CPU [•▲]? ?\d+ %", figures)
    assert texts(device_rows(snapshot, 40, 1)) == [figures]


def test_the_head_counts_gpus_and_running_runs_and_alerts_have_rows(session: Make) -> None:
    snapshot = machine(session, gpus=8)
    head = texts([head_row(snapshot, 2, "me@gpu7  14:05 CET", 120)])[0]
    assert "8 × NVIDIA H100" in head and "CPU " in head and "RAM " in head
    assert head.endswith("▶ 2 running  me@gpu7  14:05 CET ")
    narrow = texts([head_row(snapshot, 2, "me@gpu7  14:05 CET", 80)])[0]
    assert narrow.endswith("▶ 2  me@gpu7  14:05 CET ") and " 8 × H10" in narrow and "CPU " in narrow
    assert "RAM " in texts([head_row(snapshot, 2, "me@gpu7  14:05 CET", 60)])[0]
    alerts = [f"alert {n}" for n in range(5)]
    rows = texts(alert_rows(alerts, 80, 3))
    assert rows[:2] == [" ! alert 0", " ! alert 1"] and rows[2].startswith(" ! alert 2 ")
    assert len(rows) == 3 and rows[2].rstrip().endswith("2 more, press i")
    (only,) = texts(alert_rows(alerts, 80, 1))
    assert only.startswith(" ! alert 0 ") and only.rstrip().endswith("4 more, press i")
    (two,) = texts(alert_rows(alerts[:2], 80, 1))
    assert two.rstrip().endswith("1 more, press i")


@pytest.mark.parametrize("width", [60, 80, 160])
def test_the_head_counts_a_lost_gpu_apart(session: Make, width: int) -> None:
    snapshot = machine(session, gpus=8)
    nameless = replace(snapshot.gpus[3], row=replace(snapshot.gpus[3].row, name="unknown GPU"))
    devices = tuple(nameless if each.row.id == "gpu3" else each for each in snapshot.devices)
    lost = replace(snapshot, devices=devices, alerts=(Alert("lost", "gpu3", "GPU 3 is lost"),))
    head = texts([head_row(lost, 0, "", width)])[0]
    assert "7 × " in head and "  1 lost  CPU " in head and "unknown" not in head


def test_the_head_has_load_swap_and_driver_where_they_fit(session: Make) -> None:
    snapshot = machine(session, gpus=8)
    (cpu,) = (device for device in snapshot.devices if device.row.kind == "cpu")
    measured = cpu.get("hw.cpu.utilization")
    readings = {
        **cpu.readings,
        "system.cpu.load_average.1m": measured._replace(value=1.5),
        "system.paging.usage": measured._replace(value=2.0**30),
    }
    attributes = {**cpu.row.attributes, "swap.total": 4 * 2**30}
    loaded = replace(cpu, readings=readings, row=replace(cpu.row, attributes=attributes))
    versions = {"driver.version": "575.57.08", "cuda.driver.version": "12.9"}
    gpu = snapshot.gpus[0]
    told = replace(gpu, row=replace(gpu.row, attributes=gpu.row.attributes | versions))
    changed = {cpu.row.id: loaded, gpu.row.id: told}
    devices = tuple(changed.get(device.row.id, device) for device in snapshot.devices)
    known = replace(snapshot, devices=devices)
    wide = texts([head_row(known, 0, "", 160)])[0]
    assert "  load 1.50  swap 1.00/4.00 GiB  driver 575.57.08, CUDA 12.9" in wide
    narrow = texts([head_row(known, 1, "", 80)])[0]
    assert "RAM " in narrow and "driver" not in narrow and "▶ 1 running" in narrow


def test_the_processes_on_gpus_are_narrowed_by_words(session: Make) -> None:
    snapshot = machine(session, RUN, *LOADERS, STRANGER)
    assert {each.pid for each in on_gpus(snapshot.processes)} == {4711, 31337}
    assert {each.pid for each in on_gpus(snapshot.processes, "31337")} == {31337}
    assert on_gpus(snapshot.processes, "nobody has this") == []


async def test_the_cpus_use_stays_until_a_new_recording_knows_it(fake: Fake, session: Make) -> None:
    async with running(HomeScreen) as (app, pilot):
        screen = on_top(app, HomeScreen)

        def has_cpu() -> bool:
            known = screen.state.devices
            return known is not None and any(each.row.kind == "cpu" for each in known.devices)

        await until(pilot, has_cpu)
        known = screen.state.devices
        assert known is not None
        devices = tuple(replace(device, readings={}) for device in known.devices)
        young = replace(known, devices=devices, t=1_000_000_000)
        screen.take(young)
        assert screen.state.devices is not None and screen.state.devices.t != young.t
        old = replace(young, t=5_000_000_000)
        screen.take(old)
        assert screen.state.devices.t == old.t
        # A GPU is busy: there is a process, of which nothing was told yet.
        screen.take(replace(known, processes=()))
        await shows(pilot, "the processes on the GPUs are not known yet")


def test_a_path_is_cut_in_the_middle_and_its_file_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    path = Path("/home/me/.local/share/gpuwatch/studies/2026-a-study/01-bare.gpuwatch")
    assert short_path(path, 80) == "~/.local/share/gpuwatch/studies/2026-a-study/01-bare.gpuwatch"
    assert short_path(path, 40) == "~/.local/share/gpuwatc…/01-bare.gpuwatch"
    assert short_path(Path("/else/x.gpuwatch"), 40) == "/else/x.gpuwatch"
