"""CPU time of the workload's processes, and the resolution of the kernel's accounting."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from gpuwatch.core.models import JSON, mapping, number
from gpuwatch.session.rows import DeviceRow

TICK_SECONDS = 0.01
"""/proc/PID/stat counts user and system time in ticks of USER_HZ, 100 a second (time(7))."""
MOST_SECONDS = 3 * TICK_SECONDS
"""Upper bound of the CPU time behind an increase of less than a tick: a tick of user and one of
system time may both have been nearly full."""
LEAST_SPLIT_SECONDS = 10 * TICK_SECONDS
"""CPU time of a process from which on ticks tell how much of it was user and how much system."""


def cpu_shares(
    cores: float | None,
    waiting: float | None,
    at_most: bool,
    facts: Mapping[str, Mapping[str, JSON]],
    ranks: int,
    devices: Sequence[DeviceRow],
    all_programs: float | None,
    on_cpu: bool,
) -> dict[str, Any]:
    """The CPU fields of ``Rates``: busy ``cores`` as shares of the threads and of all cores.

    Args:
        cores: CPU seconds per second of the workload's processes; ``None`` is unknown, as below.
        waiting: threads of the workload that were ready and had no core, their mean number.
        at_most: ``cores`` is an upper bound.
        ranks: number of ranks on this machine; 0: it told of none.
        all_programs: share of all cores' time in use, by any program, 0 to 1.
        on_cpu: the workload said that it computes there; else it may wait for a GPU unknown here.
    """
    threads, logical, usable = (
        threads_of(facts, ranks),
        _logical_cores(devices),
        _usable_cores(facts),
    )
    own = None if cores is None or not logical else min(1.0, cores / logical)
    others = None if own is None or all_programs is None else max(0.0, all_programs - own)
    held = waits = None
    others_held = False
    if cores is not None and logical and others is not None:
        room = min(usable or logical, logical)
        # Others keep it from running only while they have all cores that it may use, and which
        # cores they had is not known; below one core its quota does, too.
        held = min(1 - min(1.0, cores / room), others * logical / room)
        if waiting is not None:
            held = min(held, waiting)
            # Not where its own threads are more than its cores: they wait for each other, too.
            fits = threads is not None and threads <= room
            others_held = fits and others * logical >= waiting / 2
        waits = max(0.0, 1 - cores / min(1.0, room) - held)
    return {
        "busy": None if cores is None or not threads else min(1.0, cores / threads),
        "own_cores": own,
        "own_at_most": at_most,
        "usable": usable if usable and logical and usable < logical else None,
        "held": held,
        "waits": waits if on_cpu else None,
        "core_wait": core_wait(waiting, cores, threads),
        "others_held": others_held,
        "cores_busy": all_programs,
    }


def core_wait(waiting: float | None, cores: float | None, threads: int | None) -> float | None:
    """Share of the time in which a thread was ready and had no core; arguments as above.

    ``None`` also where several threads were ready at once and the program did not tell how many it
    has: of each it is less.
    """
    if waiting is None or (threads is None and waiting + (cores or 0.0) > 1):
        return None
    return min(1.0, waiting / (threads or 1))


def _logical_cores(devices: Sequence[DeviceRow]) -> int | None:
    """Number of logical cores of the machine; ``None`` where unknown."""
    of_cpu = (
        number(device.attributes.get("core.logical.count"))
        for device in devices
        if device.kind == "cpu"
    )
    known = next(of_cpu, None)
    return int(known) if known is not None and 1 <= known < 1e6 else None


def _usable_cores(facts: Mapping[str, Mapping[str, JSON]]) -> float | None:
    """Cores that the workload may use, by its affinity, control groups and quota."""
    process = mapping(facts.get("process"))
    quota = number(process.get("process.cgroup.cpu.limit"))
    known = (cpus_in(str(process.get("process.cpu.affinity"))), quota)
    return min((cores for cores in known if cores and cores > 0), default=None)


def cpus_in(text: str) -> int | None:
    """Number of CPUs in the kernel's list format (``0-3,8``); ``None`` for anything else."""
    if not re.fullmatch(r"\d{1,6}(-\d{1,6})?(,\d{1,6}(-\d{1,6})?)*", text):
        return None
    ends = [[int(end) for end in part.split("-")] for part in text.split(",")]
    return sum(max(0, each[-1] - each[0] + 1) for each in ends)


def threads_of(facts: Mapping[str, Mapping[str, JSON]], ranks: int) -> int | None:
    """Threads of the workload on the CPU, of all its ranks; ``None`` where it did not tell them."""
    threads = str(mapping(facts.get("workload")).get("threads") or "")
    return int(threads) * max(1, ranks) if threads.isdecimal() and 0 < len(threads) < 6 else None
