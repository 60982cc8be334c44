"""What a run is bound by: the verdict of a roofline.

Two shares decide, that of the compute ceiling and that of the bandwidth:

- From ``NEAR`` (one half) on, a run is bound by the ceiling. A step mixes kernels, and those that
  do not use the resource dilute the share: a step that runs at the full roof for half of its time
  reads one half. The roof does not explain anything slower.
- Below that, no ceiling limits the run. The cause is sought in idle time: ``IDLE`` (one quarter) of
  the time idle, or of the step in the data phase, is named, since removing it would shorten the
  step by a quarter or more. Where a ceiling is not known, one half of the step is: no ceiling then
  explains as much; on a CPU the idle time is then that in which no thread of the program ran, less
  that in which a thread waited for a core or, where that is not known, other programs may have had
  all cores that it may use. Pipes that work
  ``FULL`` of the time (they need not be full then) bound a run whose compute ceiling is not known.
- Algorithmic bytes over ``OVER`` times the bandwidth never reached memory: caches served them, and
  they show no bound. Five per cent allow for the error of a measured ceiling.
- A counted rate over the arithmetic peak is impossible, and shows no bound either.
- Without such a cause, power that holds the clocks down for ``NEAR`` of the time is the bound.
- Clocks held down by power or temperature lower the compute ceiling: if it is a peak, the share of
  the peak at the actual clock decides.
- Any other rate over ``OVER`` times a measured ceiling means that the ceiling was measured too low;
  it says nothing about the bound.
"""

from __future__ import annotations

import math

from gpuwatch.analysis.hardware.ceilings import MEASURED as CALIBRATED
from gpuwatch.analysis.hardware.ceilings import SHEET, Ceiling, Missing, is_over
from gpuwatch.analysis.hardware.points import ALGORITHMIC, EXECUTED, MEASURED, OUTSIDE, Point, Rates
from gpuwatch.core import units
from gpuwatch.core.lazy_dataclass import dataclass

NEAR = 0.5
IDLE = 0.25
OVER = 1.05
FULL = 0.8
_APART = 0.005
"""Least difference of two shares that are both told."""

MEMORY, COMPUTE, HOST, POWER = "memory", "compute", "host", "power"
NEITHER, UNKNOWN = "neither", "unknown"
_BY = {ALGORITHMIC: " by algorithmic bytes", MEASURED: "", EXECUTED: " by ncu's bytes"}


@dataclass(frozen=True)
class Verdict:
    """What a run is bound by."""

    bound: str
    """``memory``, ``compute``, ``host`` (launch- or host-bound), ``power``, ``neither`` (below
    both, without idle time that explains it) or ``unknown``."""
    text: str
    """One sentence with its figures. A share of which it says nothing else is one of the data
    sheet's dense peak of the run's data type, or of its bandwidth, by measured bytes."""
    hint: str | None = None
    """What would tell more, if anything."""


def verdict_of(
    point: Point,
    rates: Rates,
    data_type: str | None,
    compute: Ceiling | None,
    bandwidth: Ceiling | None,
    missing: Missing,
) -> Verdict:
    """Name what bounds a run; the module's docstring gives the thresholds and their reasons.

    Args:
        compute: FLOP/s.
        bandwidth: By/s.
        missing: reason and hint for a ceiling that was not measured.
    """
    of_compute = None if compute is None else point.rate / compute.value
    of_bandwidth = None if bandwidth is None else point.bytes_rate / bandwidth.value
    at_clock, clock = _at_clock(point.rate, compute, rates), ""
    if at_clock is not None and of_compute is not None and at_clock - of_compute > _APART:
        clock = f", {units.percent(at_clock)} at the clock it had"
    parts = [] if compute is None else [f"compute at {_of(of_compute, compute)}{clock}"]
    if bandwidth is not None:
        parts.append(f"bandwidth at {_of(of_bandwidth, bandwidth)}{_BY[point.bytes_kind]}")
    held = ""
    if rates.clocks is not None:
        held = f"; the clocks were held down {rates.clocks.text}"
    shares = ", ".join(parts) + (held if parts else "")
    limit = rates.limit
    if limit is not None and rates.flop is not None and is_over(limit, rates.flop):
        share = units.percent(rates.flop / limit.value)
        return _cannot_tell(f"{share} of the {limit.text}, which no run can pass: {_IMPOSSIBLE}")
    algorithmic = point.bytes_kind == ALGORITHMIC
    passed = [
        ceiling.text
        for ceiling, share, caches in (
            (compute, of_compute, False),
            (bandwidth, of_bandwidth, algorithmic),
        )
        if ceiling is not None and ceiling.kind == CALIBRATED and (share or 0) > OVER and not caches
    ]
    if passed:
        were = "was" if len(passed) == 1 else "were"
        text = f"the {' and the '.join(passed)} {were} measured too low ({shares})"
        return _cannot_tell(text, AGAIN)
    shown = of_compute
    if of_compute is not None and at_clock is not None:
        of_compute = max(of_compute, at_clock)
    near_compute = of_compute is not None and of_compute >= NEAR
    if of_bandwidth is not None and algorithmic and of_bandwidth > OVER:
        saved = f"{_at_least(1 - 1 / of_bandwidth)} of these bytes came from caches"
        if bandwidth is not None and bandwidth.doubt:
            saved = "these bytes came from caches, or the copy was measured too low"
        if near_compute:
            return _bound(COMPUTE, f"{shares}: {saved}", None, compute)
        return _cannot_tell(f"{saved}, so they show no bound ({shares})", _measured(rates))
    near_bandwidth = of_bandwidth is not None and of_bandwidth >= NEAR
    if near_bandwidth and (of_compute is None or (of_bandwidth or 0) >= of_compute):
        shares = ", ".join(reversed(parts)) + held
        if algorithmic:
            return _bound(MEMORY, shares, _measured(rates), bandwidth, "caches save little")
        return _bound(MEMORY, shares, None, bandwidth)
    if near_compute:
        return _bound(COMPUTE, shares, None, compute)
    if compute is None and rates.pipe is not None and rates.pipe[0] >= FULL:
        worked, name = rates.pipe
        text = f"the {name} pipes worked {units.percent(worked)} of the time"
        return Verdict(COMPUTE, f"{COMPUTE}-bound: {text}{held}")
    if compute is None or bandwidth is None:
        known = f" ({shares})" if shares else ""
        which, hint = _unknown_ceilings(data_type, compute, bandwidth, missing)
        causes = _idle_causes(rates, NEAR, idle=idle_of(rates) if rates.on_gpu else None)
        if not causes and rates.waits is not None:
            if rates.waits >= NEAR:
                causes = f"the program waited {_at_least(rates.waits)} of the time"
            elif rates.waits + (rates.held or 0.0) >= NEAR:
                held_off = f"other programs may have held its cores {_of_time(rates.held or 0.0)}"
                if rates.core_wait is not None:
                    held_off = _core_wait(rates, rates.core_wait)
                which = f"{held_off}; {which}"
                if (rates.outside or 0.0) >= NEAR:  # what is known comes first
                    which = f"{units.percent(rates.outside)} of a step is {OUTSIDE}; {which}"
        if causes:
            return _by_host(rates, NEAR, f"{causes}; {which}{known}", hint)
        limited = _by_power(rates, f"{which}{known.replace(held, '')}", hint)
        return limited or _cannot_tell(f"{which}{known}", hint)
    unused = (
        f"neither compute ({_share(shown, compute)}{clock}) nor bandwidth "
        f"({_share(of_bandwidth, bandwidth)}{_BY[point.bytes_kind]}) is full"
    )
    return _below(unused, held, rates)


def without_point(
    reason: str, hint: str | None, rates: Rates, bandwidth: Ceiling | None
) -> Verdict:
    """For a run without a point: a full memory is known without FLOP, as that of a copy, and so is
    a power limit."""
    measured = rates.measured_bytes
    share = None if bandwidth is None or measured is None else measured / bandwidth.value
    if bandwidth is None or share is None or not NEAR <= share <= OVER:
        if causes := _idle_causes(rates, NEAR):  # idle time may be that of a start
            return _by_host(rates, NEAR, f"{causes}; {reason}", hint)
        limited = None if share and share >= NEAR else _by_power(rates, reason, hint)
        return limited or _cannot_tell(reason, hint)
    return Verdict(MEMORY, f"{MEMORY}-bound: bandwidth at {_of(share, bandwidth)}; {reason}", hint)


def _cannot_tell(why: str, hint: str | None = None) -> Verdict:
    return Verdict(UNKNOWN, f"cannot tell what bounds the run: {why}", hint)


def _of(share: float | None, ceiling: Ceiling) -> str:
    return f"{units.percent(share)} of the {'doubtful ' if ceiling.doubt else ''}{ceiling.text}"


def _share(share: float | None, ceiling: Ceiling) -> str:
    """The share, with its ceiling unless that is the data sheet's."""
    return units.percent(share) if ceiling.kind == SHEET else _of(share, ceiling)


_IMPOSSIBLE = "too much is counted, or a faster data type than the reported one was in use"
AGAIN = "for later runs `gpuwatch calibrate` again while nothing else runs"
_DATA_TYPE = "a `run` line with `device` and `dtype` gives the data type (`gpuwatch run --help`)"


def _measured(rates: Rates) -> str | None:
    """Hint that measured bytes would settle the bound, and why they are missing."""
    if not rates.on_gpu:
        return None
    reason = f" ({rates.unmeasured})" if rates.unmeasured else ""
    return f"measured bytes would settle it{reason}"


def _at_clock(rate: float, compute: Ceiling | None, rates: Rates) -> float | None:
    """The share of the peak at the actual clock, where clocks were held down."""
    clock_share = None if rates.clocks is None else rates.clocks.share
    if compute is None or compute.kind == CALIBRATED or rates.limit is None or not clock_share:
        return None
    return rate / (rates.limit.value * clock_share)


def _bound(
    bound: str, shares: str, hint: str | None, ceiling: Ceiling | None, *conditions: str
) -> Verdict:
    """Memory- or compute-bound, with conditions where something is doubtful."""
    hints = [hint] if hint else []
    if ceiling is not None and ceiling.doubt:
        conditions = (*conditions, f"the {ceiling.text} was not measured too low")
        hints.append(AGAIN)
    condition = f", if {' and '.join(conditions)}" if conditions else ""
    told = shares.removeprefix("compute at ")
    return Verdict(bound, f"{bound}-bound{condition}: {told}", "; ".join(hints) or None)


def _unknown_ceilings(
    data_type: str | None, compute: Ceiling | None, bandwidth: Ceiling | None, missing: Missing
) -> tuple[str, str]:
    """Which ceilings are unknown, and how to get them."""
    reason = f": {missing.reason}" if missing.reason else ""
    if compute is None and data_type is None:
        no_type = "no data type is known of its products, and so no compute ceiling"
        if bandwidth is None:
            text = f"{no_type}, nor the bandwidth ceiling{reason}"
            return text, f"{_DATA_TYPE}; {missing.hint}"
        return no_type, _DATA_TYPE
    names = [
        name
        for name, ceiling in ((f"compute ({data_type})", compute), ("bandwidth", bandwidth))
        if ceiling is None
    ]
    are = "s are" if len(names) > 1 else " is"
    return f"the {' and the '.join(names)} ceiling{are} not known{reason}", missing.hint


def _below(unused: str, held: str, rates: Rates) -> Verdict:
    if causes := _idle_causes(rates, IDLE, idle=idle_of(rates)):
        return _by_host(rates, IDLE, f"{causes}; {unused}{held}")
    if limited := _by_power(rates, unused, rates.kernels):
        return limited
    if rates.clocks is not None and rates.clocks.held >= NEAR:  # said where it is not cut off
        share = rates.clocks.text.removesuffix(" of the time")
        unused, held = f"{unused}, clocks held down {share}", ""
    text = f"{unused}: {_no_idle_cause(rates)}{held}"
    return Verdict(NEITHER, text, rates.kernels)


def _by_power(rates: Rates, rest: str, hint: str | None) -> Verdict | None:
    clocks = rates.clocks
    if clocks is None or clocks.by_power < NEAR:
        return None
    limits = "" if clocks.power_limit is None else f" of {clocks.power_limit:.0f}"
    watts = "" if clocks.power is None else f"{clocks.power:.0f}{limits} W, "
    text = f"power-limited: {watts}clocks held down {_of_time(clocks.by_power)}; {rest}"
    return Verdict(POWER, text, hint)


def _at_least(share: float) -> str:
    """A lower bound is not rounded up."""
    return f"at least {units.percent(math.floor(share * 100) / 100, whole=True)}"


def _of_time(share: float) -> str:
    text = units.percent(share)
    return "all the time" if text == "100 %" else f"{text} of the time"


def _idle_causes(rates: Rates, least: float, *, idle: float | None = None) -> str:
    """Waits that take ``least`` of the time or more, for data first."""
    causes, data = [], rates.data_share
    if data is not None and data >= least:
        causes.append(f"waiting for data took {units.percent(data)} of the step")
    if idle is not None and idle >= least:
        causes.append(_idle_text(rates, idle))
    return "; ".join(causes)


def _by_host(rates: Rates, least: float, text: str, hint: str | None = None) -> Verdict:
    kind = "launch- or host-bound" if rates.on_gpu else "host-bound"
    kind = "input-bound" if (rates.data_share or 0.0) >= least else kind
    if rates.pause is not None and rates.pause >= NEAR:  # tells nothing of the steps
        kind = f"one pause between steps took {units.percent(rates.pause)} of the time"
    return Verdict(HOST, f"{kind}: {text}", hint)


def _no_idle_cause(rates: Rates) -> str:
    idle = idle_of(rates)
    if idle is None:
        cores = "" if rates.usable is None else f" of the {rates.usable:g} cores that it may use"
        return f"the idle time{cores} is unknown"
    text = _idle_text(rates, idle)
    if not rates.on_gpu:
        if rates.busy is None and rates.own_cores is None:
            return f"{text}; the share of the program itself is unknown"
        return f"its operators use neither well; {text}"
    active = rates.sm_activity
    if rates.busy is not None and active is not None and 1 - active >= IDLE:
        without = units.percent(1 - active)
        return (
            f"its kernels do not fill the GPU; {without} of the multiprocessors' time was without "
            f"work; {text}"
        )
    return f"its kernels use neither well; {text}"


def idle_of(rates: Rates) -> float | None:
    """Share of time in which the device had nothing to do, 0 to 1; ``None`` is unknown.

    GPU: no kernel ran; without utilization, the multiprocessors had no work, which is an upper
    bound. CPU: idle time of the workload's threads; where their number is unknown, the cores' time
    that the program's processes, or all programs, did not use; unknown where it may use only some
    of them, as nobody counts what others had of these.
    """
    if rates.on_gpu:
        used = rates.sm_activity if rates.busy is None else rates.busy
    else:
        known = (share for share in (rates.busy, rates.own_cores) if share is not None)
        used = None if rates.usable else next(known, rates.cores_busy)
    return None if used is None else min(1.0, max(0.0, 1 - used))


def _idle_text(rates: Rates, idle: float) -> str:
    if rates.on_gpu:
        what = "the multiprocessors were without work" if rates.busy is None else "no kernel ran"
        share = units.percent(idle)
        return f"{share} of the time {what}" if idle else "a kernel ran all the time"
    all_cores = "" if rates.cores_busy is None else units.percent(rates.cores_busy)
    if rates.busy is not None:
        ran = f"the workload's threads ran {units.percent(1 - idle)} of the time"
        if rates.core_wait is not None:
            if rates.core_wait >= IDLE:
                return f"{_core_wait(rates, rates.core_wait)}; {ran}"
            return f"{ran} and waited for a core {units.percent(rates.core_wait)}"
        if rates.cores_busy is not None and idle >= IDLE > 1 - rates.cores_busy:
            held = f"other programs may have held the cores: all were busy {all_cores} of the time"
            return f"{held}, {ran}"
        return ran
    if rates.own_cores is not None:
        most = "at most " if rates.own_at_most else ""
        used = units.percent(rates.own_cores)
        text = f"the program's processes used {most}{used} of the cores' time"
        return f"{text}, all programs together {all_cores}" if all_cores else text
    return f"{units.percent(idle)} of the cores' time was idle"


def _core_wait(rates: Rates, share: float) -> str:
    who, what = (
        ("other programs held its cores: ", "") if rates.others_held else ("", "for a core ")
    )
    return f"{who}its threads were ready and waited {what}{_of_time(share)}"
