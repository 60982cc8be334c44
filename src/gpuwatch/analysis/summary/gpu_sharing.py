"""Who shares a run's GPU: other pods of its node, the users of other parts of it (MIG)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpuwatch.core.models import JSON, mapping
from gpuwatch.core.text import clean

NOT_SHARED = "no"
"""What a session says where pods do not share a GPU."""
_FACT = "job.gpu.shared"
_SHOWN = 12
"""Characters of a GPU's UUID that are shown."""

Facts = Mapping[str, Mapping[str, JSON]]


def by_pods(facts: Facts, gpus: Sequence[str]) -> str | None:
    """How pods share a GPU of the node, or :data:`NOT_SHARED`; ``None``: not told, or the run used
    no GPU. ``gpus``: ids of the run's."""
    told = mapping(facts.get("host")).get(_FACT)
    return clean(told, 200) if told is not None and gpus else None


def parts(facts: Facts, gpus: Sequence[str]) -> dict[str, str]:
    """By id, the UUIDs of the GPUs of which the run's are parts."""
    host = mapping(facts.get("host"))
    return {gpu: str(parent) for gpu in gpus if (parent := host.get(f"{gpu}.mig.parent"))}


def told_of_pods(facts: Facts, gpus: Sequence[str]) -> list[str]:
    """A sentence for the figures of a run whose GPU pods share."""
    how = by_pods(facts, gpus)
    if how in (None, NOT_SHARED):
        return []
    return [
        f"pods share the run's GPU ({how}): its time is other pods' too, and its metrics cover all "
        "of them"
    ]


def told_of_parts(facts: Facts, gpus: Sequence[str]) -> list[str]:
    """A sentence for each GPU of the run that is a part of one."""
    return [
        f"{gpu} is a MIG device, a part of {clean(parent)[:_SHOWN]}: what NVML tells of the whole "
        "GPU alone, such as its power, is not the run's, and left out"
        for gpu, parent in parts(facts, gpus).items()
    ]
