"""Noisy neighbours: other processes on the run's GPUs, as texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpuwatch.analysis.hardware.ceilings import devices_of_run, gpus_unknown
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON
from gpuwatch.core.text import clean
from gpuwatch.core.units import binary, percent
from gpuwatch.session.rows import MPS_SERVER, DeviceRow, GpuPresence
from gpuwatch.tui.feed.processes import ProcessNow

_MIN_GRAPHICS_SHARE = 0.05
"""Least share of a GPU's time for a warning about a graphics process."""
_MIN_SHARE = 0.01
"""Least share of a finished run for a warning about another process."""
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
    """Ids of the GPUs that the run is known to use."""
    of_run = devices_of_run(meta, devices)
    return frozenset(device.id for device in of_run if device.kind == "gpu")


def uses_no_gpu(meta: Mapping[str, JSON], devices: Sequence[DeviceRow]) -> bool:
    """Whether the run is known to use none of the recorded GPUs."""
    watched = any(device.kind == "gpu" for device in devices)
    return watched and not gpus_unknown(devices) and not gpus_of_run(meta, devices)


def shared_now(processes: Sequence[ProcessNow], gpus: frozenset[str]) -> dict[str, str]:
    """By GPU id, the other processes on it; one text for GPUs with the same processes."""
    by_gpu: dict[str, list[_Neighbour]] = {}
    for process in processes:
        for use in process.gpus:
            small = use.graphics and (use.share or 0.0) < _MIN_GRAPHICS_SHARE
            if process.owned is False and process.running and use.device in gpus and not small:
                by_gpu.setdefault(use.device, []).append(
                    _Neighbour(process.name, process.pid, process.user, process.place, use.bytes)
                )
    texts = {}
    for group in _groups(by_gpu):
        lists = [by_gpu[gpu] for gpu in group]
        sizes = {binary(neighbours[0].bytes or 0) for neighbours in lists}
        text = f"shared with {_description(max(lists, key=_memory), most=len(sizes) > 1)}"
        texts.update(dict.fromkeys(group, text))
    return texts


def shared_during(
    presences: Sequence[GpuPresence], gpus: frozenset[str], run_ns: int
) -> dict[str, str]:
    """By GPU id, the other processes on it, and their share of ``run_ns``, the duration of the
    run; one text for GPUs with the same processes."""
    with_shares: dict[str, list[tuple[float, _Neighbour]]] = {}
    for presence in presences:
        share = min(1.0, presence.ns / max(1, run_ns))
        small = presence.kind == "graphics" and (presence.share or 0.0) < _MIN_GRAPHICS_SHARE
        if presence.device in gpus and share >= _MIN_SHARE and not small:
            neighbour = _Neighbour(
                presence.name, presence.pid, presence.user, presence.place, presence.bytes
            )
            with_shares.setdefault(presence.device, []).append((share, neighbour))
    by_gpu, shares = {}, {}
    for gpu, pairs in with_shares.items():
        pairs.sort(key=lambda pair: -pair[0])
        by_gpu[gpu], shares[gpu] = [neighbour for _, neighbour in pairs], pairs[0][0]
    texts = {}
    for group in _groups(by_gpu):
        times = {percent(shares[gpu]) for gpu in group}
        longest = percent(max(shares[gpu] for gpu in group))
        time = longest if len(times) == 1 else f"at most {longest}"
        largest = max((by_gpu[gpu] for gpu in group), key=_memory)
        text = f"shared for {time} of the time with {_description(largest, most=True)}"
        texts.update(dict.fromkeys(group, text))
    return texts


def _groups(by_gpu: Mapping[str, list[_Neighbour]]) -> list[list[str]]:
    """Ids of GPUs with the same processes; GPUs under MPS are left out."""
    groups: dict[frozenset[int], list[str]] = {}
    for gpu, neighbours in by_gpu.items():
        if not _uses_mps(neighbours):
            pids = frozenset(neighbour.pid for neighbour in neighbours)
            groups.setdefault(pids, []).append(gpu)
    return list(groups.values())


def _memory(neighbours: Sequence[_Neighbour]) -> int:
    return neighbours[0].bytes or 0


def _uses_mps(neighbours: Sequence[_Neighbour]) -> bool:
    return any(MPS_SERVER in (neighbour.name or "") for neighbour in neighbours)


def _description(neighbours: Sequence[_Neighbour], *, most: bool = False) -> str:
    """The first one and the number of others; ``most``: its memory is a maximum."""
    first = neighbours[0]
    size = None if first.bytes is None else ("at most " if most else "") + binary(first.bytes)
    details = [f"PID {first.pid}", first.user, first.place, size]
    name = clean(first.name)[:_LONGEST] if first.name else "a process"
    text = f"{name} ({', '.join(clean(detail)[:_LONGEST] for detail in details if detail)})"
    return f"{text} and {len(neighbours) - 1} more" if len(neighbours) > 1 else text
