"""FLOP formulas by operator.

A multiply-add is two FLOP, as usual in the field, and eight for complex numbers. These formulas
take precedence over ``torch.utils.flop_counter``, some versions of which get operators wrong:
recurrent layers, fused transformer layers, grouped and packed products (not counted), the weight
gradient of grouped convolutions (overcounted by the number of groups), sparse matrices (counted as
dense), and the backward pass of attention, which it counts with the recomputation of the scores,
although model FLOP are those of the mathematics.

A step of a recurrent layer uses every weight matrix once; the elementwise gates are not counted.
ATen's own recurrent layers appear as matrix products. Attention is two products: queries with keys,
and scores with values. A mask, causal or not, is not subtracted. In the backward pass each product
gives two; the recomputation of the scores in fused kernels is not a model FLOP. Softmax, bias, norm
and activation inside a fused operator are not counted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from importlib import import_module
from math import prod
from typing import Any

import torch

_torchs = logging.getLogger("torch.utils.flop_counter")
_torchs.disabled = True  # without Triton it would warn, in the log of the user's program
flop_registry = import_module(_torchs.name).flop_registry
_torchs.disabled = False

Formula = Callable[..., "int | None"]

FLOAT4 = getattr(torch, "float4_e2m1fn_x2", None)
"""The data type with two numbers per element; None before torch 2.8."""


def formula_of(name: str) -> Formula | None:
    """This package's formula for an operator; ``addmm_`` has that of ``addmm``."""
    return FORMULAS.get(name) or FORMULAS.get(name.rstrip("_"))


def flop_of(
    name: str, packet: Any, args: Sequence[Any], kwargs: dict[str, Any], out: Any
) -> int | None:
    """FLOP of one call of the operator ``name``; None without a formula.

    ``packet`` is torch's object for it, under which torch's and users' formulas are registered.
    """
    named = {key: value for key, value in kwargs.items() if key != "out"}
    own = formula_of(name)
    if own is not None:
        return own(*args, out=out, **named)
    registered = flop_registry.get(packet)
    if registered is not None:
        return int(registered(*args, **named, out_val=out))
    return None


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


def _convolved(x: torch.Tensor, w: torch.Tensor, out: torch.Tensor, transposed: bool) -> int:
    """Each output position (input position, if transposed) is multiplied by the whole weight.

    The weight's second dimension is already divided by the groups. Padding is not subtracted.
    """
    positions = x.shape[2:] if transposed else out.shape[2:]
    return 2 * x.shape[0] * prod(positions) * w.numel()


def _convolution(*arguments: Any, out: torch.Tensor, **__: Any) -> int:
    x, w, _bias, _stride, _padding, _dilation, transposed, *_ = arguments
    return _convolved(x, w, out, transposed)


def _conv(x: torch.Tensor, w: torch.Tensor, *_: Any, out: torch.Tensor, **__: Any) -> int:
    return _convolved(x, w, out, transposed=False)


def _conv_transposed(
    x: torch.Tensor, w: torch.Tensor, *_: Any, out: torch.Tensor, **__: Any
) -> int:
    return _convolved(x, w, out, transposed=True)


def _conv_tbc(_x: Any, w: torch.Tensor, *_: Any, out: torch.Tensor, **__: Any) -> int:
    """Output (time, batch, channels), weight (width, channels in, channels out)."""
    return 2 * prod(out.shape[:2]) * w.numel()


def _convolution_backward(*arguments: Any, **__: Any) -> int:
    """The gradients of input and weight each cost as much as the forward, groups or not."""
    grad, x, w, _bias_sizes, _stride, _padding, _dilation, transposed, *more = arguments
    _output_padding, _groups, wanted = more
    gradients: int = wanted[0] + wanted[1]
    return gradients * _convolved(x, w, grad, transposed)


def _matrices(weights: Sequence[torch.Tensor]) -> int:
    return sum(w.numel() for w in weights if w.dim() == 2)


def _steps(x: torch.Tensor, packed: Sequence[int]) -> int:
    """Steps of all sequences: input (rows, features) if packed, else (time, batch, features)."""
    return x.shape[0] if packed else prod(x.shape[:2])


def _cudnn(*arguments: Any, **__: Any) -> int:
    x, weights, _stride, _buffer, _hx, _cx, _mode, _hidden, _projected, *more = arguments
    _layers, _batch_first, _dropout, _train, _bidirectional, packed, *_ = more
    return 2 * _steps(x, packed) * _matrices(weights)


def _cudnn_backward(*arguments: Any, **__: Any) -> int:
    """The gradients of a product's input and of its weight each cost as much as the product.

    Two products have an optional input gradient: that of the first layer's input, at every step,
    and that of the initial state, at the first step. ``wanted`` names input, initial state, initial
    cell state and weights; ``stride`` is the number of tensors per layer and direction, the first
    two of which are the matrices of input and state.
    """
    x, weights, stride, _buffer, hx, _cx, _output, _gradient, _of_hy, _of_cy, *more = arguments
    _mode, _hidden, _projected, _layers, _batch_first, _dropout, _train, bidirectional, *more = more
    packed, _dropout_state, _reserve, wanted = more
    steps, every = _steps(x, packed), _matrices(weights)
    flop: int = 2 * steps * every * (1 + wanted[3])
    if not wanted[0]:
        flop -= 2 * steps * sum(w.numel() for w in weights[: stride * (1 + bidirectional) : stride])
    if not wanted[1]:
        flop -= 2 * hx.shape[1] * sum(w.numel() for w in weights[1::stride])
    return flop


def _onednn(x: torch.Tensor, *weights: Any, **_: Any) -> int:
    """One layer in one direction: the two weight matrices follow the input (time, batch, ...)."""
    return 2 * prod(x.shape[:2]) * _matrices(weights[:2])


def _onednn_backward(x: torch.Tensor, *weights: Any, **_: Any) -> int:
    """All gradients, including input and initial state: it always returns them."""
    return 2 * _onednn(x, *weights)


def _attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *_: Any, **__: Any) -> int | None:
    """Shapes (batch, heads, length, width); keys and values may have fewer heads, shared by groups.

    None for nested tensors, whose sequences differ in length.
    """
    if q.is_nested or k.is_nested:
        return None
    batch, heads, queries, width = q.shape
    return 2 * batch * heads * queries * k.shape[-2] * (width + v.shape[-1])


def _doubled(flop: int | None) -> int | None:
    return None if flop is None else 2 * flop


def _attention_backward(_grad: Any, *tensors: Any, **_: Any) -> int | None:
    return _doubled(_attention(*tensors))


def _flex_backward(*tensors: Any, **_: Any) -> int | None:
    return _doubled(_attention(*tensors))


def _lengths(offsets: torch.Tensor) -> list[int] | None:
    """Lengths of the sequences between offsets; None if the offsets have no data."""
    if offsets.is_meta or type(offsets) not in (torch.Tensor, torch.nn.Parameter):
        return None
    return [int(length) for length in offsets.diff().tolist()]


def _attention_kernel(*arguments: Any, **__: Any) -> int | None:
    """Shapes (batch, length, heads, width), or all sequences in one dimension with their offsets.

    None if the offsets have no data.
    """
    q, k, v, offsets_q, offsets_k, *_ = arguments
    heads, width = q.shape[-2:]
    if offsets_q is None:
        pairs = q.shape[0] * q.shape[1] * k.shape[1]
    else:
        lengths_q = _lengths(offsets_q)
        lengths_k = lengths_q if offsets_k is None else _lengths(offsets_k)
        if lengths_q is None or lengths_k is None:
            return None
        pairs = sum(a * b for a, b in zip(lengths_q, lengths_k, strict=True))
    flop: int = 2 * heads * pairs * (width + v.shape[-1])
    return flop


def _efficient_attention(*arguments: Any, **__: Any) -> int | None:
    q, k, v, _bias, offsets_q, offsets_k, *_ = arguments
    return _attention_kernel(q, k, v, offsets_q, offsets_k)


def _flash_attention_backward(*arguments: Any, **__: Any) -> int | None:
    _grad, q, k, v, _out, _logsumexp, offsets_q, offsets_k, *_ = arguments
    return _doubled(_attention_kernel(q, k, v, offsets_q, offsets_k))


def _efficient_attention_backward(*arguments: Any, **__: Any) -> int | None:
    _grad, q, k, v, _bias, _out, offsets_q, offsets_k, *_ = arguments
    return _doubled(_attention_kernel(q, k, v, offsets_q, offsets_k))


def _sequences(x: torch.Tensor) -> list[int]:
    """Length of each sequence of (batch, length, width); nested tensors have individual lengths."""
    if x.is_nested:
        return [each.shape[0] for each in x.unbind()]
    return [x.shape[1]] * x.shape[0]


def _multi_head(q: Any, k: Any, v: Any, width: int, *_: Any, **__: Any) -> int:
    """Projections of queries, keys, values and the result, plus the attention itself."""
    lengths_q, lengths_k, lengths_v = map(_sequences, (q, k, v))
    rows = 2 * sum(lengths_q) + sum(lengths_k) + sum(lengths_v)
    pairs = sum(a * b for a, b in zip(lengths_q, lengths_k, strict=True))
    return 2 * rows * width * width + 4 * pairs * width


def _encoder_layer(x: torch.Tensor, width: int, _heads: int, *rest: Any, **_: Any) -> int:
    """Self-attention plus the two layers after it, whose weights are arguments 14 and 16."""
    feed_forward: int = rest[11].numel() + rest[13].numel()
    return _multi_head(x, x, x, width) + 2 * sum(_sequences(x)) * feed_forward


_OF_ATEN: dict[Formula, str] = {
    _mm: "mm _sparse_mm _sparse_mm_reduce_impl _int_mm _scaled_mm _scaled_mm_v2",
    _addmm: "addmm _addmm_activation _sparse_addmm _scaled_addmm",
    _foreach_mm: "_foreach_mm",
    _bmm: "bmm",
    _baddbmm: "baddbmm addbmm",
    _grouped_mm: "_grouped_mm _scaled_grouped_mm _scaled_grouped_mm_v2",
    _mv: "mv dot vdot",
    _addmv: "addmv",
    _addr: "addr",
    _trilinear: "_trilinear",
    _sampled: "sparse_sampled_addmm",
    _packed_linear: "_weight_int8pack_mm _weight_int4pack_mm _weight_int4pack_mm_for_cpu "
    "_mixed_dtypes_linear _dyn_quant_matmul_4bit",
    _convolution: "convolution _convolution convolution_overrideable",
    _convolution_backward: "convolution_backward",
    _conv: "cudnn_convolution cudnn_convolution_relu cudnn_convolution_add_relu mkldnn_convolution "
    "_conv_depthwise2d conv_depthwise3d _slow_conv2d_forward slow_conv3d_forward "
    "slow_conv_dilated2d slow_conv_dilated3d",
    _conv_transposed: "cudnn_convolution_transpose slow_conv_transpose2d slow_conv_transpose3d",
    _conv_tbc: "conv_tbc",
    _cudnn: "_cudnn_rnn",
    _cudnn_backward: "_cudnn_rnn_backward",
    _onednn: "mkldnn_rnn_layer",
    _onednn_backward: "mkldnn_rnn_layer_backward",
    _attention_kernel: "_flash_attention_forward",
    _flash_attention_backward: "_flash_attention_backward",
    _efficient_attention: "_efficient_attention_forward",
    _efficient_attention_backward: "_efficient_attention_backward",
    _multi_head: "_native_multi_head_attention",
    _encoder_layer: "_transformer_encoder_layer_fwd",
}
_FUSED = """
    flash_attention flash_attention_for_cpu efficient_attention cudnn_attention
    fused_attention_overrideable
"""
FORMULAS: dict[str, Formula] = {
    **{f"aten.{name}": formula for formula, names in _OF_ATEN.items() for name in names.split()},
    **{f"aten._scaled_dot_product_{kind}": _attention for kind in _FUSED.split()},
    **{f"aten._scaled_dot_product_{kind}_backward": _attention_backward for kind in _FUSED.split()},
    "higher_order.flex_attention": _attention,
    "higher_order.flex_attention_backward": _flex_backward,
}
"""Formulas by operator (``"aten.mm"``), called with the operator's own arguments and ``out=``, its
result. They return None if this call cannot be counted."""
