"""The host's processors and memory, from the kernel's own accounting."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.processes import read_text
from gpuwatch.telemetry.base import Change, Channel, Device, Event, Value, measured
from gpuwatch.telemetry.host.cgroup import limits

SHORTEST_S = 0.1
"""The counters step about once a millisecond, so shorter differences are too coarse."""


@dataclass
class _Package:
    descriptor: int
    wraps_at: int
    """Value in microjoules at which the counter wraps to zero."""
    last: int | None = None


class Rapl:
    """Mean power of all packages between two calls; ``reason`` says why it is unknown."""

    def __init__(self, packages: list[_Package], reason: str | None) -> None:
        self.reason = reason
        self._packages = packages
        self._at: float | None = None
        self._watts: float | None = None

    def watts(self) -> float | None:
        """Mean watts since the last reading; unchanged within a tenth of a second."""
        now = time.monotonic()
        if self.reason is not None or (self._at is not None and now - self._at < SHORTEST_S):
            return self._watts
        joules: float | None = 0.0
        for package in self._packages:
            try:
                energy = int(os.pread(package.descriptor, 32, 0))
            except (OSError, ValueError) as error:
                self.reason, self._watts = f"energy_uj can no longer be read ({error})", None
                return None
            before, package.last = package.last, energy
            if before is None or joules is None:
                joules = None
            else:
                joules += difference(before, energy, package.wraps_at) / 1e6
        before_at, self._at = self._at, now
        if joules is not None and before_at is not None:
            self._watts = joules / (now - before_at)
        return self._watts

    def close(self) -> None:
        for package in self._packages:
            os.close(package.descriptor)
        self._packages, self.reason, self._watts = [], "closed", None


def difference(before: int, after: int, wraps_at: int) -> int:
    """Increase of a counter that wraps to zero at ``wraps_at``, at most once."""
    return after - before if after >= before else after - before + wraps_at


def open_rapl(root: Path = Path("/")) -> Rapl:
    """Open the counters of all packages, or of none, with the reason. Never raises."""
    packages: list[_Package] = []
    zones = sorted((root / "sys/class/powercap").glob("intel-rapl:*"))
    try:
        for zone in zones:
            if not (zone / "name").read_text(encoding="ascii").startswith("package"):
                continue
            wraps_at = int((zone / "max_energy_range_uj").read_text(encoding="ascii"))
            descriptor = os.open(zone / "energy_uj", os.O_RDONLY | os.O_CLOEXEC)
            packages.append(_Package(descriptor, wraps_at))
    except PermissionError:
        reason: str | None = "energy_uj may only be read by root on this machine"
    except (OSError, ValueError) as error:
        reason = f"RAPL cannot be read: {error}"
    else:
        reason = None if packages else "no RAPL under /sys/class/powercap (usual in a VM)"
    if reason is not None:
        for package in packages:
            os.close(package.descriptor)
        packages = []
    return Rapl(packages, reason)


_channel = partial(measured, "cpu")
FREQUENCY_EVERY_S = 1.0
"""Reading a core's frequency can interrupt it, so it is read at most once a second."""
FREQUENCY_CORES = 16
"""Maximum number of frequency policies to read, evenly spread."""


class CpuSource:
    """Device ``cpu``: utilization, frequency, package power, load, the host's memory and swap.

    ``root`` is the folder that holds ``/proc`` and ``/sys``.
    """

    def __init__(self, root: Path = Path("/")) -> None:
        proc = root / "proc"
        self._stat = os.open(proc / "stat", os.O_RDONLY | os.O_CLOEXEC)
        self._meminfo = os.open(proc / "meminfo", os.O_RDONLY | os.O_CLOEXEC)
        self._cpuinfo = os.open(proc / "cpuinfo", os.O_RDONLY | os.O_CLOEXEC)
        self._open = [self._stat, self._meminfo, self._cpuinfo]
        self._policies: list[int] = []
        self._times: tuple[int, int] | None = None
        self._frequency: Value = None
        self._frequency_due = 0.0
        self._rapl = open_rapl(root)
        self.devices = (self._describe(root),)
        """The one device ``cpu``; attributes in bytes, hertz and cores."""
        self.channels = (
            _channel("hw.cpu.utilization", "/proc/stat (all but idle and iowait)"),
            self._frequency_channel(root),
            _channel("hw.cpu.power", "RAPL energy_uj, packages", self._rapl.reason),
            _channel("hw.memory.usage", "/proc/meminfo MemTotal - MemAvailable"),
            _channel(
                "system.paging.usage",
                "/proc/meminfo SwapTotal - SwapFree",
                None if self._memory_bytes().get(b"SwapTotal") else "the host has no swap",
            ),
            _channel("system.cpu.load_average.1m", "getloadavg(3)"),
        )

    def sample(self) -> Sequence[Value]:
        """Utilization and power are means since the last sample; the first sample has neither."""
        if not self._open:
            return [None] * len(self.channels)
        memory = self._memory_bytes()
        return [
            self._utilization(),
            self._mean_frequency(),
            self._rapl.watts(),
            _difference(memory, b"MemTotal", b"MemAvailable"),
            None if self.channels[4].reason else _difference(memory, b"SwapTotal", b"SwapFree"),
            os.getloadavg()[0],
        ]

    def drain(self) -> tuple[Sequence[Change], Sequence[Event]]:
        """Power can become unavailable during a run; nothing else changes."""
        known = self.channels[2]
        now = _channel("hw.cpu.power", known.source, self._rapl.reason)
        if not self._open or now == known:
            return (), ()
        self.channels = (*self.channels[:2], now, *self.channels[3:])
        return (Change(now),), ()

    def close(self) -> None:
        for descriptor in (*self._open, *self._policies):
            os.close(descriptor)
        self._open, self._policies = [], []
        self._rapl.close()

    def _utilization(self) -> Value:
        """Share of all cores' time since the last sample; ``None`` within one clock tick."""
        fields = [int(text) for text in os.pread(self._stat, 256, 0).split(b"\n", 1)[0].split()[1:]]
        total, idle = sum(fields[:8]), fields[3] + fields[4]
        before, self._times = self._times, (total, idle)
        if before is None or total <= before[0]:
            return None
        return min(1.0, max(0.0, 1 - (idle - before[1]) / (total - before[0])))

    def _memory_bytes(self) -> dict[bytes, int]:
        """The first fields of ``/proc/meminfo``, swap among them, in bytes."""
        lines = os.pread(self._meminfo, 1024, 0).split(b"\n")
        fields = (line.partition(b":") for line in lines if line.endswith(b" kB"))
        return {name: int(value.split()[0]) * 1024 for name, _, value in fields}

    def _mean_frequency(self) -> Value:
        if self.channels[1].reason is not None:
            return None
        now = time.monotonic()
        if now >= self._frequency_due:
            self._frequency_due = now + FREQUENCY_EVERY_S
            read = self._policy_frequencies() if self._policies else self._cpuinfo_frequencies()
            self._frequency = sum(read) / len(read) if read else None
        return self._frequency

    def _policy_frequencies(self) -> list[float]:
        read: list[float] = []
        for descriptor in self._policies:
            with suppress(OSError, ValueError):
                read.append(int(os.pread(descriptor, 32, 0)) * 1e3)
        return read

    def _cpuinfo_frequencies(self) -> list[float]:
        """Frequencies of the first dozen cores; reading the whole file takes milliseconds."""
        text = os.pread(self._cpuinfo, 16384, 0)
        lines = text[: text.rfind(b"\n") + 1].split(b"\n")
        return [float(line.split(b":")[1]) * 1e6 for line in lines if line.startswith(b"cpu MHz")]

    def _frequency_channel(self, root: Path) -> Channel:
        policies = sorted(
            (root / "sys/devices/system/cpu/cpufreq").glob("policy*/scaling_cur_freq")
        )
        step = max(1, -(-len(policies) // FREQUENCY_CORES))
        for path in policies[::step]:
            with suppress(OSError):
                self._policies.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
        name = "hw.cpu.frequency"
        if self._policies:
            return _channel(
                name, f"cpufreq scaling_cur_freq, {len(self._policies)} of {len(policies)} policies"
            )
        if not self._cpuinfo_frequencies():
            reason = "the kernel gives no frequency: neither cpufreq nor MHz in /proc/cpuinfo"
            return _channel(name, "/proc/cpuinfo", reason)
        # Without APERF and MPERF the kernel prints the nominal clock rate.
        if b" aperfmperf" not in os.pread(self._cpuinfo, 16384, 0):
            reason = (
                "the kernel does not see the cores' real frequency (no cpufreq, no APERF/MPERF: "
                "as in most virtual machines); the one in /proc/cpuinfo is nominal"
            )
            return _channel(name, "/proc/cpuinfo", reason)
        return _channel(name, "/proc/cpuinfo cpu MHz, by APERF and MPERF")

    def _describe(self, root: Path) -> Device:
        name = platform.machine()
        for line in os.pread(self._cpuinfo, 16384, 0).decode("utf-8", "replace").splitlines():
            if line.startswith("model name"):
                name = line.split(":", 1)[1].strip()
                break
        memory = self._memory_bytes()
        try:
            import psutil
        except (
            ImportError
        ):  # where gpuwatch is not installed: it was sent without compiled packages
            cores, highest = _physical_cores(root), _highest_frequency(root)
        else:
            frequency = psutil.cpu_freq()
            cores = psutil.cpu_count(logical=False)
            highest = frequency.max * 1e6 if frequency and frequency.max else None
        return Device(
            "cpu",
            "cpu",
            name,
            attributes={
                "core.logical.count": os.cpu_count(),
                "core.physical.count": cores,
                "core.affinity.count": len(os.sched_getaffinity(0)),
                "cgroup.cpu.limit": limits("self", root).cpus,
                "frequency.max": highest,
                "memory.total": memory.get(b"MemTotal"),
                "swap.total": memory.get(b"SwapTotal"),
            },
        )


def _difference(memory: dict[bytes, int], total: bytes, free: bytes) -> Value:
    return memory[total] - memory[free] if total in memory and free in memory else None


def _physical_cores(root: Path) -> int | None:
    """Number of cores of all sockets, however many threads each runs; ``None`` if the kernel does
    not say."""
    cpus = root / "sys/devices/system/cpu"
    # Kernels before 5.0 have only the second file.
    for name in ("core_cpus_list", "thread_siblings_list"):
        siblings = {read_text(path) for path in cpus.glob(f"cpu[0-9]*/topology/{name}")}
        if siblings:
            return len(siblings)
    # Without a topology in /sys, /proc/cpuinfo may name the cores of each socket.
    sockets: dict[str, int] = {}
    for processor in (read_text(root / "proc/cpuinfo") or "").split("\n\n"):
        pairs = (line.partition(":") for line in processor.splitlines())
        fields = {key.strip(): value.strip() for key, _, value in pairs}
        if "physical id" in fields and "cpu cores" in fields:
            sockets[fields["physical id"]] = int(fields["cpu cores"])
    return sum(sockets.values()) or None


def _highest_frequency(root: Path) -> float | None:
    """The mean over all frequency policies of the highest frequency each allows, in hertz; ``None``
    without cpufreq, as in most virtual machines."""
    policies = (root / "sys/devices/system/cpu/cpufreq").glob("policy[0-9]*/scaling_max_freq")
    highest = [int(text) * 1e3 for path in policies if (text := read_text(path))]
    return sum(highest) / len(highest) if highest else None
