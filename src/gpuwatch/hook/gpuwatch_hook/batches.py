"""What a batch is made of: samples, tokens, and the sizes that make two steps alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch

_MOST_TENSORS = 8
_DEEPEST = 4


class Batch(NamedTuple):
    """``samples``: the first dimension of the first tensor. ``tokens``: the size of ``input_ids``.
    ``sizes``: those of the tensors, without the first dimension."""

    samples: int | None
    tokens: int | None
    sizes: tuple[tuple[int, ...], ...]


def describe(batch: Any) -> Batch:
    """The batch that a loader gave; nothing of it is kept."""
    found: list[torch.Tensor] = []
    ids = batch.get("input_ids") if isinstance(batch, Mapping) else None
    _tensors(batch, found, 0)
    first = ids if isinstance(ids, torch.Tensor) else found[0] if found else None
    samples = None if first is None or first.dim() == 0 else int(first.shape[0])
    tokens = int(ids.numel()) if isinstance(ids, torch.Tensor) else None
    return Batch(samples, tokens, tuple(tuple(each.shape[1:]) for each in found))


def _tensors(value: Any, found: list[torch.Tensor], depth: int) -> None:
    if len(found) >= _MOST_TENSORS or depth > _DEEPEST:
        return
    if isinstance(value, torch.Tensor):
        found.append(value)
    elif isinstance(value, Mapping):
        for each in value.values():
            _tensors(each, found, depth + 1)
    elif isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        for each in value[:_MOST_TENSORS]:
            _tensors(each, found, depth + 1)
