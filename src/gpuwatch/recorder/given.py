"""Finds the caller's GPUs and limits on this machine, once for all environments."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from gpuwatch.core.errors import NotAvailable
from gpuwatch.core.models import Allocation, Limits
from gpuwatch.recorder.sources import Sources
from gpuwatch.telemetry.host import affinity, cgroup
from gpuwatch.telemetry.nvml.errors import Unavailable
from gpuwatch.telemetry.nvml.visible_devices import VARIABLE, cards, visible


def resolve(asked: Sequence[str] | None, variables: Mapping[str, str]) -> Allocation:
    """The allocation for runs, from ``--gpus`` (``None``: not given) and environment variables.

    Raises:
        NotAvailable: requested GPUs are missing or not the caller's, or that is unknown.
    """
    if asked is not None and not asked:
        return Allocation((), True, limits())
    there = cards() if VARIABLE in variables else None
    if there is None or isinstance(there, Unavailable):
        return Allocation(Sources.gpu_uuids(asked), asked is not None, limits())
    left = visible(variables, there)
    if asked is None:
        return Allocation(left, True, limits())
    chosen = Sources.gpu_uuids(asked)
    parts = [part.uuid for card in there if card.gpu.uuid in left for part in card.parts]
    if beyond := [uuid for uuid in chosen if uuid not in (*left, *parts)]:
        raise NotAvailable(
            f"--gpus asks for {', '.join(beyond)}, and {VARIABLE}={variables[VARIABLE]} leaves "
            f"this command {', '.join(left) or 'no GPU'}",
            f"choose from these, or first: unset {VARIABLE}",
        )
    return Allocation(chosen, True, limits())


def limits() -> Limits:
    """The caller's other limits, which this process inherits."""
    own = os.getpid()
    cpus, nodes, group = affinity.cpus(own), affinity.memory_nodes(own), cgroup.limits()
    return Limits(
        cpus=cpus if cpus != affinity.every_cpu() else None,
        memory_nodes=nodes if nodes != affinity.every_node() else None,
        cpu_time=group.cpus if isinstance(group.cpus, float) else None,
        memory_bytes=int(group.memory) if isinstance(group.memory, float) else None,
    )
