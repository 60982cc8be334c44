"""Noisy neighbours: processes of others on the run's GPUs, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpuwatch.analysis.hardware.ceilings import devices_of_run, gpus_unknown
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON
from gpuwatch.core.text import clean
from gpuwatch.core.units import binary, percent
from gpuwatch.session.rows import MPS_SERVER, DeviceRow, GpuPresence
from gpuwatch.tui.feed.processes import ProcessNow

_BUSY = 0.05
"""Share of a GPU's time from which on a process that only draws is told."""
_SOME = 0.01
"""Share of a run from which on a neighbour is told when it is over."""
_LONGEST = 40
"""Characters of a name."""


@dataclass(frozen=True)
class _Neighbour:
    name: str | None
    pid: int
    user: str | None
    place: str | None
    bytes: int | None


def gpus_of_run(meta: Mapping[str, JSON], devices: Sequence[DeviceRow]) -> frozenset[str]:
    """The GPUs that the run is known to use."""
    of_run = devices_of_run(meta, devices)
    return frozenset(device.id for device in of_run if device.kind == "gpu")


def uses_none(meta: Mapping[str, JSON], devices: Sequence[DeviceRow]) -> bool:
    """Whether it is known that the run uses none of the GPUs that are watched."""
    watched = any(device.kind == "gpu" for device in devices)
    return watched and not gpus_unknown(devices) and not gpus_of_run(meta, devices)


def shared_now(processes: Sequence[ProcessNow], gpus: frozenset[str]) -> dict[str, str]:
    """By GPU who else is on it; of those with the same processes the same."""
    by_gpu: dict[str, list[_Neighbour]] = {}
    for process in processes:
        for on in process.gpus:
            small = on.graphics and (on.share or 0.0) < _BUSY
            if process.owned is False and process.running and on.device in gpus and not small:
                by_gpu.setdefault(on.device, []).append(
                    _Neighbour(process.name, process.pid, process.user, process.place, on.bytes)
                )
    told = {}
    for gpus_of, found in _together(by_gpu):
        sizes = [binary(each[0].bytes or 0) for each in found]
        text = f"shared with {_named(max(found, key=_size), most=len(set(sizes)) > 1)}"
        told.update(dict.fromkeys(gpus_of, text))
    return told


def shared_over(
    presences: Sequence[GpuPresence], gpus: frozenset[str], run_ns: int
) -> dict[str, str]:
    """By GPU who else was on it, and for what share of ``run_ns``, the run's own time; of those
    with the same processes the same."""
    by_gpu: dict[str, list[tuple[float, _Neighbour]]] = {}
    for one in presences:
        share = min(1.0, one.ns / max(1, run_ns))
        small = one.kind == "graphics" and (one.share or 0.0) < _BUSY
        if one.device in gpus and share >= _SOME and not small:
            neighbour = _Neighbour(one.name, one.pid, one.user, one.place, one.bytes)
            by_gpu.setdefault(one.device, []).append((share, neighbour))
    shares, neighbours = {}, {}
    for gpu, found in by_gpu.items():
        found.sort(key=lambda each: -each[0])
        shares[gpu] = found[0][0]
        neighbours[gpu] = [neighbour for _, neighbour in found]
    told = {}
    for gpus_of, each in _together(neighbours):
        times = {percent(shares[gpu]) for gpu in gpus_of}
        longest = percent(max(shares[gpu] for gpu in gpus_of))
        time = longest if len(times) == 1 else f"at most {longest}"
        text = f"shared for {time} of the time with {_named(max(each, key=_size), most=True)}"
        told.update(dict.fromkeys(gpus_of, text))
    return told


def _together(
    by_gpu: Mapping[str, list[_Neighbour]],
) -> list[tuple[list[str], list[list[_Neighbour]]]]:
    """GPUs with the same processes on them, and those of each: one sentence tells of all."""
    found: dict[frozenset[int], list[str]] = {}
    for gpu, neighbours in by_gpu.items():
        if not _served(neighbours):
            found.setdefault(frozenset(each.pid for each in neighbours), []).append(gpu)
    return [(gpus, [by_gpu[gpu] for gpu in gpus]) for gpus in found.values()]


def _size(neighbours: Sequence[_Neighbour]) -> int:
    return neighbours[0].bytes or 0


def _served(neighbours: Sequence[_Neighbour]) -> bool:
    return any(MPS_SERVER in (each.name or "") for each in neighbours)


def _named(neighbours: Sequence[_Neighbour], *, most: bool = False) -> str:
    """The first one, and how many more; ``most``: its memory is the most that it held."""
    first = neighbours[0]
    size = None if first.bytes is None else ("at most " if most else "") + binary(first.bytes)
    about = [f"PID {first.pid}", first.user, first.place, size]
    name = clean(first.name)[:_LONGEST] if first.name else "a process"
    text = f"{name} ({', '.join(clean(each)[:_LONGEST] for each in about if each)})"
    return f"{text} and {len(neighbours) - 1} more" if len(neighbours) > 1 else text
