"""What does not change about the host's processors, from sysfs and /proc/cpuinfo."""

from __future__ import annotations

from pathlib import Path


def physical_cores(root: Path = Path("/")) -> int | None:
    """Cores without their hardware threads; ``None`` where the kernel does not say."""
    topology = "sys/devices/system/cpu/cpu[0-9]*/topology"
    for name in ("core_cpus_list", "thread_siblings_list"):
        siblings = {_text(path) for path in root.glob(f"{topology}/{name}")}
        if siblings - {None}:
            return len(siblings - {None})
    return _counted(_text(root / "proc/cpuinfo") or "")


def maximum_frequency(root: Path = Path("/")) -> float | None:
    """Hertz, the mean of the frequency policies' maxima; ``None`` without cpufreq."""
    policies = root.glob("sys/devices/system/cpu/cpufreq/policy*/scaling_max_freq")
    read = [int(text) * 1e3 for path in policies if (text := _text(path)) and text.isdigit()]
    return sum(read) / len(read) if read else None


def _counted(cpuinfo: str) -> int | None:
    """The sum over sockets of the cores that each says it has."""
    sockets: dict[str, int] = {}
    for block in cpuinfo.split("\n\n"):
        pairs = (line.partition(":") for line in block.splitlines())
        of = {key.strip(): value.strip() for key, _, value in pairs}
        if of.get("physical id") and of.get("cpu cores", "").isdigit():
            sockets[of["physical id"]] = int(of["cpu cores"])
    return sum(sockets.values()) or None


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
