"""Device memory traffic over the steady window, from hardware counters: bytes and sectors."""

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
"""Bytes per sector, the unit in which an NVIDIA GPU's caches access DRAM (NVIDIA Nsight Compute
documentation, "Memory Chart")."""


@dataclass(frozen=True)
class Traffic:
    """Memory reads and writes of all used GPUs together in the window."""

    total: MeasuredValue
    """Bytes. With samples over 90 % of the window or more, measured and scaled to all of it; with
    less, a lower bound: the bytes of the covered part."""
    sectors: MeasuredValue
    """The same in 32-byte sectors."""
    per_step: MeasuredValue
    """Bytes per timed step."""
    rate: MeasuredValue
    """Bytes per second, over the window."""
    coverage: float | None
    """Share of the window that samples cover, 0 to 1, on the GPU with the least."""

    @property
    def missing(self) -> str | None:
        """Why the measured bytes of the whole window are unknown; ``None`` where they are known."""
        return None if self.total.method is Method.MEASURED else self.total.reason


def traffic_of(
    samples: Sequence[Samples],
    devices: Sequence[str],
    window: Window,
    steps: int | None,
    missing: str | None = None,
    doubt: str | None = None,
) -> Traffic:
    """Integrate the measured bandwidth of ``devices`` over ``window``, which has ``steps`` steps.

    ``steps`` is ``None`` where the window is not that of the timed steps; ``missing`` is the reason
    for a run without GPUs, ``doubt`` that against any figure per step.
    """
    by_device = {
        series.channel.device: series for series in samples if series.channel.metric == METRIC
    }
    if not devices:
        return _unknown(missing or "the run used no GPU, and only GPUs count bytes to memory")
    without = [device for device in devices if device not in by_device]
    if without:
        return _unknown(f"the memory bandwidth of {', '.join(without)} was not sampled")
    integrals = [integral(by_device[device].values, window) for device in devices]
    coverage = min(part.coverage for part in integrals)
    sources = dict.fromkeys(by_device[device].channel.source for device in devices)
    source = f"integral of the measured bandwidth ({'; '.join(sources)})"
    if coverage <= 0:
        reasons = dict.fromkeys(by_device[device].channel.reason or "" for device in devices)
        reason = "; ".join(text for text in reasons if text)
        return _unknown(reason or "no sample of the memory bandwidth fell into the window")
    known = units.percent(coverage)
    if coverage >= FULL:
        value = sum(part.total / part.coverage for part in integrals)
        source += f", scaled from the {known} of the window that its samples cover"
        total = MeasuredValue(value, "By", Method.MEASURED, source)
    else:
        reason = f"samples cover only {known} of the window"
        value = sum(part.total for part in integrals)
        total = MeasuredValue(value, "By", Method.BOUND, source, reason)
    return Traffic(
        total,
        divided(total, SECTOR, "{sector}", "32 bytes", ""),
        unknown("By", doubt) if doubt else _per_step(total, steps),
        divided(total, window.seconds, "By/s", "the window", "the window has no length"),
        coverage,
    )


def _per_step(total: MeasuredValue, steps: int | None) -> MeasuredValue:
    reason = "the window is not that of timed steps"
    return divided(total, steps, "By", "the timed steps", reason)


def _unknown(reason: str) -> Traffic:
    return Traffic(
        unknown("By", reason),
        unknown("{sector}", reason),
        unknown("By", reason),
        unknown("By/s", reason),
        None,
    )
