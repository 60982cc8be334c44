from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.telemetry.nvml.health import QUIET_S, ClockWatch, ErrorWatch, by_heat, by_power
from gpuwatch.telemetry.nvml.processes import ProcessUtilization, TimeShare
from gpuwatch.telemetry.nvml.xid import meaning
from tests.conftest import Cli
from tests.fake_nvml import FUNCTION_NOT_FOUND, NO_PERMISSION, NOT_SUPPORTED, FakeDriver
from tests.reading import sessions
from tests.session.samples import rows_of, times_of
from tests.waiting import until

Start = Callable[..., Any]
POWER, HEAT = ("gpu0", "hw.gpu.throttle.power"), ("gpu0", "hw.gpu.throttle.thermal")


@pytest.mark.parametrize(
    ("reasons", "power", "heat"),
    [
        (0x0, False, False),
        (0x1 | 0x2 | 0x100, False, False),
        (0x4, True, False),
        (0x8, True, False),
        (0x8 | 0x80, True, False),
        (0x8 | 0x40, False, True),
        (0x20, False, True),
        (0x4 | 0x20, True, True),
    ],
)
def test_power_and_heat_are_told_apart(reasons: int, power: bool, heat: bool) -> None:
    assert (by_power(reasons), by_heat(reasons)) == (power, heat)


def test_held_clocks_are_a_metric_and_an_event_that_names_the_reasons(
    tmp_path: Path, remote: Start
) -> None:
    driver = FakeDriver(tmp_path)
    source = remote(driver)
    first = source.sample()
    assert (first[POWER], first[HEAT], source.events) == (0, 0, [])
    driver.set(clocks_event_reasons=0x4 | 0x40)
    source.until(lambda values: values[POWER] == 1 and values[HEAT] == 1)
    (event,) = source.events
    assert (event["kind"], event["device"]) == ("throttle", "gpu0")
    assert "software power cap" in event["text"]
    assert "hardware thermal slowdown" in event["text"]


def test_an_older_driver_is_asked_by_the_older_name(tmp_path: Path, remote: Start) -> None:
    driver = FakeDriver(tmp_path)
    driver.fail("nvmlDeviceGetCurrentClocksEventReasons", FUNCTION_NOT_FOUND)
    driver.set(clocks_event_reasons=0x4)
    source = remote(driver)
    assert source.sample()[POWER] == 1
    assert "ThrottleReasons" in source.channels[POWER]["source"]


def test_reasons_that_flicker_give_one_event_in_a_few_seconds() -> None:
    watch = ClockWatch()
    told = [
        (second, text)
        for second in range(60)
        for _, text in watch((1, 0, 0x4 if second % 2 else 0x1), float(second))
    ]
    assert told[0][0] == 1, "the first at once"
    gaps = [after[0] - before[0] for before, after in pairwise(told)]
    assert gaps and min(gaps) >= QUIET_S
    assert {text for _, text in told} == {
        "clocks are held down: software power cap",
        "clocks are no longer held down",
    }


def test_clocks_that_are_free_again_are_told() -> None:
    watch = ClockWatch()
    assert watch((1, 0, 0x4), 0.0)
    assert watch((0, 0, 0x1), 1.0) == []
    (told,) = watch((0, 0, 0x1), QUIET_S)
    assert told == ("throttle", "clocks are no longer held down (ended 4 s ago)")


def test_memory_errors_are_counted_and_new_uncorrected_ones_are_an_event(
    tmp_path: Path, remote: Start
) -> None:
    driver = FakeDriver(tmp_path, gpus=2)
    driver.set(gpu=0, ecc_corrected=7, ecc_uncorrected=1)
    driver.set(gpu=1, ecc=0)
    source = remote(driver)
    values = source.sample()
    assert values["gpu0", "hw.gpu.ecc.corrected"] == 7
    assert values["gpu0", "hw.gpu.ecc.uncorrected"] == 1
    assert values["gpu1", "hw.gpu.ecc.corrected"] is None
    assert "ECC" in source.channels["gpu1", "hw.gpu.ecc.corrected"]["source"]
    assert source.events == [], "what was there before is no news"
    driver.set(gpu=0, ecc_uncorrected=3)
    source.until(lambda values: values["gpu0", "hw.gpu.ecc.uncorrected"] == 3)
    (event,) = source.events
    assert (event["kind"], event["device"]) == ("ecc", "gpu0")
    assert "2 more, 3 since" in event["text"]


def test_a_count_that_starts_anew_is_no_event() -> None:
    watch = ErrorWatch()
    assert watch((0, 5), 0.0) == [] and watch((0, 0), 1.0) == []
    assert watch((0, 1), 2.0)[0][0] == "ecc"


def test_the_drivers_own_mean_of_the_power_stands_beside_the_instant_one(
    tmp_path: Path, remote: Start
) -> None:
    values = remote(FakeDriver(tmp_path)).sample()
    assert values["gpu0", "hw.gpu.power"] == 252.5
    assert values["gpu0", "hw.gpu.power.average"] == 250.5


def _until_shares(source: Any, claim: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    return until(lambda: shares if claim(shares := source.ask("shares")) else {})


def test_processes_have_their_share_of_time_without_garbage_and_without_a_stale_past(
    tmp_path: Path, remote: Start
) -> None:
    driver = FakeDriver(tmp_path, gpus=3)
    for gpu in range(3):
        driver.processes(gpu, (4711, 2**20, "compute"))
    driver.set(gpu=0, process_utilization="4711:35/15,4712:20/102,0:50/50,4713:3735928559")
    driver.fail("nvmlDeviceGetProcessUtilization", NOT_SUPPORTED, gpu=1)
    driver.fail("nvmlDeviceGetProcessUtilization", NO_PERMISSION, gpu=2)
    source = remote(driver)
    assert source.ask("shares")["gpu0"]["reason"], "nothing is known before the first look"
    seen: list[dict[str, Any]] = []

    def found(shares: dict[str, Any]) -> bool:
        seen.append(shares["gpu0"]["by_pid"])
        return bool(shares["gpu0"]["by_pid"])

    shares = _until_shares(source, found)
    assert shares["gpu0"] == {
        "by_pid": {
            "4711": {"kernels": 0.35, "memory": 0.15},
            "4712": {"kernels": 0.2, "memory": None},
            "4713": {"kernels": None, "memory": 0.0},
        },
        "reason": None,
    }
    assert "0.99" not in str(seen), "means over a past not asked for"
    assert "not supported" in shares["gpu1"]["reason"]
    assert "no permission" in shares["gpu2"]["reason"]
    driver.set(gpu=0, process_utilization="")
    idle = _until_shares(source, lambda shares: not shares["gpu0"]["by_pid"])
    assert idle["gpu0"]["reason"] is None, "not found: known to be idle"


def test_nobody_asks_for_shares_of_time_while_no_process_is_listed(
    tmp_path: Path, remote: Start
) -> None:
    driver = FakeDriver(tmp_path)
    driver.set(utilization=0)
    driver.fail("nvmlDeviceGetProcessUtilization", NO_PERMISSION)
    source = remote(driver)
    shares = _until_shares(source, lambda shares: "not read yet" not in str(shares))
    assert shares["gpu0"] == {"by_pid": {}, "reason": None}
    driver.processes(0, (4711, 2**20, "compute"))
    _until_shares(source, lambda shares: "no permission" in (shares["gpu0"]["reason"] or ""))


def test_only_samples_newer_than_the_last_seen_count() -> None:
    asked: list[int] = []
    now = time.time_ns() // 1000 + 60_000_000
    first = [(7, now, 10, 4), (7, now, 30, 999), (8, 2**64 - 2, 50, 50)]
    answers = [first, [(7, now + 1, 30, 6)]]

    def samples(handle: object, since: int) -> list[SimpleNamespace]:
        asked.append(since)
        if len(asked) == 1:
            return []
        return [
            SimpleNamespace(pid=pid, timeStamp=stamp, smUtil=percent, memUtil=memory)
            for pid, stamp, percent, memory in answers[min(len(asked) - 2, 1)]
        ]

    nvml = SimpleNamespace(nvmlDeviceGetProcessUtilization=samples, NVMLError=pynvml.NVMLError)
    one = ProcessUtilization()
    shares = []
    for _ in range(4):
        one.read(nvml, None)
        shares.append(dict(one.shares.by_pid))
    assert asked[0] > 0 and asked[2] == now
    of_no_time = TimeShare(None, None)
    assert shares == [{}, {7: TimeShare(0.2, 0.04), 8: of_no_time}, {7: TimeShare(0.3, 0.06)}, {}]


def test_a_session_tells_what_befell_its_gpu_and_its_share_of_the_gpus_time(
    cli: Cli, tmp_path: Path
) -> None:
    driver = FakeDriver(tmp_path, gpus=2)
    cli.variables |= driver.variables
    out = tmp_path / "out"
    script = "echo $$ > began; while ! test -e enough; do sleep 0.05; done"
    recorder = cli.start(
        "--record", "--quiet", "--interval", "0.1", "--out", out, "--", "sh", "-c", script
    )
    until(lambda: (cli.home / "began").exists() and (cli.home / "began").read_text() != "")
    pid = int((cli.home / "began").read_text())
    driver.processes(1, (pid, 2**20, "compute"), (pid + 100_000, 1, "compute"))
    driver.set(gpu=1, process_utilization=f"{pid}:45,{pid + 100_000}:50", clocks_event_reasons=0x20)

    asked = 0

    def told() -> bool:
        nonlocal asked
        with SessionReader(sessions(out)[0]) as reader:
            kinds = {event.kind for event in reader.events()}
            ticks = len(times_of(reader))
            if "xid" not in kinds and ticks > asked:
                # Only what comes after the GPU is registered is told; nothing says when that is.
                driver.xid(1, 31)
                asked = ticks
            listed = (c for c in reader.channels() if c.metric == "process.gpu.utilization")
            if (share := next(listed, None)) is None:
                return False  # telemetry joins after the start
            known = any(row[1] == 0.45 for row in rows_of(reader, [share.id]))
            known = known or "PID namespace" in (share.reason or "")
        return {"xid", "throttle"} <= kinds and known

    until(told)
    (cli.home / "enough").touch()
    assert recorder.wait(timeout=60) == 0
    with SessionReader(sessions(out)[0]) as reader:
        events = {event.kind: (event.device, event.text) for event in reader.events()}
        (share,) = (c for c in reader.channels() if c.metric == "process.gpu.utilization")
        shares = {row[1] for row in rows_of(reader, [share.id])}
    assert events["xid"] == ("gpu1", meaning(31))
    assert events["throttle"] == ("gpu1", "clocks are held down: software thermal slowdown")
    assert share.device == "workload"
    assert 0.45 in shares or "PID namespace" in (share.reason or "")
    assert shares <= {None, 0.0, 0.45}, "of the workload alone, and no garbage"
