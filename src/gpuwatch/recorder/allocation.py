"""Finds the caller's GPUs and limits on this machine, once for all environments."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from gpuwatch.core.errors import NotAvailable
from gpuwatch.core.models import GPUS_OFF, Allocation, Limits
from gpuwatch.recorder.sources import Sources
from gpuwatch.telemetry.host import affinity, cgroup
from gpuwatch.telemetry.host.job import POD
from gpuwatch.telemetry.nvml.errors import Unavailable
from gpuwatch.telemetry.nvml.start import ANSWER_S
from gpuwatch.telemetry.nvml.visible_devices import VARIABLE, cards, shortfall, visible

PATIENCE_S = 2.0
"""How long to wait for the UUIDs of GPUs that nobody chose, where runs start without them, too."""


def resolve(
    requested: Sequence[str] | None, variables: Mapping[str, str], *, patient: bool = True
) -> Allocation:
    """The allocation for runs, from ``--gpus`` (``None``: not given) and environment variables.

    Unless ``patient``, a driver that is slow to answer leaves all as it is: no GPU is chosen.

    Raises:
        NotAvailable: requested GPUs are missing or not the caller's, or that is unknown.
    """
    if requested is not None and not requested:
        return Allocation((), True, limits())
    if requested == GPUS_OFF:
        return Allocation(limits=limits())
    patience_s = ANSWER_S if patient or requested is not None else PATIENCE_S
    gpus = cards(patience_s) if VARIABLE in variables else None
    if isinstance(gpus, Unavailable) and requested is None:
        return Allocation(limits=limits())
    if gpus is None or isinstance(gpus, Unavailable):
        uuids = Sources.gpu_uuids(requested, patience_s)
        return Allocation(uuids, requested is not None, limits())
    visible_gpus = visible(variables, gpus)
    if requested is None:
        notice = shortfall(variables[VARIABLE], visible_gpus)
        return Allocation(visible_gpus, True, limits(), notice)
    chosen = Sources.gpu_uuids(requested)
    parts = [part.uuid for card in gpus if card.gpu.uuid in visible_gpus for part in card.parts]
    if hidden := [uuid for uuid in chosen if uuid not in (*visible_gpus, *parts)]:
        raise NotAvailable(
            f"--gpus asks for {', '.join(hidden)}, and {VARIABLE}={variables[VARIABLE]} leaves "
            f"this command {', '.join(visible_gpus) or 'no GPU'}",
            f"choose from these, or first: unset {VARIABLE}",
        )
    return Allocation(chosen, True, limits())


def joined_gpus(variables: Mapping[str, str]) -> tuple[str, ...] | None:
    """The GPUs of the Slurm job in which this process runs, by NVML's index or UUID; ``None``:
    Slurm names none, or no GPU can be seen. Slurm counts GPUs as NVML does, by their address."""
    named = tuple(filter(None, map(str.strip, variables.get(VARIABLE, "").split(","))))
    return named if named and Sources.gpu_uuids(None) else None


def pod_gpus(variables: Mapping[str, str]) -> tuple[str, ...] | None:
    """The GPUs of the pod in which this process runs, by UUID: of one that is split by MIG the
    parts, which are all that a pod can use of it. ``None``: no pod, none is split, or its image
    chooses by itself."""
    gpus = cards() if POD in variables and VARIABLE not in variables else ()
    if isinstance(gpus, Unavailable) or not any(card.parts for card in gpus):
        return None
    devices = [device for card in gpus for device in card.parts or (card.gpu,)]
    return tuple(device.uuid for device in devices if device.uuid is not None)


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
