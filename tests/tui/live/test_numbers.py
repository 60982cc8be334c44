"""The numbers page, and numbers in little space: complete and separate."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from gpuwatch.core.metrics import Method
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.writing.store import SessionStore
from gpuwatch.tui.feed.snapshot import Reading, Snapshot, View
from gpuwatch.tui.home.screen import HomeScreen
from gpuwatch.tui.widgets.device_rows import Fields
from gpuwatch.tui.widgets.gauge_rows import badge
from gpuwatch.tui.widgets.page import number_lines
from tests.session.samples import fill, rows_of

from ..conftest import Fake
from ..harness import live, on_top, running, screen_text, shows, until
from ..sessions import finished
from ..snapshots_of import numbers_text, page_text, snapshot_of, texts

Make = Callable[..., Path]

POWER = "hw.gpu.power"
BF16 = {"model": "MnistCNN", "dtype": "bfloat16", "batch_size": 64}
FAN = "hw.gpu.fan.speed_ratio"
REASON = "nvmlGpmSampleGet: no permission; record from outside containers, or ask who runs them"


def words_of(snapshot: Snapshot, width: int) -> list[str]:
    """The rows of the page, with one blank between two words."""
    rows = number_lines(snapshot, width)
    return [" ".join("".join(text for text, _ in row).split()) for row in rows]


def test_both_mfu_are_named_with_their_peak_and_method(session: Make) -> None:
    lines = words_of(snapshot_of(session(known_card=True, meta={"run": BF16})), 200)
    over, at_maximum = (at for at, line in enumerate(lines) if line.startswith("MFU"))
    assert "MFU at maximum clock" in lines[at_maximum]
    for at, peak in ((over, "data-sheet peak"), (at_maximum, "peak at maximum clock")):
        assert "%" in lines[at] and "counted" in lines[at]
        assert peak in " ".join(lines[at : at + 3])


def reading(value: float) -> Reading:
    return Reading(value, Method.MEASURED, None, "test")


def take_away(path: Path, metric: str) -> None:
    """Make the channel unavailable; its earlier samples remain."""
    with sqlite3.connect(path) as database:
        database.execute(
            "INSERT INTO change (t, channel, method, source, reason) "
            "SELECT 0, id, 'unavailable', source, ? FROM channel WHERE metric = ?",
            (REASON, metric),
        )


def lost_at(path: Path, t: float, *metrics: str) -> Path:
    """Remove the channels' samples from ``t`` seconds on."""
    for metric in metrics:
        take_away(path, metric)
    with SessionReader(path) as reader:
        channels = reader.channels()
        rows = rows_of(reader, [channel.id for channel in channels])

    def left(at: int, values: Sequence[float | None]) -> list[float | None]:
        pairs = zip(values, channels, strict=True)
        return [None if at > t * 1e9 and of.metric in metrics else each for each, of in pairs]

    fill(path, ((at, left(at, of)) for at, *of in rows))
    return path


@pytest.mark.parametrize("bound", [False, True])
def test_of_a_run_that_lost_its_gpu_the_mean_of_what_there_is_stands_with_its_share(
    session: Make, bound: bool
) -> None:
    over = {"meta": finished(), "alive": False, "count": False}
    options = {"memory_busy": True, "known_card": True} if bound else {"bandwidth_measured": True}
    path = session(**over, **options)
    whole = snapshot_of(path, View(seconds=None, columns=90)).gauges
    traffic = "hw.gpu.memory.busy" if bound else "hw.gpu.memory.bandwidth"
    lost_at(path, 63.0, "hw.gpu.utilization", traffic)
    use, memory, _ = snapshot_of(path, View(seconds=None, columns=90)).gauges
    assert use.reading.method is Method.MEASURED and use.mean
    assert use.reading.value == pytest.approx(sum(whole[0].history[:63]) / 63, rel=0.02)  # type: ignore[arg-type]
    assert badge(use, 26) == "measured, 70 % of the time"
    assert memory.reading.method is (Method.BOUND if bound else Method.MEASURED)
    assert sum(value is not None for value in memory.history) == 63
    assert badge(memory, 26).endswith(", 70 % of the time") and memory.reading.reason == REASON


def test_of_a_run_that_goes_on_a_lost_bound_is_unavailable_and_its_history_stays(
    session: Make,
) -> None:
    path = session(memory_busy=True, known_card=True, count=False)
    gauge = snapshot_of(lost_at(path, 63.0, "hw.gpu.memory.busy")).gauges[1]
    assert gauge.reading.method is Method.UNAVAILABLE and gauge.reading.value is None
    assert gauge.reading.reason == REASON and any(gauge.history)


async def test_the_page_is_of_now_and_says_of_when_it_is(session: Make) -> None:
    path = session()
    async with live(path, (100, 24)) as (app, pilot):
        await pilot.press("i", shows="every number at 1:30 ")
        await pilot.press("down", "down")
        with closing(SessionStore.reopen(path)) as store:
            cursor = store._connection.execute("SELECT id FROM channel WHERE metric = ?", (POWER,))
            (column,) = cursor.fetchone()
            tick = f"INSERT INTO tick (n, t, c{column}) VALUES (?, ?, ?)"
            store.write([(tick, (181 + n, int((90.5 + n) * 1e9), 123.0)) for n in range(2)])
        await shows(pilot, "every number at 1:31 ")
        assert " 3 to " in screen_text(app), "where it stands stays"
        await until(pilot, lambda: "123 W" in screen_text(app))
        await pilot.press("escape", "left", "i", shows="every number at ")
        assert " ago" in screen_text(app).splitlines()[0]


def test_what_stays_as_it_is_stands_below_the_numbers_of_a_device(session: Make) -> None:
    rows = words_of(snapshot_of(session(gpus=8, known_card=True)), 100)
    assert sum("compute capability" in row and row.endswith("9.0") for row in rows) == 8
    assert any("maximum memory clock" in row and row.endswith("2.62 GHz") for row in rows)


async def test_the_home_screen_has_the_page_of_its_devices(fake: Fake, session: Make) -> None:
    async with running(HomeScreen, (100, 30)) as (app, pilot):
        home = on_top(app, HomeScreen)
        await until(pilot, lambda: home.state.devices is not None)
        await pilot.press("i", shows="every number now")
        await shows(pilot, "host memory usage")
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is home)


@pytest.mark.parametrize("size", [(60, 80), (80, 80)])
def test_reasons_and_sources_are_wrapped_and_not_cut(session: Make, size: tuple[int, int]) -> None:
    path = session(bandwidth_measured=True, known_card=True)
    take_away(path, "hw.gpu.temperature")
    with sqlite3.connect(path) as database:
        database.execute("UPDATE channel SET source = 'NVML field 186, instant power of the board'")
    text = numbers_text(path, size[0])
    assert "…" not in text
    words = " ".join(text.split())
    assert REASON in words and "measured NVML field 186, instant power of the board" in words


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (120, 50), (160, 50)])
def test_bytes_beyond_the_ceiling_are_called_cache_reuse(
    session: Make, size: tuple[int, int]
) -> None:
    meta = {"count": {"flop_per_step": 2e11, "bytes_per_step": 2.2e10}}
    assert "cache reuse" in page_text(session(known_card=True, meta=meta), size)


def test_fans_engines_and_the_link_read_as_people_write_them(session: Make) -> None:
    snapshot = snapshot_of(session())
    (gpu,) = snapshot.gpus
    unavailable = Reading(None, Method.UNAVAILABLE, "nvmlDeviceGetFanSpeed: not supported", "test")
    known = {
        "hw.gpu.performance.state": reading(8),
        "hw.gpu.pcie.generation": reading(3),
        "hw.gpu.pcie.width": reading(16),
        "hw.gpu.encoder.utilization": reading(0.35),
        "hw.gpu.decoder.utilization": reading(0),
    }
    for fan, shown in ((reading(0.62), "62 % measured"), (unavailable, "— unavailable")):
        gpu = replace(gpu, readings={FAN: fan, **known})
        rows = words_of(replace(snapshot, devices=(gpu,)), 160)
        at = rows.index("GPU 0 NVIDIA H100 80GB HBM3") + 1
        below = [] if fan is not unavailable else [str(unavailable.reason)]
        assert [row.removesuffix(" test") for row in rows[at : at + 6 + len(below)]] == [
            f"GPU fan speed {shown}",
            *below,
            "GPU performance state P8 measured",
            "GPU PCIe generation gen 3 measured",
            "GPU PCIe width x16 measured",
            "GPU encoder utilization 35 % measured",
            "GPU decoder utilization 0 % measured",
        ]


def test_what_a_counter_gains_in_a_second_is_named_so(session: Make) -> None:
    snapshot = snapshot_of(session())
    gpu, *others = snapshot.devices
    energy = Reading(102.0, Method.MEASURED, None, "nvmlDeviceGetTotalEnergyConsumption")
    gpu = replace(gpu, readings={"hw.gpu.energy": energy})
    rows = words_of(replace(snapshot, devices=(gpu, *others)), 160)
    assert any(row.startswith("power by GPU energy 102 W measured") for row in rows)
    assert any(row.startswith("process CPU time, cores 1.70 cores measured") for row in rows)
    assert any(row.startswith("process memory usage 2.40 GiB measured") for row in rows)


def test_the_figures_of_the_steps_are_there_and_why_one_is_not(session: Make) -> None:
    text = numbers_text(session(phases={"forward": 0.6, "backward": 0.4}), 100)
    steps = text.partition("\n steps\n")[2]
    for figure in ("samples/s now ", "median step ", "last loss ", "phase: forward "):
        assert f"   {figure}" in steps
    bare = snapshot_of(session("02-bare"))
    assert bare.work is not None
    silent = replace(bare, work=replace(bare.work, loss=None))
    rows = words_of(silent, 100)
    at = next(at for at, row in enumerate(rows) if row.startswith("last loss"))
    assert rows[at].endswith("unavailable") and rows[at + 1] == "no loss yet"


async def test_slash_leaves_the_rows_with_a_text_and_those_they_belong_to(session: Make) -> None:
    async with live(session(gpus=2), (120, 40)) as (app, pilot):
        await pilot.press("i", "slash", *"POWER", hides="temperature")
        rows = [row for row in screen_text(app).splitlines()[2:-1] if row.strip()]
        assert [row.split()[:2] for row in rows if row[1] != " "] == [
            ["GPU", "0"],
            ["GPU", "1"],
            ["CPU", "AMD"],
        ]
        assert sum("GPU power" in row for row in rows) == 2
        assert "RAPL can be read by root only" in screen_text(app), "what belongs to a row"
        await pilot.press(*"x", shows="nothing matches POWERx")
        await pilot.press("enter", "escape", shows="temperature")
        await pilot.press("escape", shows="GPU utilization")


def test_an_activity_that_is_not_0_is_not_shown_as_0(session: Make) -> None:
    sampled = {("gpu0", "hw.gpu.fp16.activity"): 0.0031}
    path = session(pipes=True, sampled=sampled)
    for size in ((80, 24), (120, 40)):
        assert "FP64 0 %  FP32 12 %  FP16 <1 %  DRAM 42 %" in page_text(path, size), size
    assert "FP64 0 %  FP32 12 %  FP16 0.3 %  DRAM 42 %" in page_text(path, (160, 50))


def test_of_a_row_of_numbers_none_is_shown_in_part() -> None:
    fields = Fields(30, 3).add("power", "254/700 W").add("PCIe", "↑1.10 GB/s").add("fan", "30 %")
    assert [row.rstrip() for row in texts(fields.rows())] == [" power 254/700 W"]
