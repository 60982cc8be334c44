"""Algorithmic bytes: the size of an operator's inputs and outputs, ignoring caches and fusion."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from .formulas.products import stored

OVERWRITES = frozenset(
    {"copy_", "fill_", "zero_", "bernoulli_", "exponential_", "normal_", "random_", "uniform_"}
)
"""In-place operators that do not read what they overwrite."""

TAKES = frozenset({"embedding", "gather", "index", "index_select", "take"})
"""Operators that read only what they return from their first tensor."""


def bytes_of(operator: str, func: Any, args: Any, kwargs: Any, out: Any) -> int:
    """Bytes of an operator's inputs and outputs; a tensor changed in place counts as both.

    Data that is overwritten unread (``copy_``, ``fill_``, ``out=``) is not an input, and a look-up
    table counts only with the rows taken. ``operator`` is the name without its namespace.
    """
    schema = getattr(func, "_schema", None)
    if schema is None:  # a higher-order operator
        return _bytes((args, kwargs)) + _bytes(out)
    results = (out,) if len(schema.returns) == 1 else out or ()
    total = sum(
        _bytes(value)
        for result, value in zip(schema.returns, results, strict=False)
        if result.alias_info is None
    )
    for position, (argument, value) in enumerate(_arguments(schema, args, kwargs)):
        size = _bytes(value)
        if argument.alias_info is not None and argument.alias_info.is_write:
            overwritten = argument.is_out or operator in OVERWRITES
            total += size if overwritten else 2 * size
        elif position == 0 and operator in TAKES:
            total += min(size, _bytes(out))
        else:
            total += size
    return total


def _arguments(schema: Any, args: Any, kwargs: Any) -> Iterator[tuple[Any, Any]]:
    yield from zip(schema.arguments, args, strict=False)
    named = {argument.name: argument for argument in schema.arguments}
    yield from ((named[name], value) for name, value in kwargs.items() if name in named)


def _bytes(tree: Any) -> int:
    return sum(tensor_bytes(leaf) for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor))


def tensor_bytes(tensor: torch.Tensor) -> int:
    """Bytes of a tensor's elements: expanded dimensions count once, sparse ones as stored."""
    size = tensor.element_size()
    if tensor.layout == torch.sparse_coo:
        return stored(tensor) * size + tensor._indices().numel() * 8
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return _compressed(tensor, tensor.crow_indices(), tensor.col_indices())
    if tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        return _compressed(tensor, tensor.ccol_indices(), tensor.row_indices())
    if tensor.layout != torch.strided or tensor.is_nested:
        return tensor.numel() * size
    elements = 1
    for length, stride in zip(tensor.shape, tensor.stride(), strict=True):
        elements *= min(length, 1) if stride == 0 else length
    return elements * size


def _compressed(tensor: torch.Tensor, *indices: torch.Tensor) -> int:
    return stored(tensor) * tensor.element_size() + sum(map(tensor_bytes, indices))
