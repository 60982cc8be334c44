"""Whether a model fits into memory: the least that it takes, in closed form, before it is made.

Activations and the workspaces of kernels are left out: what is refused cannot run, and what is not
may still run out of memory.
"""

from __future__ import annotations

import torch

from .failures import EnvironmentFailure
from .names import short
from .processor import free_memory
from .task import Definition, Extent, Settings
from .ways import HALF

FLOAT = 4
"""Bytes of a number of weights as they are made, of gradients and of an optimizer's state."""


def check(definition: Definition, settings: Settings, device: torch.device) -> None:
    """Refuse a model that needs more memory than there is, before it is made.

    Raises:
        EnvironmentFailure: it needs more, with the numbers and the largest size that fits.
    """
    extent = definition.extent
    if extent is None or settings.size not in definition.defaults.sizes:
        return
    gpu = torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else None
    there = free_memory(), gpu
    if (told := lacking(extent(settings.size), settings, *there)) is not None:
        fit = [s for s in definition.defaults.sizes if lacking(extent(s), settings, *there) is None]
        hint = "run it where there is more memory"
        if fit:
            hint = f"choose --size {max(fit, key=lambda s: extent(s).parameters)}, or {hint}"
        workload = f"{short(settings.workload)} of the size {settings.size}"
        raise EnvironmentFailure(f"{workload} needs at least {told}", hint)


def lacking(extent: Extent, settings: Settings, host: int, gpu: int | None) -> str | None:
    """What a model needs beyond the bytes that are available: on the host for all ranks together,
    on a GPU (None: no run on one) for each; None if it may fit."""
    made = {"parameters, which are made there in float32": extent.parameters * FLOAT}
    needs = least(extent, settings)
    device = ("the CPU", needs, host, settings.nproc) if gpu is None else ("the GPU", needs, gpu, 1)
    for place, parts, available, ranks in (device, ("the CPU", made, host, settings.nproc)):
        if (needed := ranks * sum(parts.values())) > available:
            listed = ", ".join(f"{_text(ranks * size)} {what}" for what, size in parts.items())
            of = f" of {ranks} ranks" if ranks > 1 else ""
            return f"{_text(needed)}{of} ({listed}); {place} has {_text(available)} available"
    return None


def least(extent: Extent, settings: Settings) -> dict[str, int]:
    """Bytes on a rank's device, by what they are for: in training at an update of the weights, in
    inference while the cache of a batch is full."""
    if settings.mode == "train":
        weights = extent.parameters * FLOAT
        return {"parameters": weights, "gradients": weights, "AdamW's state": 2 * weights}
    size = 2 if settings.dtype in HALF else FLOAT
    cache = extent.cache * settings.batch_size * size
    return {"parameters": extent.parameters * size, "cache of keys and values": cache}


def _text(size: int) -> str:
    return f"{size / 1e9:,.1f} GB"
