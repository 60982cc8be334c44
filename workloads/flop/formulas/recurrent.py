"""FLOP of single-operator recurrent layers: cuDNN's and oneDNN's.

Each step of each sequence uses every weight matrix once; the elementwise gates are not counted.
ATen's own recurrent layers appear as matrix products.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import torch


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


FORMULAS: dict[str, Callable[..., int | None]] = {
    "aten._cudnn_rnn": _cudnn,
    "aten._cudnn_rnn_backward": _cudnn_backward,
    "aten.mkldnn_rnn_layer": _onednn,
    "aten.mkldnn_rnn_layer_backward": _onednn_backward,
}
"""Called with the operator's own arguments and ``out=``."""
