"""What should be known before the numbers are believed, in words."""

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

_THROTTLES = {"hw.gpu.throttle.power": "power", "hw.gpu.throttle.thermal": "temperature"}
_SOME = 0.01
"""Share of a run from which on held clocks are told when it is over."""
_LOSSES = ("nvml", "gpm", "dcgm")


@dataclass
class LatestEvent:
    """The newest event of a kind on a device, and how many there were."""

    event: EventRow
    count: int = 1


Happenings = Mapping[tuple[str, str | None], LatestEvent]

TOLD = (
    *("throttle", "ecc", "xid", "gpu-lost", "gpu-back"),
    *("nvml-lost", "nvml-back", "gpm-lost", "gpm-back", "dcgm-lost", "dcgm-back"),
)
"""Kinds of events that are remembered."""


def alerts_of(
    devices: Sequence[DeviceNow],
    happened: Happenings,
    throttled: Mapping[str, float],
    findings: Sequence[Alert],
    *,
    live: bool,
    shared: Mapping[str, str] = MappingProxyType({}),
    full: Sequence[Alert] = (),
) -> tuple[Alert, ...]:
    """Sentences, the gravest first: lost GPUs, errors, memory that runs out, GPUs that others use,
    held clocks, lost counters, cross-checks.

    ``throttled``: by GPU the share of the run in which its clocks were held down. ``shared``: by
    GPU who else is, or was, on it. ``full``: what is said of memory. While a GPU is lost
    cross-checks are of the past: they are left out of a run that goes on.
    """
    gone: list[Alert] = []
    errors: list[Alert] = []
    clocks: list[Alert] = []
    losses: list[Alert] = []
    gpus = [device for device in devices if device.row.kind == "gpu"]
    if not live:  # what befell others is not of this run
        gpus = [gpu for gpu in gpus if gpu.row.used is not False]
    with_them: dict[str, list[str]] = {}
    for gpu in gpus:
        if gpu.row.id in shared:
            with_them.setdefault(shared[gpu.row.id], []).append(number_of(gpu))
    others = [
        Alert("shared", " ".join(numbers), f"{_named(numbers)}: {text}")
        for text, numbers in with_them.items()
    ]
    for device in gpus:
        id_, name = device.row.id, f"GPU {number_of(device)}"
        lost = _still(happened, "gpu", device.row.id)
        if lost:
            gone.append(Alert("lost", id_, _gone(name, lost)))
        for kind in ("xid", "ecc"):
            found = happened.get((kind, device.row.id))
            if found is not None:
                times = f" ({found.count} times)" if found.count > 1 else ""
                errors.append(Alert(kind, id_, f"{name}: {clean(found.event.text)}{times}"))
        text = _clocks(device, happened, throttled.get(device.row.id, 0.0), live=live)
        if text and device.row.used:
            clocks.append(Alert("clocks", id_, f"{name}: {text}"))
        losses += [Alert(of, id_, f"{name}: {text}") for of, text in _lost(happened, id_)]
    losses += [Alert(of, "", text) for of, text in _lost(happened, None)]
    told = (replace(each, text=clean(each.text)) for each in findings)
    checks = () if live and gone else tuple(told)
    return (*gone, *errors, *full, *others, *clocks, *losses, *checks)


def _named(numbers: Sequence[str]) -> str:
    """``GPU 3``, ``GPUs 0, 2 and 5``, ``GPUs 0 to 7``."""
    if len(numbers) == 1:
        return f"GPU {numbers[0]}"
    if len(numbers) > 2 and _in_a_row(numbers):
        return f"GPUs {numbers[0]} to {numbers[-1]}"
    return f"GPUs {', '.join(numbers[:-1])} and {numbers[-1]}"


def _in_a_row(numbers: Sequence[str]) -> bool:
    if not all(number.isdecimal() for number in numbers):
        return False
    first = int(numbers[0])
    return [int(number) for number in numbers] == list(range(first, first + len(numbers)))


def told_of(text: str, number: str) -> str:
    """What a sentence of :func:`alerts_of` says of the GPU of that number; empty: it is of
    others."""
    found = re.match(r"GPUs? ([^\s,:]+(?:(?:, | and | to )[^\s,:]+)*):? ", text)
    if found is None:
        return ""
    names = re.split(r", | and ", found[1])
    first, _, last = names[0].partition(" to ")
    if last and number.isdecimal() and first.isdecimal():
        return text[found.end() :] if int(first) <= int(number) <= int(last) else ""
    return text[found.end() :] if number in names else ""


def _gone(name: str, text: str) -> str:
    """``GPU 3 is lost: it has fallen off the bus``, in the driver's meaning where it tells one."""
    about = text.removeprefix("the GPU ")
    return f"{name} {about}" if about != text else f"{name} is lost: {text}"


def _clocks(device: DeviceNow, happened: Happenings, share: float, *, live: bool) -> str:
    if not live:
        return f"clocks were held down {percent(share)} of the time" if share >= _SOME else ""
    by = [word for metric, word in _THROTTLES.items() if (device.value(metric) or 0) > 0]
    if not by:
        return ""
    told = happened.get(("throttle", device.row.id))
    text = clean(told.event.text) if told is not None else ""
    # The driver's own reasons say more than the two channels, as long as they are of now.
    text = text if "held down:" in text else f"clocks are held down by {' and '.join(by)}"
    clock, most = device.value("hw.gpu.clock.sm"), attribute(device, "clock.sm.max")
    if clock is None or most is None:
        return text
    return f"{text} (SM clock {si(clock, 'Hz')} of {si(most, 'Hz')})"


def _lost(happened: Happenings, device: str | None) -> list[tuple[str, str]]:
    """Counters that went away and are not back, with what was said of it."""
    return [(source, text) for source in _LOSSES if (text := _still(happened, source, device))]


def _still(happened: Happenings, source: str, device: str | None) -> str:
    """What was said when ``source`` went away, empty where it did not or is back."""
    lost = happened.get((f"{source}-lost", device))
    back = happened.get((f"{source}-back", device))
    away = lost is not None and (back is None or back.event.n < lost.event.n)
    return clean(lost.event.text) if lost is not None and away else ""
