"""The ceilings of a session's devices, looked up again only when something about them changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuwatch.analysis.hardware.ceilings import (
    BANDWIDTH,
    PEAK,
    Ceiling,
    ceilings_of,
    data_type_of,
    every_ceiling_of,
)
from gpuwatch.core.models import mapping
from gpuwatch.session.rows import DeviceRow


class CeilingsNow:
    """Lives in the feed's thread."""

    def __init__(self) -> None:
        self._meta: Mapping[str, Any] = {}
        self._devices: tuple[DeviceRow, ...] = ()
        self._known: object = None
        self._found: dict[str | None, Mapping[str, Ceiling]] = {}
        self._bandwidth: dict[str, float | None] = {}
        self.data_type: str | None = None
        """Of the run's matrix products."""

    def update(self, meta: Mapping[str, Any], devices: tuple[DeviceRow, ...]) -> None:
        """Take what is known now."""
        known = (meta.get("ceilings"), meta.get("run"), devices)
        if known == self._known:
            return
        self._known, self._meta, self._devices = known, meta, devices
        self._found, self._bandwidth = {}, {}
        self.data_type = data_type_of(mapping(meta.get("run")))

    def of(self, device: str | None) -> Mapping[str, Ceiling]:
        """By name the ceilings of one device; of ``None``, of all that the run uses together."""
        if device not in self._found:
            self._found[device] = ceilings_of(self._meta, self._devices, device)
        return self._found[device]

    def doubts(self) -> tuple[str, ...]:
        """What disturbed the measurement of the ceilings that the run's shares are of."""
        used = [self.of(None).get(name) for name in (BANDWIDTH, self.data_type or "")]
        return tuple(f"{each.text}: {each.doubt}" for each in used if each and each.doubt)

    def peak_bandwidth(self, device: str | None) -> float | None:
        """What the device's memory cannot exceed, By/s; a measured ceiling is no such limit."""
        if device is None:
            return None
        if device not in self._bandwidth:
            found = every_ceiling_of(self._meta, self._devices, device).get(BANDWIDTH, ())
            peak = next((each.value for each in found if each.kind == PEAK), None)
            self._bandwidth[device] = peak
        return self._bandwidth[device]
