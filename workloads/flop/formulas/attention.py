"""FLOP of single-operator attention and of the fused layers around it.

Attention is two products: queries with keys, and scores with values. A mask, causal or not, is not
subtracted. In the backward pass each product gives two; the recomputation of the scores in fused
kernels is not a model FLOP. Softmax, bias, norm and activation inside a fused operator are not
counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


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


def _kernel(*arguments: Any, **__: Any) -> int | None:
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


def _efficient(*arguments: Any, **__: Any) -> int | None:
    q, k, v, _bias, offsets_q, offsets_k, *_ = arguments
    return _kernel(q, k, v, offsets_q, offsets_k)


def _flash_backward(*arguments: Any, **__: Any) -> int | None:
    _grad, q, k, v, _out, _logsumexp, offsets_q, offsets_k, *_ = arguments
    return _doubled(_kernel(q, k, v, offsets_q, offsets_k))


def _efficient_backward(*arguments: Any, **__: Any) -> int | None:
    _grad, q, k, v, _bias, _out, offsets_q, offsets_k, *_ = arguments
    return _doubled(_kernel(q, k, v, offsets_q, offsets_k))


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


_FUSED = """
    flash_attention flash_attention_for_cpu efficient_attention cudnn_attention
    fused_attention_overrideable
"""
FORMULAS: dict[str, Callable[..., int | None]] = {
    **{f"aten._scaled_dot_product_{kind}": _attention for kind in _FUSED.split()},
    **{f"aten._scaled_dot_product_{kind}_backward": _attention_backward for kind in _FUSED.split()},
    "higher_order.flex_attention": _attention,
    "higher_order.flex_attention_backward": _flex_backward,
    "aten._flash_attention_forward": _kernel,
    "aten._flash_attention_backward": _flash_backward,
    "aten._efficient_attention_forward": _efficient,
    "aten._efficient_attention_backward": _efficient_backward,
    "aten._native_multi_head_attention": _multi_head,
    "aten._transformer_encoder_layer_fwd": _encoder_layer,
}
"""Called with the operator's own arguments and ``out=``."""
