"""The roofline: FLOP/s against FLOP per byte, under the ceilings of compute and bandwidth.

S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance model for
multicore architectures", CACM 52(4), 2009. At an intensity of I FLOP per byte no more than
min(compute ceiling, I x bandwidth) is attainable.

A bound is named by two shares, that of the compute ceiling and that of the bandwidth:

- ``NEAR`` (one half): with at least this share of a ceiling the run is bound by it. A step mixes
  kernels, and those that do not use the resource dilute the share: a step half of whose time goes
  at the full roof reads one half. What is slower than that is not explained by the roof.
- below that no ceiling holds the run; in words it is *far* below under ``FAR``, one fifth. The
  reason is looked for in the time in which nothing ran: ``IDLE`` (one quarter) of the time idle,
  or of the step in the data phase, is named as the cause, as removing it would make the step a
  quarter shorter or more.
- algorithmic bytes over ``OVER`` times the bandwidth never reached memory: caches served them, and
  then they show no bound. Five per cent is left for the error of a measured ceiling.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from gpuwatch import units
from gpuwatch.analysis.ceilings import BANDWIDTH, MEND, Ceiling
from gpuwatch.metrics import Method

NEAR = 0.5
FAR = 0.2
IDLE = 0.25
OVER = 1.05

MEMORY, COMPUTE, HOST, NEITHER, UNKNOWN = "memory", "compute", "host", "neither", "unknown"
ALGORITHMIC, MEASURED, EXECUTED = "algorithmic", "measured", "executed"
KINDS = (EXECUTED, MEASURED, ALGORITHMIC)
"""Kinds of bytes, the most trustworthy first."""

_BYTES = {
    ALGORITHMIC: "algorithmic bytes (operators' inputs and outputs; no caches, no fusion)",
    MEASURED: "measured bytes (DRAM traffic by hardware counters over the steady steps)",
    EXECUTED: "executed FLOP and DRAM bytes by ncu, at the step rate of the timed steps",
}
_SHORT = {ALGORITHMIC: "algorithmic bytes", MEASURED: "measured bytes", EXECUTED: "ncu's bytes"}


@dataclass(frozen=True)
class Rates:
    """Means over one stretch of a run, over all devices it used; ``None`` is unknown."""

    flop: float | None = None
    """Counted model FLOP/s."""
    bytes: float | None = None
    """Algorithmic By/s."""
    measured_bytes: float | None = None
    """DRAM By/s by hardware counters."""
    executed_flop: float | None = None
    """Executed FLOP per step by ncu, times the step rate."""
    executed_bytes: float | None = None
    """DRAM bytes read and written per step by ncu, times the step rate, By/s."""
    on_gpu: bool = True
    busy: float | None = None
    """Share of time in which a kernel ran (GPU), in which the workload's threads ran (CPU; where
    their number is not known, the share of all cores' time in use)."""
    cores_busy: float | None = None
    """CPU, beside ``busy`` of threads: share of all cores' time in use, by any program."""
    sm_activity: float | None = None
    """Share of time a multiprocessor had work, mean over all."""
    data_share: float | None = None
    """Share of the steps' time in the data phase."""


@dataclass(frozen=True)
class Point:
    """A run in the roofline's plane."""

    label: str
    intensity: float
    """FLOP per byte."""
    rate: float
    """FLOP/s."""
    bytes_kind: str
    """``algorithmic``, ``measured`` or ``executed``."""
    method: Method
    """Of the point: ``measured`` where ncu counted both, else ``counted``, as model FLOP are."""
    text: str
    """What the bytes are, for people."""

    @property
    def bytes_rate(self) -> float:
        """By/s."""
        return self.rate / self.intensity


@dataclass(frozen=True)
class Verdict:
    """What a run is bound by."""

    bound: str
    """``memory``, ``compute``, ``host`` (launch- or host-bound), ``neither`` (below both,
    without idle time that explains it) or ``unknown``."""
    text: str
    """One sentence, with the figures that show it."""
    mend: str | None = None
    """What would tell more, where something would."""


@dataclass(frozen=True)
class Roofline:
    label: str
    points: tuple[Point, ...]
    """The most trustworthy first: executed, measured, algorithmic."""
    ceilings: Mapping[str, Ceiling]
    """By name, ``bandwidth`` among them."""
    data_type: str | None
    """Whose compute ceiling is the run's."""
    verdict: Verdict
    reason: str | None
    """Why there is no point."""

    @property
    def bandwidth(self) -> Ceiling | None:
        return self.ceilings.get(BANDWIDTH)

    @property
    def compute(self) -> tuple[Ceiling, ...]:
        """The compute ceilings, highest first; operations that are not FLOP are none of them."""
        found = (each for each in self.ceilings.values() if each.unit == "FLOP/s")
        return tuple(sorted(found, key=lambda ceiling: -ceiling.value))


def roofline_of(
    label: str, rates: Rates, ceilings: Mapping[str, Ceiling], data_type: str | None
) -> Roofline:
    """Points, ceilings and the bound of a run, or of the last minute of one."""
    points = points_of(label, rates)
    reason = None if points else _no_point(rates)
    if reason is not None:
        verdict = Verdict(UNKNOWN, f"cannot tell what bounds the run: {reason}")
    else:
        compute = ceilings.get(data_type or "")
        verdict = verdict_of(points[0], rates, compute, ceilings.get(BANDWIDTH))
    return Roofline(label, points, dict(ceilings), data_type, verdict, reason)


def points_of(label: str, rates: Rates) -> tuple[Point, ...]:
    """A point for each kind of bytes that is known, the most trustworthy first."""
    found = (
        (EXECUTED, rates.executed_flop, rates.executed_bytes, Method.MEASURED),
        (MEASURED, rates.flop, rates.measured_bytes, Method.COUNTED),
        (ALGORITHMIC, rates.flop, rates.bytes, Method.COUNTED),
    )
    return tuple(
        Point(label, flop / size, flop, kind, method, _BYTES[kind])
        for kind, flop, size, method in found
        if flop and size and flop > 0 and size > 0 and 0 < flop / size < math.inf
    )


def verdict_of(
    point: Point, rates: Rates, compute: Ceiling | None, bandwidth: Ceiling | None
) -> Verdict:
    """Name what bounds a run; thresholds and their reasons stand at the top of this module."""
    of_compute = None if compute is None else point.rate / compute.value
    of_bandwidth = None if bandwidth is None else point.bytes_rate / bandwidth.value
    shares = _shares(of_compute, compute, of_bandwidth, bandwidth, point)
    near_compute = of_compute is not None and of_compute >= NEAR
    if of_bandwidth is not None and point.bytes_kind == ALGORITHMIC and of_bandwidth > OVER:
        cached = (
            f"{shares}: at least {units.percent(1 - 1 / of_bandwidth)} of these bytes came from "
            "caches"
        )
        if near_compute:
            return Verdict(COMPUTE, f"compute-bound: {cached}")
        text = f"cannot tell what bounds the run: {cached}, so they show no bound"
        return Verdict(UNKNOWN, text, _COUNTERS if rates.on_gpu else None)
    near_bandwidth = of_bandwidth is not None and of_bandwidth >= NEAR
    if near_bandwidth and (of_compute is None or (of_bandwidth or 0) >= of_compute):
        if point.bytes_kind == ALGORITHMIC:
            text = f"memory-bound, if caches save little: {shares}"
            return Verdict(MEMORY, text, _COUNTERS if rates.on_gpu else None)
        return Verdict(MEMORY, f"memory-bound: {shares}")
    if near_compute:
        return Verdict(COMPUTE, f"compute-bound: {shares}")
    if of_compute is None or of_bandwidth is None:
        known = f" ({shares})" if shares else ""
        which = _unknown_ceilings(compute, bandwidth)
        return Verdict(UNKNOWN, f"cannot tell what bounds the run: {which}{known}", MEND)
    where = "far below" if max(of_compute, of_bandwidth) < FAR else "under half of"
    return _below(f"{where} both ceilings", shares, rates)


_COUNTERS = "measured bytes would tell: GPM (Hopper and later), DCGM, or ncu by --counters"


def _unknown_ceilings(compute: Ceiling | None, bandwidth: Ceiling | None) -> str:
    names = [
        name
        for name, ceiling in (("compute", compute), ("bandwidth", bandwidth))
        if ceiling is None
    ]
    return f"the {' and the '.join(names)} ceiling{'s are' if len(names) > 1 else ' is'} not known"


def _shares(
    of_compute: float | None,
    compute: Ceiling | None,
    of_bandwidth: float | None,
    bandwidth: Ceiling | None,
    point: Point,
) -> str:
    told = []
    if compute is not None:
        told.append(f"{units.percent(of_compute)} of the {compute.text}")
    if bandwidth is not None:
        told.append(
            f"{_SHORT[point.bytes_kind]} at {units.percent(of_bandwidth)} of the {bandwidth.text}"
        )
    return ", ".join(told)


def _below(where: str, shares: str, rates: Rates) -> Verdict:
    idle, data = idle_of(rates), rates.data_share
    told = []
    if idle is not None and idle >= IDLE:
        told.append(_idle_text(rates, idle))
    if data is not None and data >= IDLE:
        told.append(f"waiting for data took {units.percent(data)} of the step")
    if told:
        kind = "launch- or host-bound" if rates.on_gpu else "host-bound"
        return Verdict(HOST, f"{where}, {kind}: {'; '.join(told)} ({shares})")
    return Verdict(
        NEITHER,
        f"{where}, and idle time does not explain it: {_why(rates)} ({shares})",
        "`gpuwatch kernels` shows where the time went",
    )


def _why(rates: Rates) -> str:
    idle = idle_of(rates)
    if idle is None:
        return "how much of the time nothing ran is not known"
    told = _idle_text(rates, idle)
    if not rates.on_gpu:
        return f"{told}: small operators, or operators that use neither well"
    active = rates.sm_activity
    if rates.busy is not None and active is not None and 1 - active >= IDLE:
        return (
            f"{told}, but {units.percent(1 - active)} of the multiprocessors' time was without "
            "work: the kernels are too small to fill the GPU"
        )
    return f"{told}: small kernels, or kernels that use neither well"


def idle_of(rates: Rates) -> float | None:
    """Share of time in which the device had nothing to do: no kernel ran, or cores were idle.

    On a GPU whose utilization is not known, the share of time its multiprocessors had no work,
    which is the most it can be.
    """
    used = rates.sm_activity if rates.on_gpu and rates.busy is None else rates.busy
    return None if used is None else min(1.0, max(0.0, 1 - used))


def _idle_text(rates: Rates, idle: float) -> str:
    if not rates.on_gpu:
        if rates.cores_busy is None:
            return f"{units.percent(idle)} of the cores' time was idle"
        if idle >= IDLE > 1 - rates.cores_busy:
            return (
                f"other programs held the cores: busy {units.percent(rates.cores_busy)} of the "
                f"time, while the workload's threads ran {units.percent(1 - idle)} of it"
            )
        return f"the workload's threads did not run {units.percent(idle)} of the time"
    if rates.busy is None:
        return f"the multiprocessors were without work {units.percent(idle)} of the time"
    return f"no kernel ran {units.percent(idle)} of the time"


def _no_point(rates: Rates) -> str:
    if not rates.flop and not rates.executed_flop:
        return "no FLOP/s are known: the workload reported no FLOP per step, or no timed step"
    return "no bytes are known: neither counted per step nor measured"
