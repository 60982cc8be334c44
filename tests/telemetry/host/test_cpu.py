from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import psutil
import pytest

from gpuwatch.core.metrics import Method
from gpuwatch.telemetry.base import Value
from gpuwatch.telemetry.host.cgroup import limits
from gpuwatch.telemetry.host.cpu import CpuSource, difference, open_rapl


def _named(source: CpuSource) -> dict[str, Value]:
    sampled = source.sample()
    return {c.metric: v for c, v in zip(source.channels, sampled, strict=True)}


def test_utilization_is_all_but_idle_and_iowait_and_the_first_sample_has_none(
    tmp_path: Path,
) -> None:
    root = _root(tmp_path, cpuinfo="flags\t: fpu\n")
    _write(root / "proc/stat", "cpu  70 5 5 60 40 8 7 5 90 0\n")
    source = CpuSource(root)
    assert _named(source)["hw.cpu.utilization"] is None
    _write(root / "proc/stat", "cpu  100 10 10 100 50 10 10 10 99 0\n")
    assert _named(source)["hw.cpu.utilization"] == 0.5
    source.close()


def test_memory_in_use_is_between_this_process_and_all_there_is() -> None:
    source = CpuSource()
    used = _named(source)["hw.memory.usage"]
    total = source.devices[0].attributes["memory.total"]
    source.close()
    assert used is not None and isinstance(total, int)
    assert 2**20 < used < total


def test_the_load_is_the_kernel_s() -> None:
    source = CpuSource()
    before = os.getloadavg()[0]
    load = _named(source)["system.cpu.load_average.1m"]
    source.close()
    assert load in (before, os.getloadavg()[0])


def test_swap_is_what_the_kernel_says_and_unavailable_without_any(tmp_path: Path) -> None:
    proc = tmp_path / "proc"
    proc.mkdir()
    for name in ("stat", "cpuinfo"):
        (proc / name).write_text(Path("/proc", name).read_text())
    fields = "MemTotal: 1000 kB\nMemFree: 200 kB\nMemAvailable: 400 kB\n"
    for swap, used in (("SwapTotal: 500 kB\nSwapFree: 400 kB\n", 100 * 1024), ("", None)):
        (proc / "meminfo").write_text(fields + (swap or "SwapTotal: 0 kB\nSwapFree: 0 kB\n"))
        source = CpuSource(tmp_path)
        values = _named(source)
        assert values["system.paging.usage"] == used and values["hw.memory.usage"] == 600 * 1024
        reasons = {channel.metric: channel.reason for channel in source.channels}
        assert (reasons["system.paging.usage"] is None) == bool(swap)
        source.close()


def test_what_cannot_be_had_is_none_with_a_reason() -> None:
    source = CpuSource()
    values = _named(source)
    for channel in source.channels:
        assert (channel.reason is not None) == (channel.method is Method.UNAVAILABLE)
        if channel.reason:
            assert values[channel.metric] is None
    source.close()
    source.close()


def _powercap(root: Path, energies: list[int]) -> list[Path]:
    files = []
    for n, energy in enumerate(energies):
        zone = root / f"sys/class/powercap/intel-rapl:{n}"
        zone.mkdir(parents=True)
        (zone / "name").write_text(f"package-{n}\n")
        (zone / "max_energy_range_uj").write_text("1000000\n")
        files.append(zone / "energy_uj")
        files[-1].write_text(f"{energy}\n")
    return files


def test_power_is_the_sum_of_the_packages_and_survives_a_wrapped_counter(tmp_path: Path) -> None:
    first, second = _powercap(tmp_path, [900_000, 100_000])
    rapl = open_rapl(tmp_path)
    start = time.monotonic()
    assert rapl.watts() is None
    time.sleep(0.15)
    first.write_text("100000\n")  # 0.2 J, past the wrap at 1 J
    second.write_text("400000\n")  # 0.3 J
    watts = rapl.watts()
    took = time.monotonic() - start
    rapl.close()
    assert watts is not None
    assert 0.5 / took <= watts <= 0.5 / 0.15


def test_a_counter_s_difference() -> None:
    assert difference(3, 10, 100) == 7
    assert difference(90, 10, 100) == 20


def test_no_rapl_is_a_reason_and_not_a_zero(tmp_path: Path) -> None:
    rapl = open_rapl(tmp_path)
    assert rapl.watts() is None
    assert rapl.reason is not None and "powercap" in rapl.reason


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_rapl_without_permission_says_so(tmp_path: Path) -> None:
    _powercap(tmp_path, [1])[0].chmod(0)
    assert "root" in (open_rapl(tmp_path).reason or "")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_the_tightest_cgroup_2_limit_on_the_way_up_counts(tmp_path: Path) -> None:
    _write(tmp_path / "proc/7/cgroup", "0::/job/step\n")
    mount = tmp_path / "sys/fs/cgroup"
    _write(mount / "cgroup.controllers", "cpu memory\n")
    _write(mount / "job/cpu.max", "150000 100000\n")
    _write(mount / "job/step/cpu.max", "max 100000\n")
    _write(mount / "job/step/memory.max", "1048576\n")
    found = limits(7, tmp_path)
    assert (found.version, found.cpus, found.memory) == ("v2", 1.5, 1048576)


def test_cgroup_1_limits(tmp_path: Path) -> None:
    _write(tmp_path / "proc/7/cgroup", "5:memory:/a\n3:cpu,cpuacct:/a\n")
    mount = tmp_path / "sys/fs/cgroup"
    _write(mount / "memory/a/memory.limit_in_bytes", "9223372036854771712\n")
    _write(mount / "cpu,cpuacct/a/cpu.cfs_quota_us", "50000\n")
    _write(mount / "cpu,cpuacct/a/cpu.cfs_period_us", "100000\n")
    found = limits(7, tmp_path)
    assert (found.version, found.cpus, found.memory) == ("v1", 0.5, "unlimited")


def test_a_process_without_cgroup_has_unknown_limits(tmp_path: Path) -> None:
    found = limits(7, tmp_path)
    assert (found.version, found.cpus, found.memory) == (None, None, None)


@pytest.mark.parametrize(
    ("flags", "method"),
    [("fpu hypervisor", Method.UNAVAILABLE), ("fpu aperfmperf", Method.MEASURED)],
)
def test_a_nominal_frequency_is_not_called_measured(
    tmp_path: Path, flags: str, method: Method
) -> None:
    (tmp_path / "proc").mkdir()
    for name in ("stat", "meminfo"):
        (tmp_path / "proc" / name).write_text((Path("/proc") / name).read_text())
    (tmp_path / "proc/cpuinfo").write_text(f"cpu MHz\t\t: 2596.120\nflags\t\t: {flags}\n")
    source = CpuSource(tmp_path)
    (channel,) = [each for each in source.channels if each.metric == "hw.cpu.frequency"]
    value = _named(source)["hw.cpu.frequency"]
    source.close()
    assert channel.method is method
    if method is Method.MEASURED:
        assert value == 2596.12e6
    else:
        assert value is None and "nominal" in str(channel.reason)


@pytest.fixture
def without_psutil(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a capsule."""
    monkeypatch.setitem(sys.modules, "psutil", None)


def test_without_psutil_the_facts_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    with_it = _described(Path("/"))
    assert with_it["memory.total"] == psutil.virtual_memory().total
    monkeypatch.setitem(sys.modules, "psutil", None)
    assert _described(Path("/")) == with_it


@pytest.mark.usefixtures("without_psutil")
def test_cores_are_counted_by_their_threads_or_by_socket_and_are_unknown_otherwise(
    tmp_path: Path,
) -> None:
    socket = "physical id\t: {}\ncpu cores\t: 4\nflags\t\t: fpu\n"
    root = _root(tmp_path, cpuinfo="\n".join(socket.format(number) for number in (0, 0, 1)))
    assert _described(root)["core.physical.count"] == 8
    for number, threads in enumerate(("0,2", "1,3", "0,2", "1,3")):
        _write(
            root / f"sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list",
            f"{threads}\n",
        )
    assert _described(root)["core.physical.count"] == 2
    assert _described(_root(tmp_path / "other", cpuinfo="flags\t: fpu\n")) == {
        **_described(root),
        "core.physical.count": None,
    }


@pytest.mark.usefixtures("without_psutil")
def test_the_highest_frequency_is_the_mean_of_all_policies(tmp_path: Path) -> None:
    root = _root(tmp_path, cpuinfo="flags\t: fpu\n")
    assert _described(root)["frequency.max"] is None
    for policy, kilohertz in enumerate((3_000_000, 2_000_000)):
        folder = root / f"sys/devices/system/cpu/cpufreq/policy{policy}"
        _write(folder / "scaling_max_freq", f"{kilohertz}\n")
    assert _described(root)["frequency.max"] == 2.5e9


def _root(root: Path, *, cpuinfo: str) -> Path:
    """A root folder with what a CPU source must find."""
    _write(root / "proc/stat", Path("/proc/stat").read_text())
    _write(root / "proc/meminfo", "MemTotal: 1000 kB\n")
    _write(root / "proc/cpuinfo", cpuinfo)
    return root


def _described(root: Path) -> Mapping[str, object]:
    source = CpuSource(root)
    source.close()
    return source.devices[0].attributes
