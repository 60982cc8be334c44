"""FLOP of ATen operators, by formula.

A multiplication with its addition is two FLOP, as everywhere in the field. The formulas here come
before those of ``torch.utils.flop_counter``, for what that counts wrongly or not at all in some
of its versions: the backward of grouped convolutions (over-counted by the number of groups),
sparse matrices (counted as dense), vector products, and attention's backward, which is counted
without the recomputation of the scores, since model FLOP are those of the mathematics.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import torch
from torch.utils.flop_counter import flop_registry

Formula = Callable[..., int]

aten = torch.ops.aten


def flop_of(packet: Any, args: Sequence[Any], kwargs: dict[str, Any], out: Any) -> int | None:
    """FLOP of one call of an operator; None where no formula is known."""
    own = FORMULAS.get(packet)
    if own is not None:
        return own(*args, out=out, **kwargs)
    registered = flop_registry.get(packet)
    if registered is not None:
        return int(registered(*args, **kwargs, out_val=out))
    return None


def rows(matrix: torch.Tensor) -> int:
    """FLOP of a matrix times one column: 2 for every entry, or for every stored one if sparse."""
    if matrix.layout in (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc):
        return 2 * matrix._nnz()
    return 2 * matrix.numel()


def _mm(a: torch.Tensor, b: torch.Tensor, *_: Any, **__: Any) -> int:
    if b.layout != torch.strided:
        return rows(b) * a.shape[0]
    return rows(a) * b.shape[1]


def _addmm(_bias: Any, a: torch.Tensor, b: torch.Tensor, *_: Any, **__: Any) -> int:
    return _mm(a, b)


def _mv(a: torch.Tensor, *_: Any, **__: Any) -> int:
    return rows(a)


def _addmv(_bias: Any, a: torch.Tensor, *_: Any, **__: Any) -> int:
    return rows(a)


def _dot(a: torch.Tensor, *_: Any, **__: Any) -> int:
    return 2 * a.numel()


def _addr(_bias: Any, a: torch.Tensor, b: torch.Tensor, *_: Any, **__: Any) -> int:
    return 2 * a.numel() * b.numel()


def _convolution(x: Sequence[int], w: Sequence[int], out: Sequence[int], transposed: bool) -> int:
    """FLOP of a convolution, from the shapes of its input, weight and output.

    The weight's second dimension is already divided by the groups. Padding is not subtracted.
    """
    positions = x[2:] if transposed else out[2:]
    return 2 * x[0] * prod(positions) * prod(w)


def _conv(
    x: torch.Tensor,
    w: torch.Tensor,
    _bias: Any,
    _stride: Any,
    _padding: Any,
    _dilation: Any,
    transposed: bool,
    *_: Any,
    out: torch.Tensor,
    **__: Any,
) -> int:
    return _convolution(x.shape, w.shape, out.shape, transposed)


def _conv_backward(
    grad: torch.Tensor,
    x: torch.Tensor,
    w: torch.Tensor,
    _bias_sizes: Any,
    _stride: Any,
    _padding: Any,
    _dilation: Any,
    transposed: bool,
    _output_padding: Any,
    _groups: int,
    output_mask: Sequence[bool],
    **_: Any,
) -> int:
    """The gradients of input and weight each cost as much as the forward, groups or not."""
    return (output_mask[0] + output_mask[1]) * _convolution(
        x.shape, w.shape, grad.shape, transposed
    )


def _attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *_: Any, **__: Any) -> int:
    """Two products, q k^T and scores v; a mask is not subtracted."""
    batch, heads, queries, width = q.shape
    return 2 * batch * heads * queries * k.shape[-2] * (width + v.shape[-1])


def _attention_backward(
    _grad: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *_: Any, **__: Any
) -> int:
    """Each of the forward's two products gives two in the backward."""
    return 2 * _attention(q, k, v)


def _named(formulas: dict[str, Formula]) -> dict[Any, Formula]:
    """Formulas by operator, for the operators that this torch has."""
    return {getattr(aten, name): f for name, f in formulas.items() if hasattr(aten, name)}


FORMULAS: dict[Any, Formula] = _named(
    {
        "mm": _mm,
        "_sparse_mm": _mm,
        "addmm": _addmm,
        "_addmm_activation": _addmm,
        "_sparse_addmm": _addmm,
        "mv": _mv,
        "addmv": _addmv,
        "dot": _dot,
        "vdot": _dot,
        "addr": _addr,
        "convolution": _conv,
        "_convolution": _conv,
        "convolution_backward": _conv_backward,
        "_scaled_dot_product_flash_attention": _attention,
        "_scaled_dot_product_flash_attention_for_cpu": _attention,
        "_scaled_dot_product_efficient_attention": _attention,
        "_scaled_dot_product_cudnn_attention": _attention,
        "_scaled_dot_product_flash_attention_backward": _attention_backward,
        "_scaled_dot_product_flash_attention_for_cpu_backward": _attention_backward,
        "_scaled_dot_product_efficient_attention_backward": _attention_backward,
        "_scaled_dot_product_cudnn_attention_backward": _attention_backward,
    }
)
"""Formulas by operator (an overload packet). Called with the operator's own arguments and out=."""

VIEWS = frozenset(
    {
        "_unsafe_view",
        "_reshape_alias",
        "lift_fresh",
        "empty",
        "empty_like",
        "empty_strided",
        "new_empty",
        "new_empty_strided",
        "device",
        "_local_scalar_dense",
        "is_same_size",
        "_nnz",
        "as_strided_",
        "detach_",
        "squeeze_",
        "t_",
        "transpose_",
        "unsqueeze_",
        "resize_",
        "set_",
        "unsafe_split",
        "unsafe_chunk",
    }
)
"""Operators that move no data though their schema does not say that they are views."""

MOVERS = frozenset(
    {
        "_to_copy",
        "_pin_memory",
        "_foreach_copy_",
        "_index_put_impl_",
        "_sparse_coo_tensor_with_dims_and_tensors",
        "arange",
        "bernoulli_",
        "bernoulli",
        "cat",
        "clone",
        "constant_pad_nd",
        "copy_",
        "embedding",
        "fill_",
        "flip",
        "full",
        "full_like",
        "gather",
        "index",
        "index_put",
        "index_put_",
        "index_select",
        "lift",
        "masked_fill",
        "masked_fill_",
        "masked_select",
        "new_full",
        "new_ones",
        "new_zeros",
        "normal_",
        "ones",
        "ones_like",
        "rand",
        "rand_like",
        "randn",
        "randn_like",
        "repeat",
        "roll",
        "scalar_tensor",
        "scatter",
        "scatter_",
        "select_backward",
        "slice_backward",
        "split_with_sizes_copy",
        "stack",
        "uniform_",
        "where",
        "zero_",
        "zeros",
        "zeros_like",
        "channel_shuffle",
        "native_channel_shuffle",
        "pixel_shuffle",
    }
)
"""Operators that move data and do no arithmetic: nothing of theirs is left uncounted."""
