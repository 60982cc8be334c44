"""Warnings about a session's numbers, as sentences."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.text import clean
from gpuwatch.core.units import percent, si
from gpuwatch.session.rows import EventRow
from gpuwatch.tui.feed.hardware.device_facts import attribute, number_of
from gpuwatch.tui.feed.snapshot import Alert, DeviceNow

_THROTTLE_CAUSES = {"hw.gpu.throttle.power": "power", "hw.gpu.throttle.thermal": "temperature"}
_MIN_SHARE = 0.01
"""Least share of a finished run for a throttling warning."""
_COUNTER_SOURCES = ("nvml", "gpm", "dcgm", "processes")


@dataclass
class LatestEvent:
    """The newest event of a kind on a device, and the number of such events."""

    event: EventRow
    count: int = 1


LatestEvents = Mapping[tuple[str, str | None], LatestEvent]
"""By kind and device id; device ``None``: the machine."""

ALERT_EVENTS = (
    *("throttle", "ecc", "xid", "gpu-lost", "gpu-back"),
    *("nvml-lost", "nvml-back", "gpm-lost", "gpm-back", "dcgm-lost", "dcgm-back"),
    *("processes-lost", "processes-back"),
)
"""Kinds of events that warnings are made from."""


def alerts_of(
    devices: Sequence[DeviceNow],
    events: LatestEvents,
    throttled: Mapping[str, float],
    findings: Sequence[Alert],
    *,
    live: bool,
    shared: Mapping[str, str] = MappingProxyType({}),
    full: Sequence[Alert] = (),
) -> tuple[Alert, ...]:
    """All warnings, the most serious first: lost GPUs, errors, low memory, shared GPUs,
    throttling, lost counters, ``findings``.

    ``throttled``: by GPU id, the share of the run with throttled clocks. ``shared``: by GPU id, a
    text about other processes on it. ``full``: the warnings of low memory. In a live run
    ``findings`` are left out while a GPU is lost: they are outdated.
    """
    lost_gpus: list[Alert] = []
    errors: list[Alert] = []
    throttling: list[Alert] = []
    lost_counters: list[Alert] = []
    gpus = [device for device in devices if device.row.kind == "gpu"]
    if not live:  # events of unused GPUs do not concern the finished run
        gpus = [gpu for gpu in gpus if gpu.row.used is not False]
    gpus_by_text: dict[str, list[str]] = {}
    for gpu in gpus:
        if gpu.row.id in shared:
            gpus_by_text.setdefault(shared[gpu.row.id], []).append(number_of(gpu))
    others = [
        Alert("shared", " ".join(numbers), f"{_gpu_names(numbers)}: {text}")
        for text, numbers in gpus_by_text.items()
    ]
    for device in gpus:
        id_, name = device.row.id, f"GPU {number_of(device)}"
        lost = _unrecovered(events, "gpu", device.row.id)
        if lost:
            lost_gpus.append(Alert("lost", id_, _lost_gpu_text(name, lost)))
        for kind in ("xid", "ecc"):
            latest = events.get((kind, device.row.id))
            if latest is not None:
                times = f" ({latest.count} times)" if latest.count > 1 else ""
                errors.append(Alert(kind, id_, f"{name}: {clean(latest.event.text)}{times}"))
        text = _throttling(device, events, throttled.get(device.row.id, 0.0), live=live)
        if text and device.row.used:
            throttling.append(Alert("clocks", id_, f"{name}: {text}"))
        lost_counters += [
            Alert(source, id_, f"{name}: {text}") for source, text in _lost_counters(events, id_)
        ]
    lost_counters += [Alert(source, "", text) for source, text in _lost_counters(events, None)]
    cleaned = tuple(replace(alert, text=clean(alert.text)) for alert in findings)
    checks = () if live and lost_gpus else cleaned
    return (*lost_gpus, *errors, *full, *others, *throttling, *lost_counters, *checks)


def _gpu_names(numbers: Sequence[str]) -> str:
    """``GPU 3``, ``GPUs 0, 2 and 5``, ``GPUs 0 to 7``."""
    if len(numbers) == 1:
        return f"GPU {numbers[0]}"
    if len(numbers) > 2 and _consecutive(numbers):
        return f"GPUs {numbers[0]} to {numbers[-1]}"
    return f"GPUs {', '.join(numbers[:-1])} and {numbers[-1]}"


def _consecutive(numbers: Sequence[str]) -> bool:
    if not all(number.isdecimal() for number in numbers):
        return False
    first = int(numbers[0])
    return [int(number) for number in numbers] == list(range(first, first + len(numbers)))


def gpu_text(text: str, number: str) -> str:
    """A warning of :func:`alerts_of` without the names of its GPUs; empty: ``number`` is not one
    of them."""
    match = re.match(r"GPUs? ([^\s,:]+(?:(?:, | and | to )[^\s,:]+)*):? ", text)
    if match is None:
        return ""
    names = re.split(r", | and ", match[1])
    first, _, last = names[0].partition(" to ")
    if last and number.isdecimal() and first.isdecimal():
        return text[match.end() :] if int(first) <= int(number) <= int(last) else ""
    return text[match.end() :] if number in names else ""


def _lost_gpu_text(name: str, text: str) -> str:
    """``GPU 3 is lost: it has fallen off the bus``; ``text``: of the event."""
    predicate = text.removeprefix("the GPU ")
    return f"{name} {predicate}" if predicate != text else f"{name} is lost: {text}"


def _throttling(device: DeviceNow, events: LatestEvents, share: float, *, live: bool) -> str:
    if not live:
        return f"throttled {percent(share)} of the time" if share >= _MIN_SHARE else ""
    causes = [word for metric, word in _THROTTLE_CAUSES.items() if (device.value(metric) or 0) > 0]
    if not causes:
        return ""
    # The driver's reasons follow a colon; the event that ends throttling has none.
    latest = events.get(("throttle", device.row.id))
    reasons = clean(latest.event.text).partition(": ")[2] if latest is not None else ""
    text = f"throttled ({reasons or ', '.join(causes)})"
    clock, maximum = device.value("hw.gpu.clock.sm"), attribute(device, "clock.sm.max")
    if clock is None or maximum is None:
        return text
    return f"{text}, SM clock {si(clock, 'Hz')} of {si(maximum, 'Hz')}"


def _lost_counters(events: LatestEvents, device: str | None) -> list[tuple[str, str]]:
    """Sources of counters that stopped and have not recovered, with the text of that event."""
    texts = ((source, _unrecovered(events, source, device)) for source in _COUNTER_SOURCES)
    return [(source, text) for source, text in texts if text]


def _unrecovered(events: LatestEvents, source: str, device: str | None) -> str:
    """The text of the event that ``source`` was lost; empty: it works."""
    lost = events.get((f"{source}-lost", device))
    back = events.get((f"{source}-back", device))
    if lost is None or (back is not None and back.event.n > lost.event.n):
        return ""
    return clean(lost.event.text)
