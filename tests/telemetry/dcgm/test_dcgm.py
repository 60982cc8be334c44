from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.core.metrics import Method
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.telemetry.base import Change, Channel, Device, Event, Value
from gpuwatch.telemetry.dcgm.fields import FIELDS, gpu_ids, hint, row, trouble
from gpuwatch.telemetry.dcgm.source import (
    LOCK,
    NOT_NEEDED,
    DcgmSource,
    better,
    check_dcgm,
    open_dcgm,
)
from gpuwatch.telemetry.nvml.errors import Unavailable
from tests.conftest import Cli
from tests.fake_dcgm import FakeDcgm
from tests.fake_nvml import FakeDriver, uuid
from tests.reading import sessions
from tests.session.samples import rows_of
from tests.waiting import until

FIELD_IDS = tuple(FIELDS)
DRAM, BANDWIDTH, PCIE = "hw.gpu.dram.activity", "hw.gpu.memory.bandwidth", "hw.gpu.pcie.transmit"
A100: dict[str, Any] = {
    "clock.memory.max": 1_215_000_000,
    "memory.bus.width": 5120,
    "compute.capability": "8.0",
}
PEAK = 1_215_000_000 * 2 * 5120 / 8


def test_gpus_are_found_by_uuid_in_what_discovery_prints() -> None:
    printed = """2 GPUs found.
+--------+----------------------------------------------------------------------+
| GPU ID | Device Information                                                   |
+--------+----------------------------------------------------------------------+
| 0      | Name: NVIDIA GeForce RTX 3090                                        |
|        | PCI Bus ID: 00000000:1B:00.0                                         |
|        | Device UUID: GPU-69cd4dac-cefb-45e8-9bff-429dfd4bc8c3                |
+--------+----------------------------------------------------------------------+
| 3      | Name: NVIDIA GeForce RTX 3090                                        |
|        | PCI Bus ID: 00000000:1C:00.0                                         |
|        | Device UUID: GPU-ac2d4b59-b78e-42c7-8db6-ef28b01540e1                |
+--------+----------------------------------------------------------------------+
0 NvSwitches found.
+-----------+
| Switch ID |
+-----------+
+-----------+
2 CPUs found.
+--------+----------------------------------------------------------------------+
| CPU ID | Device Information                                                   |
+--------+----------------------------------------------------------------------+
| 0      | Name: Grace TH500                                                    |
|        | Cores: 0-19,40-59                                                    |
+--------+----------------------------------------------------------------------+
"""
    assert gpu_ids(printed) == {
        "GPU-69cd4dac-cefb-45e8-9bff-429dfd4bc8c3": 0,
        "GPU-ac2d4b59-b78e-42c7-8db6-ef28b01540e1": 3,
    }


@pytest.mark.parametrize(
    ("line", "taken"),
    [
        ("GPU 4     0.571        0.250        N/A", (4, {1002: 0.571, 1003: 0.25, 1009: None})),
        ("    GPU 11  0.0  1.000  99", (11, {1002: 0.0, 1003: 1.0, 1009: 99.0})),
        ("GPU 4     0.571        0.250      123...", (4, {1002: 0.571, 1003: 0.25, 1009: None})),
        ("GPU 4     0.571        -1           9e20", (4, {1002: 0.571, 1003: -1.0, 1009: 9e20})),
        ("GPU 4     0.571        0.250", None),
        ("#Entity   SMACT        SMOCC        PCITX", None),
        ("ID", None),
        ("GPU-I 21  0.000        0.000        0", None),
        ("", None),
    ],
)  # fmt: skip
def test_a_row_is_read_by_the_order_of_the_fields_that_were_asked_for(
    line: str, taken: object
) -> None:
    assert row(line, (1002, 1003, 1009)) == taken


@pytest.mark.parametrize(
    ("lines", "helps"),
    [
        (["Error: unable to establish a connection to the specified host: localhost"], "start the"),
        (
            [
                "Error setting watches. Result: The third-party Profiling module returned an "
                "unrecoverable error"
            ],
            "ncu",
        ),
        (
            [
                "Error setting watches. Result: -31: Unable to watch one or more of the requested "
                "fields because doing so requires the host engine to be running as root."
            ],
            "as root",
        ),
        (["Error: something new"], "dcgmi dmon"),
    ],
)
def test_what_dcgmi_says_comes_with_what_mends_it(lines: list[str], helps: str) -> None:
    said = trouble(lines)
    assert said is not None and not said.startswith("Error: ")
    assert helps in hint(said)
    assert trouble(["2 GPUs found.", "| GPU ID |"]) is None


def _channel(source: str, reason: str | None = None, metric: str = DRAM) -> Channel:
    method = Method.MEASURED if reason is None else Method.UNAVAILABLE
    return Channel("gpu0", metric, method, source, reason)


def test_gpm_comes_before_dcgm_and_dcgm_before_a_glimpse() -> None:
    gpm, dcgm = _channel("NVML GPM metric 10"), _channel("DCGM field 1005")
    glimpse, gone = _channel("NVML nvmlDeviceGetPcieThroughput"), _channel("DCGM", "gone")
    assert better(gpm, dcgm) is gpm
    assert better(_channel("NVML GPM metric 10", "lost"), dcgm) is dcgm
    assert better(glimpse, dcgm) is dcgm
    assert better(glimpse, gone) is glimpse
    assert better(_channel("NVML", "no GPM"), gone) is gone
    assert better(None, dcgm) is dcgm


class _Gpus:
    """The GPUs' own source: Ampere, without GPM unless a test says so."""

    def __init__(self, count: int = 1, attributes: Mapping[str, Any] | None = None) -> None:
        self.devices = tuple(
            Device(
                f"gpu{n}", "gpu", "NVIDIA A100-SXM4-40GB", uuid(n), A100 | dict(attributes or {})
            )
            for n in range(count)
        )
        self.channels: tuple[Channel, ...] = tuple(
            channel
            for n in range(count)
            for channel in (
                Channel(f"gpu{n}", DRAM, Method.UNAVAILABLE, "NVML GPM", "no GPM before Hopper"),
                Channel(f"gpu{n}", BANDWIDTH, Method.UNAVAILABLE, "NVML", "no GPM before Hopper"),
                Channel(f"gpu{n}", PCIE, Method.MEASURED, "NVML nvmlDeviceGetPcieThroughput TX"),
                Channel(f"gpu{n}", "hw.gpu.power", Method.MEASURED, "NVML power"),
            )
        )
        self.values: dict[str, Value] = {PCIE: 5, "hw.gpu.power": 100}
        self.changes: list[Change] = []
        self.closed = False

    def sample(self) -> list[Value]:
        return [self.values.get(channel.metric) for channel in self.channels]

    def drain(self) -> tuple[list[Change], list[Event]]:
        taken, self.changes = self.changes, []
        return taken, []

    def close(self) -> None:
        self.closed = True


class _Watching:
    """What a recorder sees of a source: values, channels as they are now, events."""

    def __init__(self, source: DcgmSource) -> None:
        self.source = source
        self.channels = {(c.device, c.metric): c for c in source.channels}
        self.events: list[Event] = []

    def sample(self) -> dict[tuple[str, str], Value]:
        values = self.source.sample()
        changes, events = self.source.drain()
        for change in changes:
            self.channels[change.channel.device, change.channel.metric] = change.channel
        self.events += events
        keys = [(c.device, c.metric) for c in self.source.channels]
        return dict(zip(keys, values, strict=True))

    def until(self, claim: Callable[[dict[tuple[str, str], Value]], bool]) -> None:
        until(lambda: claim(self.sample()))


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., _Watching]]:
    monkeypatch.setattr("gpuwatch.telemetry.dcgm.stream.RETRY_S", 0.1)
    for patience in ("stream.SILENCE_S", "source.FRESH_S", "source.START_PATIENCE_S"):
        monkeypatch.setattr(f"gpuwatch.telemetry.dcgm.{patience}", 60)
    opened: list[DcgmSource] = []

    def start(gpus: _Gpus, host: str = "localhost") -> _Watching:
        found = open_dcgm(gpus, host, 0.1)
        assert isinstance(found, DcgmSource), found
        opened.append(found)
        return _Watching(found)

    yield start
    for one in opened:
        one.close()


@pytest.fixture
def dcgm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeDcgm:
    fake = FakeDcgm(tmp_path, [uuid(9), uuid(1), uuid(0)])
    monkeypatch.setenv("PATH", fake.variables["PATH"])
    return fake


Watch = Callable[..., _Watching]


def test_bandwidth_is_the_dram_activity_times_the_peak_and_says_so(
    dcgm: FakeDcgm, watch: Watch
) -> None:
    dcgm.set(uuid(1), f1005=0.25)
    seen = watch(_Gpus(2))
    values = seen.sample()
    assert values["gpu0", DRAM] == 0.5 and values["gpu1", DRAM] == 0.25
    assert values["gpu0", BANDWIDTH] == pytest.approx(0.5 * PEAK)
    assert values["gpu0", "hw.gpu.power"] == 100
    assert values["gpu0", "hw.gpu.tensor.activity"] == 0.251
    assert values["gpu0", "hw.gpu.pcie.receive"] == 987654321
    channel = seen.channels["gpu0", BANDWIDTH]
    assert channel.method is Method.MEASURED
    assert channel.source.startswith("DCGM field 1005 (DRAM active) x peak DRAM bandwidth 1555 GB")
    assert [(event.kind, event.text) for event in seen.events] == [("dcgm", LOCK)]


def test_every_channel_has_one_source_and_dcgm_s_pcie_replaces_the_glimpse(
    dcgm: FakeDcgm, watch: Watch
) -> None:
    seen = watch(_Gpus())
    keys = [(channel.device, channel.metric) for channel in seen.source.channels]
    assert len(set(keys)) == len(keys)
    assert seen.sample()["gpu0", PCIE] == 123456789
    assert seen.channels["gpu0", PCIE].source == "DCGM field 1009"


def test_a_value_that_dcgm_does_not_have_is_unknown(dcgm: FakeDcgm, watch: Watch) -> None:
    seen = watch(_Gpus())
    nvlink = ("gpu0", "hw.gpu.nvlink.receive")
    assert seen.sample()[nvlink] is None
    assert "N/A" in (seen.channels[nvlink].reason or "")
    dcgm.set(uuid(0), f1012=7)
    seen.until(lambda values: values[nvlink] == 7)
    assert seen.channels[nvlink].reason is None


def test_a_share_that_cannot_be_is_unknown_and_so_is_the_bandwidth(
    dcgm: FakeDcgm, watch: Watch
) -> None:
    seen = watch(_Gpus())
    dcgm.set(uuid(0), f1002=6.3, f1005=920_000, f1003=1.004)
    seen.until(lambda values: values["gpu0", DRAM] is None)
    seen.until(lambda values: values["gpu0", "hw.gpu.sm.occupancy"] == 1.0)
    values = seen.sample()
    assert values["gpu0", "hw.gpu.sm.activity"] is None and values["gpu0", BANDWIDTH] is None
    assert seen.channels["gpu0", "hw.gpu.sm.activity"].reason == (
        "DCGM field 1002: the driver gave 630 %, which is impossible"
    )
    for key in (DRAM, BANDWIDTH):
        assert "gave 92,000,000 %" in (seen.channels["gpu0", key].reason or "")
        assert seen.channels["gpu0", key].method is Method.UNAVAILABLE


def test_a_gpu_whose_peak_is_unknown_has_activity_but_no_bandwidth(
    dcgm: FakeDcgm, watch: Watch
) -> None:
    seen = watch(_Gpus(1, {"clock.memory.max": None}))
    values = seen.sample()
    assert values["gpu0", DRAM] == 0.5 and values["gpu0", BANDWIDTH] is None
    assert "peak DRAM bandwidth" in (seen.channels["gpu0", BANDWIDTH].reason or "")


def test_a_gpu_that_the_host_engine_does_not_know_says_so(dcgm: FakeDcgm, watch: Watch) -> None:
    seen = watch(_Gpus(3))
    values = seen.sample()
    assert values["gpu0", DRAM] == 0.5 and values["gpu2", DRAM] is None
    assert "does not know this GPU" in (seen.channels["gpu2", DRAM].reason or "")


def test_fields_go_by_number_and_only_to_the_gpus_that_are_watched(
    dcgm: FakeDcgm, watch: Watch
) -> None:
    watch(_Gpus(2), "node7:5555")
    discovery, dmon = dcgm.calls
    assert discovery == ["discovery", "--host", "node7:5555", "-l"]
    fields = ",".join(map(str, range(1002, 1013)))
    assert dmon == ["dmon", "--host", "node7:5555", "-e", fields, "-i", "1,2", "-d", "100"]


def test_gpm_is_left_in_its_place_and_dcgm_is_not_started_where_it_is_not_needed(
    dcgm: FakeDcgm, watch: Watch
) -> None:
    gpus = _Gpus()
    gpus.channels = (_channel("NVML GPM metric 10"), *gpus.channels[1:])
    gpus.values[DRAM] = 0.75
    seen = watch(gpus)
    assert seen.sample()["gpu0", DRAM] == 0.75
    assert dcgm.calls == []
    assert [event.text for event in seen.events] == [NOT_NEEDED]


def test_a_gpm_that_begins_to_work_takes_its_channel_back(dcgm: FakeDcgm, watch: Watch) -> None:
    gpus = _Gpus()
    seen = watch(gpus)
    assert seen.sample()["gpu0", DRAM] == 0.5
    gpus.values[DRAM] = 0.75
    gpus.changes.append(Change(_channel("NVML GPM metric 10")))
    seen.until(lambda values: values["gpu0", DRAM] == 0.75)
    assert "GPM" in seen.channels["gpu0", DRAM].source
    gpus.changes.append(Change(_channel("NVML GPM metric 10", "no permission")))
    seen.until(lambda values: values["gpu0", DRAM] == 0.5)
    assert seen.channels["gpu0", DRAM].source == "DCGM field 1005"


def test_a_host_engine_that_goes_and_comes_back_is_told_once_each(
    dcgm: FakeDcgm, watch: Watch
) -> None:
    seen = watch(_Gpus())
    dcgm.say(gone=True)
    seen.until(lambda values: values["gpu0", DRAM] is None)
    seen.until(lambda values: len(dcgm.calls) > 4)
    assert seen.sample()["gpu0", PCIE] == 5, "NVML's own glimpse is there still"
    channel = seen.channels["gpu0", BANDWIDTH]
    assert channel.method is Method.UNAVAILABLE and "host engine" in (channel.reason or "").lower()
    dcgm.say(gone=False)
    seen.until(lambda values: values["gpu0", DRAM] == 0.5)
    seen.sample()
    assert [event.kind for event in seen.events] == ["dcgm", "dcgm-lost", "dcgm-back"]
    assert seen.events[1].text.startswith("DCGM gives no values: ")
    assert "nv-hostengine" in seen.events[1].text


def test_a_dcgmi_that_falls_silent_is_started_again(
    dcgm: FakeDcgm, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpuwatch.telemetry.dcgm.stream.SILENCE_S", 0.6)
    seen = watch(_Gpus())
    dcgm.say(silent=True)
    seen.until(lambda values: any(event.kind == "dcgm-lost" for event in seen.events))
    assert "printed nothing" in seen.events[-1].text
    dcgm.say(silent=False)
    seen.until(lambda values: values["gpu0", DRAM] == 0.5)
    assert len(dcgm.calls) > 2


def test_where_some_fields_are_refused_the_basic_ones_are_read(
    dcgm: FakeDcgm, watch: Watch
) -> None:
    dcgm.say(watches="-6: Feature not supported")
    seen = watch(_Gpus())
    assert seen.sample()["gpu0", BANDWIDTH] == pytest.approx(0.5 * PEAK)
    told = seen.channels["gpu0", "hw.gpu.fp64.activity"].reason or ""
    assert "Feature not supported" in told


@pytest.mark.parametrize(
    ("state", "says", "helps"),
    [
        ({"gone": True}, "unable to establish a connection", "nv-hostengine"),
        (
            {
                "watches": "The third-party Profiling module returned an unrecoverable error",
                "watches_all": True,
            },
            "Profiling module",
            "ncu",
        ),
        ({"uuids": []}, "names no GPU", "dcgmi"),
    ],
)
def test_a_dcgm_that_gives_nothing_is_told_with_what_mends_it(
    dcgm: FakeDcgm, state: dict[str, Any], says: str, helps: str
) -> None:
    dcgm.say(**state)
    gpus = _Gpus()
    told = open_dcgm(gpus, "localhost", 0.1)
    assert isinstance(told, Unavailable)
    assert says in told.reason and helps in told.hint
    assert not gpus.closed, "the GPUs' own source stays open"
    quick = check_dcgm("localhost")
    assert ("watches" in state) == (quick is None)


def test_a_missing_dcgmi_names_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for told in (check_dcgm("localhost"), open_dcgm(_Gpus(), "localhost", 0.5)):
        assert isinstance(told, Unavailable)
        assert "datacenter-gpu-manager" in told.hint and "nv-hostengine" in told.hint


def test_closing_ends_dcgmi(dcgm: FakeDcgm, watch: Watch) -> None:
    gpus = _Gpus()
    seen = watch(gpus)
    dcgm.say(silent=True)  # nothing is written, so no broken pipe ends it
    assert _living(dcgm)
    seen.source.close()
    assert gpus.closed
    until(lambda: not _living(dcgm))


def test_no_dcgmi_is_left_behind_by_a_recorder_that_was_killed(dcgm: FakeDcgm) -> None:
    program = (
        "import sys\n"
        "from gpuwatch.telemetry.dcgm.stream import DcgmStream\n"
        f"stream = DcgmStream({str(dcgm.folder / 'dcgmi')!r}, 'localhost', [{uuid(0)!r}], 0.1)\n"
        "stream.settled.wait()\nprint(flush=True)\nsys.stdin.read()\n"
    )
    recorder = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert recorder.stdout
    recorder.stdout.readline()
    dcgm.say(silent=True)  # nothing is written, so no broken pipe ends it
    assert _living(dcgm)
    recorder.send_signal(signal.SIGKILL)
    recorder.communicate()
    until(lambda: not _living(dcgm))


def _living(dcgm: FakeDcgm) -> list[int]:
    return [pid for pid in dcgm.pids if _runs(pid)]


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


# ---- end to end -------------------------------------------------------------------------------


@pytest.fixture
def a100(tmp_path: Path, cli: Cli) -> FakeDriver:
    folder = tmp_path / "driver"
    folder.mkdir()
    driver = FakeDriver(folder)
    driver.set(
        name="NVIDIA A100-SXM4-40GB",
        compute_capability="8.0",
        architecture=7,
        cores=6912,
        bus_width=5120,
        max_clock_memory=1215,
        max_clock_sm=1410,
    )
    for function in ("nvmlGpmQueryDeviceSupport", "nvmlGpmSampleGet", "nvmlGpmMetricsGet"):
        driver.fail(function, 3)
    cli.variables |= driver.variables
    return driver


def test_a_recording_of_an_a100_has_a_measured_bandwidth_that_names_dcgm(
    cli: Cli, a100: FakeDriver, tmp_path: Path
) -> None:
    dcgm = FakeDcgm(tmp_path, [uuid(0)])
    cli.variables.update(dcgm.variables)
    out = tmp_path / "out"
    told = cli("--record", "--dcgm", "--interval", "0.1", "--duration", "3s", "--out", out).stderr
    assert LOCK in told
    with SessionReader(sessions(out)[0]) as reader:
        (bandwidth,) = (c for c in reader.channels() if c.metric == BANDWIDTH)
        rows = [row[1] for row in rows_of(reader, [bandwidth.id])]
        kinds = {event.kind: event.text for event in reader.events()}
    assert bandwidth.method == "measured" and "DCGM field 1005" in bandwidth.source
    assert rows[-1] == pytest.approx(0.5 * PEAK)
    assert kinds["dcgm"] == LOCK
    until(lambda: not _living(dcgm))


def test_a_run_that_is_taken_up_is_read_through_dcgm_again(
    cli: Cli, a100: FakeDriver, tmp_path: Path
) -> None:
    dcgm = FakeDcgm(tmp_path, [uuid(0)])
    cli.variables.update(dcgm.variables)
    out = tmp_path / "out"
    script = "while ! test -e enough; do sleep 0.05; done"
    recorder = cli.start(
        "--record", "--dcgm=here:5555", "--quiet", "--interval", "0.1", "--out", out,
        "--", "sh", "-c", script,
    )  # fmt: skip
    until(lambda: sessions(out) and _measured(sessions(out)[0]) > 3)
    recorder.send_signal(signal.SIGKILL)
    recorder.wait()
    until(lambda: not _living(dcgm))
    before = _measured(sessions(out)[0])
    after = cli.start("attach", "--record", sessions(out)[0])
    until(lambda: _measured(sessions(out)[0]) > before + 3)
    (cli.home / "enough").touch()
    assert after.wait(timeout=60) == 0
    assert dcgm.calls[-1][:3] == ["dmon", "--host", "here:5555"]
    until(lambda: not _living(dcgm))


def _measured(path: Path) -> int:
    """The samples of a session that have a bandwidth."""
    with SessionReader(path) as reader:
        (bandwidth,) = (c for c in reader.channels() if c.metric == BANDWIDTH)
        return sum(row[1] is not None for row in rows_of(reader, [bandwidth.id]))


@pytest.mark.parametrize(
    ("present", "says"), [(False, "datacenter-gpu-manager"), (True, "nv-hostengine")]
)
def test_a_recording_without_dcgm_is_refused_in_one_line_and_nothing_is_started(
    cli: Cli, a100: FakeDriver, tmp_path: Path, present: bool, says: str
) -> None:
    if present:
        dcgm = FakeDcgm(tmp_path, [uuid(0)])
        dcgm.say(gone=True)
        cli.variables.update(dcgm.variables)
    out = tmp_path / "out"
    told = cli("--record", "--dcgm=node7", "--out", out, "--", "touch", "began", code=3).stderr
    assert says in told and told.startswith("gpuwatch: error: --dcgm: ")
    assert len(told.splitlines()) == 1
    assert not (cli.home / "began").exists() and not list(tmp_path.glob("out/*"))


def test_a_workload_behind_the_bare_flag_is_not_taken_for_a_host(cli: Cli) -> None:
    told = cli("--record", "--dcgm", "mnist-cnn", code=2).stderr
    assert "'mnist-cnn' is a workload" in told and "--dcgm=localhost" in told
    told = cli("--record", "--dcgm=two words", code=2).stderr
    assert "invalid HOST[:PORT]" in told
