"""Warnings about a session, as sentences: lost GPUs, errors, low memory, other programs on its
GPUs, held clocks, lost counters."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median

from gpuwatch.core.models import JSON, mapping, sequence
from gpuwatch.core.text import clean
from gpuwatch.core.units import NS, binary, milliseconds, pause, percent, quantity, si
from gpuwatch.session.rows import MPS_SERVER, DeviceRow, EventRow, GpuPresence, StepRow
from gpuwatch.tui.feed.snapshot import Alert, DeviceNow

ALERT_EVENTS = (
    *("throttle", "ecc", "xid", "gpu-lost", "gpu-back"),
    *("nvml-lost", "nvml-back", "gpm-lost", "gpm-back", "dcgm-lost", "dcgm-back"),
    *("processes-lost", "processes-back", "loss"),
)
"""Kinds of events that warnings are made from."""
_COUNTER_SOURCES = ("nvml", "gpm", "dcgm", "processes")
THROTTLES = {"hw.gpu.throttle.power": "power", "hw.gpu.throttle.thermal": "temperature"}
"""Metrics of clocks that are held down, and by what."""
MIN_SHARE = 0.01
"""Least share of a finished run for a warning about throttling or another process."""
_FULL_CLOCK = 0.99
"""Share of the highest clock from which on it is not held down, whatever reason is reported."""
_MIN_GRAPHICS_SHARE = 0.05
"""Least share of a GPU's time for a warning about a graphics process."""
_MIN_FREE_SHARE = 0.05
"""Share of a memory below which it is low."""
_MIN_FREE_GPU_BYTES = 512 * 1024**2
"""Bytes of GPU memory below which it is low."""
STALLED_STEPS = 10
"""A run is told to be stalled after so many median steps without a step."""
_LEAST_STALLED_NS = 10 * NS
"""Shortest time of a warning about it."""
_LEAST_GAPS = 8
"""Fewest steps, or pauses between lines, that tell what is usual."""
_LONGEST = 40
"""Characters of a name."""


Shared = Sequence[tuple[tuple[str, ...], str]]
"""Ids of GPUs with the same other processes on them, and a text about these."""


class LatestEvents:
    """The newest event of each kind on each device, and how many there were."""

    def __init__(self) -> None:
        self._events: dict[tuple[str, str | None], tuple[EventRow, int]] = {}

    def add(self, events: Sequence[EventRow]) -> None:
        """Keep the events that warnings are made from."""
        for row in events:
            if row.kind in ALERT_EVENTS:
                _, count = self._events.get((row.kind, row.device), (row, 0))
                self._events[row.kind, row.device] = row, count + 1

    def of(self, kind: str, device: str | None) -> tuple[EventRow | None, int]:
        """The newest one and their number; device ``None``: the machine."""
        return self._events.get((kind, device), (None, 0))

    def unrecovered(self, source: str, device: str | None) -> str:
        """The text of the event that ``source`` was lost; empty: it works."""
        lost, _ = self.of(f"{source}-lost", device)
        back, _ = self.of(f"{source}-back", device)
        if lost is None or (back is not None and back.n > lost.n):
            return ""
        return clean(lost.text)

    def lost_counters(self, device: str | None) -> list[tuple[str, str]]:
        """Sources of counters that do not work, with the text of that event."""
        texts = ((source, self.unrecovered(source, device)) for source in _COUNTER_SOURCES)
        return [(source, text) for source, text in texts if text]


def alerts_of(
    devices: Sequence[DeviceNow],
    events: LatestEvents,
    throttled: Mapping[str, str],
    findings: Sequence[Alert],
    *,
    live: bool,
    shared: Shared,
    full: Sequence[Alert],
) -> tuple[Alert, ...]:
    """All warnings, the most serious first.

    ``throttled``: by GPU id, how long the clocks of a finished run were held down. ``full``: the
    warnings of low memory. In a live run ``findings``, which come last, are left out while a GPU
    is lost: they are outdated.
    """
    lost: list[Alert] = []
    errors: list[Alert] = []
    throttling: list[Alert] = []
    lost_counters: list[Alert] = []
    gpus = [device for device in devices if device.row.kind == "gpu"]
    if not live:  # events of unused GPUs do not concern the finished run
        gpus = [gpu for gpu in gpus if gpu.row.used is not False]
    for gpu in gpus:
        id_ = gpu.row.id
        if loss := events.unrecovered("gpu", id_):
            told = loss.removeprefix("the GPU ")
            told = told if told != loss else f"is lost: {loss}"
            lost.append(_on_gpus("lost", (id_,), told, between=" "))
        fell, falls = events.of("gpu-lost", id_)
        back, _ = events.of("gpu-back", id_)
        if not (live or loss) and fell is not None and back is not None:
            often = "" if falls == 1 else f", the last of {falls} times"
            away = quantity((back.t - fell.t) / NS, "s")
            told = f"was lost for {away}{often}: its figures are of the rest"
            lost.append(_on_gpus("lost", (id_,), told, between=" "))
        for kind in ("xid", "ecc"):
            event, count = events.of(kind, id_)
            if event is not None:
                times = f" ({count} times)" if count > 1 else ""
                errors.append(_on_gpus(kind, (id_,), f"{clean(event.text)}{times}"))
        text = _throttling(gpu, events) if live else throttled.get(id_, "")
        if text and gpu.row.used:
            throttling.append(_on_gpus("clocks", (id_,), text))
        lost_counters += [_on_gpus(kind, (id_,), why) for kind, why in events.lost_counters(id_)]
    lost_counters += [Alert(kind, "", text) for kind, text in events.lost_counters(None)]
    event, _ = events.of("loss", None)
    past = [] if event is None else [Alert("loss", str(event.n), clean(event.text))]
    checks = [replace(alert, text=clean(alert.text)) for alert in findings]
    others = [_on_gpus("shared", ids, text) for ids, text in shared]
    found = _alike((*errors, *full, *others, *throttling, *lost_counters))
    return (*lost, *found, *past, *(() if live and lost else checks))


def _alike(alerts: Sequence[Alert]) -> Iterable[Alert]:
    """One for all GPUs with the same text."""
    found: dict[tuple[str, str], Alert] = {}
    for each in alerts:
        of = each.kind, each.short or each.text
        gpus = (*found[of].gpus, *each.gpus) if of in found else ()
        found[of] = _on_gpus(each.kind, gpus, each.short) if gpus else each
    return found.values()


def _on_gpus(kind: str, ids: tuple[str, ...], text: str, between: str = ": ") -> Alert:
    """Named as ``GPU 3``, ``GPUs 0, 2 and 5``, ``GPUs 0 to 7``."""
    numbers = [id_.removeprefix("gpu") for id_ in ids]
    names = f"GPU {numbers[0]}"
    if len(numbers) > 1:
        names = f"GPUs {', '.join(numbers[:-1])} and {numbers[-1]}"
    first = int(numbers[0]) if numbers[0].isdecimal() else 0
    if len(ids) > 2 and list(ids) == [f"gpu{first + at}" for at in range(len(ids))]:
        names = f"GPUs {numbers[0]} to {numbers[-1]}"
    return Alert(kind, " ".join(ids), f"{names}{between}{text}", ids, text)


def _throttling(device: DeviceNow, events: LatestEvents) -> str:
    causes = [word for metric, word in THROTTLES.items() if (device.value(metric) or 0) > 0]
    clock, maximum = device.value("hw.gpu.clock.sm"), device.attribute("clock.sm.max")
    if not causes:
        return ""
    if clock is not None and maximum is not None and clock >= _FULL_CLOCK * maximum:
        return ""  # whatever the driver's reason is, it costs nothing
    # The driver's reasons follow a colon; the event that ends throttling has none.
    latest, _ = events.of("throttle", device.row.id)
    reasons = clean(latest.text).partition(": ")[2] if latest is not None else ""
    text = f"clocks held down ({reasons or ', '.join(causes)})"
    if clock is None or maximum is None:
        return text
    return f"{text}, SM clock {si(clock, 'Hz')} of {si(maximum, 'Hz')}"


# A run that hangs.


def stalled(
    what: str,
    times: Sequence[int],
    t: int,
    pace: float | None = None,
    longest: int = 0,
    steps: int = 0,
) -> list[Alert]:
    """A warning that there was no ``what`` for long at ``t``; ``times`` (ns): of those before.
    It waits for twice the longest pause so far, too: an evaluation or a checkpoint is no trouble.

    ``pace``: usual seconds of one; ``None``: those between two. ``longest``: pause (ns), also
    before ``times``. ``steps``: between the first and the last of these.
    """
    gaps = [after - before for before, after in pairwise(times)]
    if max(len(gaps), steps) < _LEAST_GAPS or (silent := t - times[-1]) < _LEAST_STALLED_NS:
        return []
    usual, longest = median(gaps), max(longest, *gaps)
    least = max(STALLED_STEPS * max(usual, (pace or 0) * NS), 2 * longest)
    if silent < least:
        return []
    told = milliseconds(pace) if pace else f"each {milliseconds(usual / NS)}"
    return [Alert("stalled", "", f"no {what} for {pause(silent / NS)}, usually {told}")]


def paused(rows: Sequence[StepRow]) -> list[Alert]:
    """The longest pause between the step lines of a run that is over of which :func:`stalled` told;
    what evaluations took of it is known by then."""
    gaps = [b.t - a.t - min(b.evaluation * NS, b.t - a.t) for a, b in pairwise(rows)]
    least = max(_LEAST_STALLED_NS, STALLED_STEPS * median(gaps)) if gaps else 0.0
    longest, found = 0.0, list[Alert]()
    for (row, after), gap in zip(pairwise(rows), gaps, strict=True):
        if row.step - rows[0].step >= _LEAST_GAPS and gap >= max(least, 2 * longest):
            times = after.seconds or (0.0,)
            step = row.step + times.index(max(times))
            text = f"longest pause {pause(gap / NS)}, after step {step:,}"
            found = [Alert("pause", "", text)]
        longest = max(longest, gap)
    return found


# Low memory.


def low_memory(
    devices: Sequence[DeviceNow], gpus: Container[str] | None, limit: float | None
) -> list[Alert]:
    """A warning for each memory that is nearly full now, that of the host first.

    ``gpus``: ids of the run's GPUs; ``None``: all. ``limit``: of the container's memory, in bytes.
    """
    alerts = []
    for device in devices:
        id_, kind = device.row.id, device.row.kind
        used, total = device.memory_used, device.memory_total
        if kind == "workload":
            used, total = device.value("container.memory.usage"), limit
        if used is None or not total or (kind == "gpu" and gpus is not None and id_ not in gpus):
            continue
        free = max(0.0, total - used)
        if free >= max(_MIN_FREE_SHARE * total, _MIN_FREE_GPU_BYTES * (kind == "gpu")):
            continue
        if kind == "gpu":
            text = f"{binary(free)} of {binary(total)} memory is free"
            alerts.append(_on_gpus("memory", (id_,), text))
        elif kind == "cpu":
            text = f"host: {binary(free)} of {binary(total)} memory is available"
            alerts.insert(0, Alert("memory", id_, text))
        elif kind == "workload":
            share = percent(min(used, total) / total)
            text = f"the container uses {share} of its memory limit, {binary(total)}"
            alerts.append(Alert("memory", id_, text))
    return alerts


# Other processes on the run's GPUs.


def uses_no_gpu(devices: Sequence[DeviceRow]) -> bool:
    """Whether the run is known to use none of the recorded GPUs."""
    used = [device.used for device in devices if device.kind == "gpu"]
    return bool(used) and all(each is False for each in used)


_HIDES_ALL = ("", "-1", "NoDevFiles")
"""Values of ``CUDA_VISIBLE_DEVICES``."""
_OF_CPU = re.compile(r"(^|[=\s])(cpu(:\d+)?|--no[-_]?(cuda|gpu))($|\s)", re.IGNORECASE)
"""A word of a command that keeps it off the GPUs, such as ``--device=cpu``."""


def left_unused(
    meta: Mapping[str, JSON], devices: Sequence[DeviceRow], visible: object, *, live: bool
) -> str:
    """That a run uses none of the GPUs that it was given; empty: it uses some, that is unknown, or
    its command, or ``visible``, its ``CUDA_VISIBLE_DEVICES``, keeps it off them."""
    given = sequence(mapping(meta.get("environment")).get("gpus"))
    words = mapping(meta.get("launch")).get("command")
    asked = isinstance(words, list) and any(_OF_CPU.search(str(each)) for each in words)
    if not given or asked or visible in _HIDES_ALL or not uses_no_gpu(devices):
        return ""
    was = "was" if len(given) == 1 else "were"
    return f"the run {'uses' if live else 'used'} no GPU ({len(given)} {was} given)"


def shared_with(
    presences: Sequence[GpuPresence], gpus: frozenset[str], run_ns: int | None
) -> Shared:
    """The other processes on the run's GPUs.

    ``run_ns``: how long the run took, of which those that were there for a part are left out;
    ``None``: they are there now. GPUs under MPS are left out.
    """
    by_gpu: dict[str, list[GpuPresence]] = {}
    for each in presences:
        small = each.kind == "graphics" and (each.share or 0.0) < _MIN_GRAPHICS_SHARE
        short = run_ns is not None and each.ns < MIN_SHARE * run_ns
        if each.device in gpus and not small and not short:
            by_gpu.setdefault(each.device, []).append(each)
    groups: dict[frozenset[int], list[str]] = {}
    for gpu, on in by_gpu.items():
        on.sort(key=lambda each: -each.ns)
        if not any(MPS_SERVER in (each.name or "") for each in on):
            groups.setdefault(frozenset(each.pid for each in on), []).append(gpu)
    texts = []
    for group in groups.values():
        longest = [by_gpu[gpu][0] for gpu in group]
        most, time = len({binary(each.bytes or 0) for each in longest}) > 1, ""
        if run_ns is not None:
            shares = [min(1.0, each.ns / max(1, run_ns)) for each in longest]
            at_most = "at most " if len(set(map(percent, shares))) > 1 else ""
            most, time = True, f" for {at_most}{percent(max(shares))} of the time"
        first, *others = max((by_gpu[gpu] for gpu in group), key=lambda on: on[0].bytes or 0)
        size = None if first.bytes is None else ("at most " if most else "") + binary(first.bytes)
        details = [f"PID {first.pid}", first.user, first.place, size]
        name = clean(first.name)[:_LONGEST] if first.name else "a process"
        text = f"shared{time} with {name} "
        text += f"({', '.join(clean(each)[:_LONGEST] for each in details if each)})"
        ids = tuple(sorted(group, key=lambda id_: (len(id_), id_)))
        texts.append((ids, f"{text} and {len(others)} more" if others else text))
    return texts
