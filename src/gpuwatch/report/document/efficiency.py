"""How well a run used its hardware, in a few lines of text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gpuwatch.analysis.hardware.bound import OVER, UNKNOWN
from gpuwatch.analysis.hardware.ceilings import MEASURED, Ceiling
from gpuwatch.analysis.hardware.efficiency import Efficiency, Share
from gpuwatch.analysis.hardware.mfu import (
    EXECUTED_TWICE,
    HFU,
    MFU,
    MFU_AT_MAXIMUM_CLOCK,
    MODEL_FLOP,
)
from gpuwatch.analysis.measured_value import MeasuredValue
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.core import units
from gpuwatch.core.aggregate import grouped
from gpuwatch.core.metrics import Method
from gpuwatch.core.text import to_paste
from gpuwatch.session.study.short_name import short_name

_ALIKE = 0.01
"""Relative difference below which two peaks are told as one."""


def efficiency_rows(session: Summary) -> list[tuple[str, str]]:
    """Name and text of each line, unescaped; empty for a machine session or an import."""
    if session.workload.get("kind") in ("machine", "import"):
        return []
    of = session.efficiency
    sheet, at_maximum = (peak.ceiling for peak in of.mfu_peaks)
    counted, most = of.flop_rate.value, of.most_executed.value
    # MFU is the share of the peaks.
    beside = [e for e in of.flop_shares if of.mfu.value is None or e.ceiling.kind == MEASURED]
    rows = [
        ("FLOP/s", _rate(of.flop_rate, beside)),
        *([("executed FLOP/s", _most(of))] if counted is None and most is not None else []),
        (MFU, _mfu(of.mfu, sheet, MODEL_FLOP)),
        (MFU_AT_MAXIMUM_CLOCK, _mfu(of.mfu_at_maximum_clock, at_maximum, MODEL_FLOP)),
        *([(HFU, _mfu(of.hfu, sheet, EXECUTED_TWICE))] if of.hfu.value is not None else []),
        ("memory bandwidth", _rate(of.bandwidth, of.bandwidth_shares)),
        ("memory traffic", _traffic(of)),
        ("algorithmic bytes", _rate(of.bytes_rate, of.bytes_shares, cached=True)),
        ("intensity", _figure(of.intensity)),
        ("verdict", hint_of(session, "; ".join((of.roofline.verdict.text, *of.roofline.hints)))),
        ("energy", _energy(of)),
    ]
    return _merged(rows) + [("warning", each) for each in of.warnings]


def hint_of(session: Summary, text: str) -> str:
    """``text`` with the session in its commands."""
    name = short_name(Path(session.path))
    return text.replace("gpuwatch kernels SESSION", to_paste("kernels", name))


def headline(session: Summary) -> str:
    """What bounds a run; empty where that is not known."""
    verdict = session.efficiency.roofline.verdict
    known = verdict.bound != UNKNOWN and efficiency_rows(session)
    return sentence(verdict.text) if known else ""


def sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].removesuffix('.')}." if text else ""


def heading(session: Summary) -> str:
    """The heading: devices and time span that the lines cover."""
    covers = ", ".join(session.efficiency.covers) or "devices that are not known"
    if session.steps.count is None:
        return f"efficiency of {covers} over the whole run"
    sampled = ", what was sampled over the whole run" if session.window.kind == "whole run" else ""
    return f"efficiency of {covers} over the timed steps{sampled}"


def _merged(rows: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Merge rows with the same text; several without a value, for one reason, under a short name
    that stays in its column."""
    names = grouped((text, name) for name, text in rows)
    return [
        ("unavailable", f"{', '.join(merged)}: {text.removeprefix('unavailable: ')}")
        if len(merged) > 1 and text.startswith("unavailable: ")
        else (", ".join(merged), text)
        for text, merged in names.items()
    ]


def _rate(figure: MeasuredValue, shares: Sequence[Share], *, cached: bool = False) -> str:
    if figure.value is None:
        return f"unavailable: {figure.reason}"
    text = f"{units.quantity(figure.value, figure.unit)} {figure.method.value}"
    if figure.method is Method.BOUND:
        text = f"at least {text} ({figure.reason})"
    # Two peaks of one thing that are the same to the percent: one is enough.
    shown = [e for at, e in enumerate(shares) if not at or not _alike(e, shares[at - 1])]
    if shown:
        least = "at least " if figure.method is Method.BOUND else ""
        text += f": {least}" + ", ".join(_share(each) for each in shown)
    if cached and any(e.value > OVER and e.ceiling.kind == MEASURED for e in shares):
        text += "; over the ceiling: caches served the rest"
    return text


def _alike(one: Share, other: Share) -> bool:
    return abs(one.ceiling.value / other.ceiling.value - 1) < _ALIKE


def _most(of: Efficiency) -> str:
    most = of.most_executed
    shares = ", ".join(f"at most {_share(each)}" for each in of.most_executed_shares)
    text = f"at most {units.quantity(most.value, most.unit)} {most.method.value}"
    return f"{text}{f': {shares}' if shares else ''} ({most.source})"


def _share(share: Share) -> str:
    doubt = f" (doubtful: {share.ceiling.doubt})" if share.ceiling.doubt else ""
    return f"{units.percent(share.value)} of the {_ceiling(share.ceiling)}{doubt}"


def _ceiling(ceiling: Ceiling) -> str:
    return f"{ceiling.text}, {units.quantity(ceiling.value, ceiling.unit)}"


def _mfu(mfu: MeasuredValue, peak: Ceiling | None, flop: str) -> str:
    if mfu.value is None or peak is None:
        return f"unavailable: {mfu.reason}"
    share = f"{units.percent(mfu.value)} of the dense {_ceiling(peak)}"
    return f"{share} ({mfu.method.value}: {flop})"


def _figure(figure: MeasuredValue) -> str:
    if figure.value is None:
        return f"unavailable: {figure.reason}"
    most = "at most " if figure.method is Method.BOUND else ""
    told = f"{most}{units.quantity(figure.value, figure.unit)} {figure.method.value}"
    return f"{told}, by {figure.source}"


def _energy(of: Efficiency) -> str:
    energy = of.energy
    if energy.gpu.value is not None:
        parts = [_per(energy.gpu_per_step, "a step"), _per(energy.gpu_per_sample, "a sample")]
        told = ", ".join(filter(None, parts)) or units.quantity(energy.gpu.value, "J")
        text = f"{told} {energy.gpu.method.value}, by {energy.gpu.source}"
    else:
        text = f"unavailable: {energy.gpu.reason}"
    cpu = [_per(energy.cpu_per_step, "a step"), _per(energy.cpu_per_sample, "a sample")]
    cpu_text = ", ".join(part for part in cpu if part)
    return f"{text}; CPU packages {cpu_text} {energy.cpu.method.value}" if cpu_text else text


def _per(figure: MeasuredValue, what: str) -> str:
    return "" if figure.value is None else f"{units.quantity(figure.value, 'J')} {what}"


def _traffic(of: Efficiency) -> str:
    total, sectors, per_step = of.traffic.total, of.traffic.sectors, of.traffic.per_step
    if total.value is None:
        return f"unavailable: {total.reason}"
    parts = [
        units.quantity(total.value, "By", is_traffic=True),
        f"{units.quantity(sectors.value, '{sector}')} of 32 bytes",
    ]
    if per_step.value is not None:
        parts.append(f"{units.quantity(per_step.value, 'By', is_traffic=True)} a step")
    if total.method is Method.BOUND:
        return f"at least {', '.join(parts)} {total.method.value} ({total.reason})"
    return f"{', '.join(parts)} {total.method.value}"
