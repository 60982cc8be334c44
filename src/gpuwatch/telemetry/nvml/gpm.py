"""GPM of one GPU: true DRAM bandwidth and pipe activity, sampled on its own schedule.

GPM counts as available if a real pair of samples has values, whatever the driver reports. It can
disappear and come back during a run.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gpuwatch.core.peaks import Peak
from gpuwatch.telemetry.base import Device, Event
from gpuwatch.telemetry.counters import is_mig, no_bandwidth, not_offered
from gpuwatch.telemetry.nvml.errors import LOST, NOT_SUPPORTED, PERMANENT, describe
from gpuwatch.telemetry.nvml.gpm_metrics import (
    FRESH_S,
    HASTE_S,
    METRICS,
    NO_NVLINK,
    NVLINK,
    SHORTEST_S,
    WANTED,
    Reading,
    due,
    period,
    reading_of,
    with_bandwidth,
)
from gpuwatch.telemetry.nvml.gpm_requirements import Owner, hint_of
from gpuwatch.telemetry.nvml.gpm_samples import GpmSamples, GpmUnsupported, Pair
from gpuwatch.telemetry.nvml.hung_calls import unanswered

RETRY_S, RETRY_LONGEST_S = 1.0, 10.0
"""Delay before a failed GPM is retried, in seconds: doubles with every failure, up to a limit."""
CALM_S = 60.0
"""After working for this many seconds, the next failure counts as the first."""
PATIENCE_S = 1.0
"""How long the start waits for the first pair, in seconds; a later one arrives as a change."""


class Gpm:
    """GPM of one GPU or MIG device.

    One thread calls :meth:`turn` of several of them, at the latest when ``wake`` is set;
    :meth:`run` serves one alone. Other threads call the remaining methods.
    """

    def __init__(
        self,
        nvml: Any,
        owner: Owner,
        interval_s: float,
        peak: Peak,
        device: Device,
        wake: threading.Event,
    ) -> None:
        self.due = -math.inf
        """When :meth:`turn` next has work, in monotonic seconds."""
        self.settled = threading.Event()
        """Set once it is known whether GPM has any values."""
        self.calling: tuple[str, float] | None = None
        """The call in progress and the monotonic time at which it began."""
        self._nvml = nvml
        self._owner = owner
        self._interval_s = interval_s
        self._peak = peak
        self._device = device
        self._no_peak = no_bandwidth(device, peak)
        self._pairs = GpmSamples(nvml, self._watched, is_mig(device))
        self._wake = wake
        self._closing = False
        self._lock = threading.Lock()
        self._epoch: int | None = None
        self._sums: dict[str, tuple[float, float]] = {}
        self._newest = -math.inf
        self._asked: float | None = None
        self._turned: int | None = None
        self._last_call = ""
        self._told: tuple[int, Mapping[str, str | None]] | None = None
        """What the owner was last told, for which epoch; ``None`` after a change."""
        self._worked = False
        self._missed = False
        self._hurried = False
        self._arrived = threading.Event()
        self._retry_s = RETRY_S
        self._well_since = math.inf

    @property
    def idle(self) -> bool:
        """Whether no call is in progress and no driver memory is held."""
        return self.calling is None and not self._pairs.held

    def begin(self, epoch: int) -> None:
        """Probe GPM after the GPU was opened; reports to the owner carry ``epoch``."""
        self.settled.clear()
        with self._lock:
            self._epoch = epoch
        self._wake.set()

    def rest(self) -> None:
        """Discard the samples of a lost GPU."""
        with self._lock:
            self._epoch = None
            self._sums = {}
        self._wake.set()

    def close(self) -> None:
        """Make :meth:`run` end after its current call."""
        self._closing = True
        self._wake.set()

    def hurry(self, now: float) -> None:
        """Request a pair now if there is none since the last :meth:`taken`: a read off schedule.

        These are the first reads, before the recorder's interval is known, and a recording's
        last. A reader that is faster than GPM's minimum interval never waits.
        """
        if self._interval_s < SHORTEST_S:
            return
        since, calling = self._pairs.since, self.calling
        if self._sums or self._epoch is None or since is None or now - since < SHORTEST_S:
            return
        if calling is None or now - calling[1] < HASTE_S:
            self._arrived.clear()
            self._hurried = True
            self._wake.set()

    def await_hurried(self, until: float) -> None:
        """Wait for the pair that :meth:`hurry` requested, at most until ``until`` (monotonic)."""
        if self._hurried:
            self._arrived.wait(max(0.0, until - time.monotonic()))

    def taken(self) -> dict[str, float]:
        """Means over the pairs since the last call, by metric; empty if no pair is fresh.

        Pairs are weighted by their length. Only the sampling thread calls this.
        """
        now = self._asked = time.monotonic()
        with self._lock:
            sums, self._sums = self._sums, {}
            if now - self._newest > FRESH_S:
                return {}
        return {metric: total / seconds for metric, (total, seconds) in sums.items()}

    def report_silence(self, now: float) -> None:
        """Report a call that has not returned for ``FRESH_S`` seconds."""
        calling, epoch = self.calling, self._epoch
        if calling is not None and epoch is not None and now - calling[1] > FRESH_S:
            reason = unanswered(calling[0])
            self._set_reason(epoch, reason)
            self._miss(f"{reason}; look for Xid errors in the kernel log")

    def run(self) -> None:
        """Take turns until closed."""
        self._wake = wake = threading.Event()
        while not self._closing:
            self.turn()
            wait_for_any((self,), wake)

    def free(self) -> None:
        """Release driver memory, after the last turn."""
        self._pairs.free()

    def turn(self) -> bool:
        """Do what is due; values go to :meth:`taken`, availability to the owner. Returns True."""
        epoch = self._epoch
        if epoch != self._turned:
            self._pairs.free()
            self._turned, self.due, self._worked = epoch, -math.inf, False
        if epoch is None:
            self.due = math.inf
            return True
        if self._hurried or self.due <= time.monotonic():
            try:
                if not self._pairs.aimed:
                    self._pairs.aim(self._owner.handle)
                self._took(epoch, self._pairs.take())
            except GpmUnsupported:
                self._refuse(epoch, not_offered(self._device))
            except self._nvml.NVMLError as error:
                self._failed(epoch, error.value)
            finally:
                self._hurried = False
                self._arrived.set()
        return True

    def _took(self, epoch: int, pair: Pair | None) -> None:
        if epoch != self._epoch:
            return
        now = time.monotonic()
        if pair is None:
            self.due = now + SHORTEST_S
            return
        self.due = due(now, self._asked, self._interval_s)
        seconds = pair.end - pair.begin
        if seconds > period(self._interval_s) + FRESH_S:
            return
        codes = [code for code, _ in pair.raw]
        if all(codes):
            self._failed(epoch, codes[0])
            return
        readings = with_bandwidth(
            {
                metric.metric: reading_of(metric, code, raw, is_mig(self._device))
                for metric, (code, raw) in zip(WANTED, pair.raw, strict=True)
            },
            self._peak,
            self._no_peak,
        )
        if not self._pairs.linked:
            readings |= dict.fromkeys(NVLINK, NO_NVLINK)
        self._keep(epoch, readings, seconds, pair.end)
        reasons = {metric: reading.reason for metric, reading in readings.items()}
        if self._told != (epoch, reasons):
            self._told = epoch, reasons
            self._owner.set_gpm_reasons(epoch, reasons)
        self._well(pair.end)
        self.settled.set()

    def _keep(
        self, epoch: int, readings: Mapping[str, Reading], seconds: float, end: float
    ) -> None:
        with self._lock:
            if epoch != self._epoch:
                return
            if end - self._newest > FRESH_S:
                self._sums = {}
            self._newest = end
            for metric, reading in readings.items():
                if reading.value is not None:
                    total, length = self._sums.get(metric, (0.0, 0.0))
                    self._sums[metric] = (total + reading.value * seconds, length + seconds)

    def _well(self, now: float) -> None:
        self._worked = True
        self._well_since = min(self._well_since, now)
        if now - self._well_since > CALM_S:
            self._retry_s = RETRY_S
        if self._missed:
            self._missed = False
            self._owner.announce(Event("gpm-back", "GPM gives values again", self._owner.id))

    def _failed(self, epoch: int, code: int) -> None:
        """Handle a failed call, or a pair in which every metric failed."""
        if epoch != self._epoch:
            return
        if code in LOST:
            self.due = math.inf
            self._owner.lose(code)
            return
        name, aimed = self._last_call, self._pairs.aimed
        reason = f"{name}: {describe(code).reason}"
        if code in PERMANENT and not self._worked:
            if name == "nvmlGpmQueryDeviceSupport" and code == NOT_SUPPORTED:
                reason = not_offered(self._device)
            elif aimed:
                reason = (
                    f"{reason} (tried on the GPU, whose nvmlGpmQueryDeviceSupport says yes: "
                    "seen on virtual GPUs)"
                )
            self._refuse(epoch, reason)
            return
        self._pairs.free()
        self.due = time.monotonic() + self._retry_s
        self._retry_s = min(2 * self._retry_s, RETRY_LONGEST_S)
        self._well_since = math.inf
        self._set_reason(epoch, reason)
        self._miss(f"{reason}; {hint_of(code)}")
        self.settled.set()

    def _miss(self, reason: str) -> None:
        """Report once that GPM stopped providing values."""
        if self._worked and not self._missed:
            self._missed = True
            self._owner.announce(
                Event("gpm-lost", f"GPM gives no values: {reason}", self._owner.id)
            )

    def _refuse(self, epoch: int, reason: str) -> None:
        """Turn GPM off until the GPU is opened again."""
        self._pairs.free()
        self.due = math.inf
        self._set_reason(epoch, reason)
        self.settled.set()

    def _set_reason(self, epoch: int, reason: str) -> None:
        self._told = None
        self._owner.set_gpm_reasons(epoch, dict.fromkeys(METRICS, reason))

    def _watched(self, name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Make a call that other threads can see, with its start, if it hangs."""
        self._last_call = name
        self.calling = (name, time.monotonic())
        try:
            return function(*arguments)
        finally:
            self.calling = None


def wait_for_any(gpms: Sequence[Gpm], wake: threading.Event) -> None:
    """Wait until one of them has work or ``wake`` is set; clears ``wake``."""
    due = min((gpm.due for gpm in gpms), default=math.inf)
    wake.wait(None if due == math.inf else max(0.0, due - time.monotonic()))
    wake.clear()
