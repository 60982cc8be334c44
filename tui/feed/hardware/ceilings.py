"""The ceilings of a session's devices, computed again only when their inputs change."""

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
from gpuwatch.analysis.hardware.mfu import MfuPeak, mfu_peaks
from gpuwatch.core.models import mapping
from gpuwatch.session.rows import DeviceRow


class CurrentCeilings:
    """Ceilings of a session's devices; used in the feed's thread."""

    def __init__(self) -> None:
        self._meta: Mapping[str, Any] = {}
        self._devices: tuple[DeviceRow, ...] = ()
        self._inputs: object = None
        self._ceilings: dict[str | None, Mapping[str, Ceiling]] = {}
        self._bandwidth: dict[str, float | None] = {}
        self.data_type: str | None = None
        """Data type of the run's matrix products."""
        self.mfu_peaks: tuple[MfuPeak, ...] = ()

    def update(self, meta: Mapping[str, Any], devices: tuple[DeviceRow, ...]) -> None:
        """Use the session's current meta data and devices."""
        inputs = (meta.get("ceilings"), meta.get("run"), devices)
        if inputs == self._inputs:
            return
        self._inputs, self._meta, self._devices = inputs, meta, devices
        self._ceilings, self._bandwidth = {}, {}
        self.data_type = data_type_of(mapping(meta.get("run")))
        self.mfu_peaks = mfu_peaks(meta, devices)

    def of(self, device: str | None) -> Mapping[str, Ceiling]:
        """Ceilings of one device by name; ``None``: of all devices of the run together."""
        if device not in self._ceilings:
            self._ceilings[device] = ceilings_of(self._meta, self._devices, device)
        return self._ceilings[device]

    def doubts(self) -> tuple[str, ...]:
        """Disturbances while the run's ceilings were measured."""
        ceilings = [self.of(None).get(name) for name in (BANDWIDTH, self.data_type or "")]
        return tuple(
            f"{ceiling.text}: {ceiling.doubt}" for ceiling in ceilings if ceiling and ceiling.doubt
        )

    def peak_bandwidth(self, device: str | None) -> float | None:
        """Peak bandwidth of the device's memory in By/s, never a measured one."""
        if device is None:
            return None
        if device not in self._bandwidth:
            ceilings = every_ceiling_of(self._meta, self._devices, device).get(BANDWIDTH, ())
            peak = next((ceiling.value for ceiling in ceilings if ceiling.kind == PEAK), None)
            self._bandwidth[device] = peak
        return self._bandwidth[device]
