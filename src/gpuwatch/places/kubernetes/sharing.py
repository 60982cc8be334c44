"""Whether pods share the GPUs of a node, and whether these are parts of GPUs, by its labels.

NVIDIA's gpu-feature-discovery sets ``RESOURCE.sharing-strategy`` and ``RESOURCE.replicas`` (before
0.15 the latter alone) with the name of the resource before its device plugin renamed it, and for
MIG ``nvidia.com/mig.strategy``; GKE has labels of its own.
"""

from __future__ import annotations

from collections.abc import Mapping

from gpuwatch.core.models import JSON
from gpuwatch.core.text import clean

NOT_SHARED = "no"
_YES = "yes, how is unknown"
_RENAMED = ".shared"
_GPU = "nvidia.com/gpu"
_GKE_HOW, _GKE_MOST = (
    "cloud.google.com/gke-gpu-sharing-strategy",
    "cloud.google.com/gke-max-shared-clients-per-gpu",
)
_GKE_PART = "cloud.google.com/gke-gpu-partition-size"
_ALONE = ("0", "1")
"""Numbers of pods on a GPU that say that it is not shared."""


def shared(resource: str, labels: Mapping[str, JSON]) -> str | None:
    """How pods share a GPU of this resource: ``time-slicing, up to 4 pods on a GPU``, or
    :data:`NOT_SHARED`; ``None``: not told."""
    plain = resource.removesuffix(_RENAMED)
    how = labels.get(f"{plain}.sharing-strategy", labels.get(_GKE_HOW))
    most = labels.get(f"{plain}.replicas", labels.get(_GKE_MOST))
    if plain == resource and (how == "none" or most in _ALONE):
        return NOT_SHARED
    if how in (None, "none") and most is None:
        return None if plain == resource else _YES
    words = "shared" if how in (None, "none") else clean(how, 40)
    return words if most in (None, *_ALONE) else f"{words}, up to {clean(most, 10)} pods on a GPU"


def is_part(resource: str, labels: Mapping[str, JSON]) -> bool:
    """Whether each of this resource is known to be a MIG device, a part of a GPU."""
    if "/mig-" in resource or _GKE_PART in labels:
        return True
    product = str(labels.get(f"{_GPU}.product"))
    single = labels.get("nvidia.com/mig.strategy") == "single"
    return single and resource.startswith(_GPU) and "-MIG-" in product
