"""Power of the CPU packages from RAPL's energy counters under Linux's powercap."""

from __future__ import annotations

import os
import time
from pathlib import Path

from gpuwatch.core.lazy_dataclass import dataclass

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
