"""FLOP of matrix, batched, grouped, sparse, vector and quantized products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import torch

FLOAT4 = getattr(torch, "float4_e2m1fn_x2", None)
"""The data type with two numbers per element; None before torch 2.8."""


def stored(matrix: torch.Tensor) -> int:
    """Number of stored entries: all, or the specified ones (whole blocks) of a sparse tensor."""
    if matrix.layout == torch.sparse_coo:
        return matrix._values().numel()
    if matrix.layout in (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc):
        return matrix.values().numel()
    return matrix.numel()


def cost(a: torch.Tensor, factor: int = 2) -> int:
    """FLOP of one multiply-add of numbers like ``a``'s."""
    if a.is_complex():
        return 4 * factor
    return 2 * factor if FLOAT4 is not None and a.dtype == FLOAT4 else factor


def _mm(a: torch.Tensor, b: torch.Tensor, *_: Any, **__: Any) -> int:
    if b.layout != torch.strided:
        return cost(a) * stored(b) * a.shape[0]
    return cost(a) * stored(a) * b.shape[1]


def _addmm(_added: Any, a: torch.Tensor, b: torch.Tensor, *_: Any, **__: Any) -> int:
    return _mm(a, b)


def _foreach_mm(a: Sequence[torch.Tensor], b: Sequence[torch.Tensor], **_: Any) -> int:
    return sum(map(_mm, a, b))


def _bmm(a: torch.Tensor, b: torch.Tensor, *_: Any, **__: Any) -> int | None:
    """None for nested tensors, whose matrices differ in shape."""
    return None if a.is_nested or b.is_nested else cost(a) * stored(a) * b.shape[-1]


def _baddbmm(_added: Any, a: torch.Tensor, b: torch.Tensor, *_: Any, **__: Any) -> int | None:
    return _bmm(a, b)


def _grouped_mm(a: torch.Tensor, b: torch.Tensor, *_: Any, **__: Any) -> int:
    """Groups of rows, of columns or of the inner dimension, or a batch.

    A two-dimensional matrix holds its groups side by side in one dimension, so that the products
    add up to that of the whole matrices; rows past the last group are not subtracted.
    """
    batch = a.shape[0] if a.dim() == 3 and b.dim() == 3 else 1
    return cost(a) * batch * prod(a.shape[-2:]) * b.shape[-1]


def _mv(a: torch.Tensor, *_: Any, **__: Any) -> int:
    return cost(a) * stored(a)


def _addmv(_added: Any, a: torch.Tensor, *_: Any, **__: Any) -> int:
    return _mv(a)


def _addr(_added: Any, a: torch.Tensor, b: torch.Tensor, *_: Any, **__: Any) -> int:
    return cost(a) * a.numel() * b.numel()


def _packed_linear(x: torch.Tensor, *_: Any, out: torch.Tensor, **__: Any) -> int:
    """Rows of ``x`` times a matrix in a packed format, with the output's width."""
    return 2 * x.numel() * out.shape[-1]


def _sampled(at: torch.Tensor, a: torch.Tensor, *_: Any, **__: Any) -> int:
    """A product in which only the entries stored by ``at`` are computed."""
    return cost(a) * stored(at) * a.shape[-1]


def _trilinear(*arguments: Any, **__: Any) -> int:
    """Two consecutive products, as in ATen (``_trilinear`` in native/Linear.cpp).

    Dimensions are those of all three tensors; each tensor lacks the ones it is expanded in. The
    first product sums the summed dimensions that ``c`` lacks.
    """
    a, b, c, expand_a, expand_b, expand_c, summed, *_ = arguments
    dims = a.dim() + len(expand_a)
    sizes: dict[int, int] = {}
    has = []
    for tensor, expanded in ((a, expand_a), (b, expand_b), (c, expand_c)):
        own = [d for d in range(dims) if d not in expanded]
        sizes.update(zip(own, tensor.shape, strict=True))
        has.append(set(own))
    first = has[0] | has[1]
    second = (first - (set(summed) - has[2])) | has[2]
    return cost(a) * (prod(sizes[d] for d in first) + prod(sizes[d] for d in second))


FORMULAS: dict[str, Callable[..., int | None]] = {
    "aten.mm": _mm,
    "aten._sparse_mm": _mm,
    "aten._sparse_mm_reduce_impl": _mm,
    "aten._int_mm": _mm,
    "aten._scaled_mm": _mm,
    "aten._scaled_mm_v2": _mm,
    "aten.addmm": _addmm,
    "aten._addmm_activation": _addmm,
    "aten._sparse_addmm": _addmm,
    "aten._scaled_addmm": _addmm,
    "aten._foreach_mm": _foreach_mm,
    "aten.bmm": _bmm,
    "aten.baddbmm": _baddbmm,
    "aten.addbmm": _baddbmm,
    "aten._grouped_mm": _grouped_mm,
    "aten._scaled_grouped_mm": _grouped_mm,
    "aten._scaled_grouped_mm_v2": _grouped_mm,
    "aten.mv": _mv,
    "aten.addmv": _addmv,
    "aten.dot": _mv,
    "aten.vdot": _mv,
    "aten.addr": _addr,
    "aten._trilinear": _trilinear,
    "aten.sparse_sampled_addmm": _sampled,
    "aten._weight_int8pack_mm": _packed_linear,
    "aten._weight_int4pack_mm": _packed_linear,
    "aten._weight_int4pack_mm_for_cpu": _packed_linear,
    "aten._mixed_dtypes_linear": _packed_linear,
    "aten._dyn_quant_matmul_4bit": _packed_linear,
}
"""Called with the operator's own arguments and ``out=``."""
