"""Ceilings, shares, roofline, energy and traffic as JSON; ``docs/json.md`` documents the keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from gpuwatch.analysis.hardware.ceilings import Ceiling
from gpuwatch.analysis.hardware.efficiency import Efficiency, Share
from gpuwatch.analysis.hardware.kernels import times_of
from gpuwatch.analysis.hardware.mfu import EXECUTED_TWICE, MODEL_FLOP, MfuPeak
from gpuwatch.analysis.hardware.profile import Counters, Profile
from gpuwatch.analysis.hardware.roofline import Roofline
from gpuwatch.analysis.measured_value import MeasuredValue
from gpuwatch.core.models import JSON


def efficiency(of: Efficiency) -> dict[str, JSON]:
    """The key ``efficiency`` of a session."""
    energy, traffic = of.energy, of.traffic
    sheet, at_maximum = of.mfu_peaks
    return {
        "devices": list(of.covers),
        "data_type": of.data_type,
        "flop_rate": {**figure(of.flop_rate), "shares": _shares(of.flop_shares)},
        "most_executed_flop_rate": {
            **figure(of.most_executed),
            "shares": _shares(of.most_executed_shares),
        },
        "mfu": {**figure(of.mfu), "convention": _convention(of, MODEL_FLOP, sheet)},
        "mfu_at_maximum_clock": {
            **figure(of.mfu_at_maximum_clock),
            "convention": _convention(of, MODEL_FLOP, at_maximum),
        },
        "hfu": {**figure(of.hfu), "convention": _convention(of, EXECUTED_TWICE, sheet)},
        "bandwidth": {**figure(of.bandwidth), "shares": _shares(of.bandwidth_shares)},
        "bytes_rate": {**figure(of.bytes_rate), "shares": _shares(of.bytes_shares)},
        "intensity": figure(of.intensity),
        "energy": {
            "gpu": figure(energy.gpu),
            "gpu_per_step": figure(energy.gpu_per_step),
            "gpu_per_sample": figure(energy.gpu_per_sample),
            "cpu": figure(energy.cpu),
            "cpu_per_step": figure(energy.cpu_per_step),
            "cpu_per_sample": figure(energy.cpu_per_sample),
        },
        "traffic": {
            "bytes": figure(traffic.total),
            "sectors": figure(traffic.sectors),
            "per_step": figure(traffic.per_step),
            "coverage": traffic.coverage,
        },
        "findings": [asdict(each) for each in of.findings],
    }


def roofline(of: Roofline) -> dict[str, JSON]:
    """Points, ceilings and the bound of a session."""
    return {
        "label": of.label,
        "data_type": of.data_type,
        "points": [
            {
                "flop_per_byte": point.intensity,
                "flop_per_second": point.rate,
                "bytes_per_second": point.bytes_rate,
                "bytes": point.bytes_kind,
                "method": point.method.value,
                "text": point.text,
            }
            for point in of.points
        ],
        "ceilings": {name: _ceiling(each) for name, each in of.ceilings.items()},
        "bound": of.verdict.bound,
        "text": of.verdict.text,
        "hint": of.verdict.hint,
        "reason": of.reason,
    }


def profile(of: Profile | None) -> dict[str, JSON] | None:
    """Source of a profile and its times per step; for its tables see `gpuwatch kernels`."""
    if of is None:
        return None
    times = times_of(of)
    steps = of.steps or None
    return {
        "tool": of.tool,
        "version": of.version,
        "device": of.device,
        "steps": of.steps,
        "step_seconds": of.step_seconds,
        "reason": of.reason,
        "notes": list(of.notes),
        "time_method": of.time_method.value,
        "time_source": of.time_source,
        "tables": list(of.tables),
        "kernel_seconds_per_step": _each(times.kernels, steps),
        "copy_to_device_seconds_per_step": _each(times.copies_to_device, steps),
        "memset_seconds_per_step": _each(times.memset, steps),
    }


def counters(of: Counters | None) -> dict[str, JSON] | None:
    """Executed FLOP and DRAM bytes, without the single kernels."""
    if of is None:
        return None
    totals = asdict(of)
    totals.pop("kernels")
    return totals


def figure(of: MeasuredValue) -> dict[str, JSON]:
    return {**asdict(of), "method": of.method.value}


def _each(total: float | None, steps: int | None) -> float | None:
    return total / steps if total is not None and steps else None


def _convention(of: Efficiency, flop: str, peak: MfuPeak) -> dict[str, JSON]:
    known = peak.ceiling
    return {"flop": flop, "data_type": of.data_type, "peak": known and _ceiling(known)}


def _shares(shares: Sequence[Share]) -> list[JSON]:
    return [{"value": share.value, "ceiling": _ceiling(share.ceiling)} for share in shares]


def _ceiling(ceiling: Ceiling) -> dict[str, JSON]:
    return asdict(ceiling)
