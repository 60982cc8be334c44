"""Snapshots as lines of text: for screen readers, logs and simple terminals.

There are words in place of symbols, every number has a unit, and unknown numbers are left out.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.core.metrics import Method
from gpuwatch.core.text import clean
from gpuwatch.core.units import (
    NS,
    binary_parts,
    clock_time,
    digits,
    loss,
    milliseconds,
    number,
    percent,
    quantity,
)
from gpuwatch.tui.feed.snapshot import Alert, DeviceNow, Gauge, Snapshot

_MEMORY = {"gpu": "hw.gpu.memory.usage", "cpu": "hw.memory.usage"}


def status_line(snapshot: Snapshot) -> str:
    """One snapshot: time, state, progress, the gauges, the devices of the run."""
    state = snapshot.status.state.value
    parts = [f"{clock_time(snapshot.t / NS)} {state}"]
    if snapshot.phase:
        parts.append(clean(snapshot.phase))
    if snapshot.silent_seconds is not None:
        parts.append(f"nothing recorded for {clock_time(snapshot.silent_seconds)}")
    parts += _work(snapshot)
    gauges = [text for gauge in snapshot.gauges[1:] if (text := _gauge(gauge))]
    gpus = [gpu for gpu in snapshot.gpus if gpu.row.used] or list(snapshot.gpus)
    others = [device for device in snapshot.devices if device.row.kind == "cpu"]
    figures = [*([", ".join(gauges)] if gauges else []), *devices_words([*gpus, *others])]
    if snapshot.means and figures:
        figures[0] = f"means of the {snapshot.means}: {figures[0]}"
    return "; ".join([", ".join(parts), *figures])


def title_line(snapshot: Snapshot) -> str:
    """Workload, environment, and number of the run in its study."""
    if snapshot.machine_only:
        return "this machine"
    where = f" in {clean(snapshot.environment)}" if snapshot.environment else ""
    place = snapshot.place
    run = "" if place is None else f", run {place.number} of {place.total}"
    return f"{clean(snapshot.name)}{where}{run}"


def warning_lines(alerts: Sequence[Alert], before: Sequence[Alert]) -> list[str]:
    """The warnings that are not in ``before``; kind and device identify a warning."""
    known = {(alert.kind, alert.device) for alert in before}
    new = [alert for alert in alerts if (alert.kind, alert.device) not in known]
    return [f"warning: {clean(alert.text)}" for alert in new]


def end_lines(snapshot: Snapshot) -> list[str]:
    """How a run ended, with its error and a hint."""
    duration = clock_time(snapshot.t / NS)
    lines = [f"the run is over after {duration}: {clean(snapshot.status.text)}"]
    if snapshot.trouble is not None:
        lines.append(f"error: {clean(snapshot.trouble.text)}")
        if snapshot.trouble.hint:
            lines.append(f"Fix: {clean(snapshot.trouble.hint)}")
    return lines


def devices_words(devices: list[DeviceNow]) -> list[str]:
    """The known values of each device."""
    return [text for device in devices if (text := _device(device))]


def _work(snapshot: Snapshot) -> list[str]:
    work = snapshot.work
    if work is None or not work.reports:
        return []
    parts = []
    if work.step is not None:
        total = "" if work.total is None else f" of {work.total:,}"
        parts.append(f"{'warm-up ' if work.warmup else ''}step {work.step:,}{total}")
    if work.eta_seconds is not None and snapshot.status.live:
        parts.append(f"{clock_time(work.eta_seconds)} left")
    if work.throughput.value is not None:
        parts.append(f"{digits(work.throughput.value)} samples per second")
    elif work.throughput.method is Method.COUNTED and work.throughput.reason:
        parts.append(work.throughput.reason)
    if work.step_seconds is not None:
        parts.append(f"median step {milliseconds(work.step_seconds)}")
    if work.loss is not None:
        parts.append(f"loss {loss(work.loss)}")
    return parts


def _gauge(gauge: Gauge) -> str:
    reading = gauge.reading
    if reading.value is None or reading.method is Method.UNAVAILABLE:
        return ""
    value = quantity(reading.value, gauge.unit)
    bound = "at most " if reading.method is Method.BOUND else ""
    name = "estimated" if gauge.key == "flops" else gauge.title.lower().removesuffix("/s")
    return f"{name} {bound}{value} ({reading.method.value})"


def _device(device: DeviceNow) -> str:
    kind = device.row.kind
    parts = []
    utilization = device.value(f"hw.{kind}.utilization")
    if utilization is not None:
        parts.append(percent(utilization))
    used, total = device.value(_MEMORY.get(kind, "")), device.memory_total
    if used is not None:
        of = "" if total is None else f" of {' '.join(binary_parts(total))}"
        parts.append(f"memory {' '.join(binary_parts(used))}{of}")
    watts = device.value(f"hw.{kind}.power")
    if watts is not None:
        limit = device.attribute("power.limit")
        parts.append(number(watts, "W") if limit is None else f"{watts:.0f} of {limit:.0f} W")
    degrees = device.value(f"hw.{kind}.temperature")
    if degrees is not None:
        parts.append(number(degrees, "°C"))
    name = f"GPU {device.number}" if kind == "gpu" else "CPU"
    return f"{name} {', '.join(parts)}" if parts else ""
