"""What a batch is made of: samples, tokens, and the sizes that make two steps alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

_MOST_TENSORS = 8
_DEEPEST = 4


class Batch(NamedTuple):
    """``samples``: the first dimension of the first tensor. ``tokens``: the size of ``input_ids``.
    ``sizes``: those of the tensors, without the first dimension."""

    samples: int | None
    tokens: int | None
    sizes: tuple[tuple[int, ...], ...]


def describe(batch: Any, tensor: type[Any]) -> Batch:
    """The batch that a loader gave; nothing of it is kept. ``tensor``: torch's class."""
    found: list[Any] = []
    _tensors(batch, tensor, found, 0)
    first, tokens = found[0].shape if found else (), None
    if not isinstance(batch, (list, tuple, tensor)) and isinstance(batch, Mapping):
        ids = batch.get("input_ids")
        if isinstance(ids, tensor):
            first, tokens = ids.shape, ids.numel()
    samples = first[0] if first else None
    return Batch(samples, tokens, tuple([each.shape[1:] for each in found]))


def _tensors(value: Any, tensor: type[Any], found: list[Any], depth: int) -> None:
    if isinstance(value, tensor):
        found.append(value)
        return
    if isinstance(value, (str, bytes)) or depth > _DEEPEST:
        return
    if isinstance(value, (list, tuple, Sequence)):  # a list is told quickly, a Sequence is not
        inside: Iterable[Any] = value[:_MOST_TENSORS]
    elif isinstance(value, Mapping):
        inside = value.values()
    else:
        return
    for each in inside:
        if len(found) >= _MOST_TENSORS:
            return
        _tensors(each, tensor, found, depth + 1)
