"""Device memory traffic: bytes and 32-byte sectors over the steady window, by hardware counters."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.analysis.measured_value import MeasuredValue, divided, unknown
from gpuwatch.analysis.samples.channels import FULL, Samples, integral
from gpuwatch.analysis.samples.window import Window
from gpuwatch.core import units
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import Method

METRIC = "hw.gpu.memory.bandwidth"
SECTOR = 32
"""Bytes: the granule in which an NVIDIA GPU's caches move data to and from DRAM (NVIDIA Nsight
Compute's documentation, "Memory Chart": a sector is 32 bytes)."""


@dataclass(frozen=True)
class Traffic:
    """What all used GPUs read from and wrote to their memory in the window."""

    total: MeasuredValue
    """Bytes. Measured where samples cover 90 % of the window or more, then scaled to all of it;
    with less a bound: at least what the covered part moved."""
    sectors: MeasuredValue
    """The same in sectors of 32 bytes."""
    per_step: MeasuredValue
    """Bytes per timed step."""
    rate: MeasuredValue
    """Bytes per second, over the window."""
    coverage: float | None
    """Share of the window that samples cover, of the GPU with the least."""

    @property
    def missing(self) -> str | None:
        """Why no measured bytes are known for all of the window; ``None`` where they are."""
        return None if self.total.method is Method.MEASURED else self.total.reason


def traffic_of(
    samples: Sequence[Samples],
    devices: Sequence[str],
    window: Window,
    steps: int | None,
    missing: str | None = None,
) -> Traffic:
    """Integrate the measured bandwidth of ``devices`` over ``window``; ``steps`` of it are timed.

    ``steps`` is ``None`` where the window is not that of the timed steps; ``missing`` says why a
    run without GPUs has no bandwidth.
    """
    found = {each.channel.device: each for each in samples if each.channel.metric == METRIC}
    if not devices:
        return _unknown(missing or "the run used no GPU, and only GPUs count bytes to memory")
    without = [device for device in devices if device not in found]
    if without:
        return _unknown(f"the memory bandwidth of {', '.join(without)} was not sampled")
    integrals = [integral(found[device].values, window) for device in devices]
    coverage = min(each.coverage for each in integrals)
    sources = dict.fromkeys(found[device].channel.source for device in devices)
    source = f"integral of the measured bandwidth ({'; '.join(sources)})"
    if coverage <= 0:
        reasons = dict.fromkeys(found[device].channel.reason or "" for device in devices)
        told = "; ".join(reason for reason in reasons if reason)
        return _unknown(told or "no sample of the memory bandwidth fell into the window")
    known = units.percent(coverage)
    if coverage >= FULL:
        value = sum(each.total / each.coverage for each in integrals)
        source += f", scaled from the {known} of the window that its samples cover"
        total = MeasuredValue(value, "By", Method.MEASURED, source)
    else:
        reason = f"samples cover only {known} of the window"
        value = sum(each.total for each in integrals)
        total = MeasuredValue(value, "By", Method.BOUND, source, reason)
    return Traffic(
        total,
        divided(total, SECTOR, "{sector}", "32 bytes", ""),
        divided(total, steps, "By", "the timed steps", "the window is not that of timed steps"),
        divided(total, window.seconds, "By/s", "the window", "the window has no length"),
        coverage,
    )


def _unknown(reason: str) -> Traffic:
    return Traffic(
        unknown("By", reason),
        unknown("{sector}", reason),
        unknown("By", reason),
        unknown("By/s", reason),
        None,
    )
