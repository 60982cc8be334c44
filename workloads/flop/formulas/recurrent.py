"""FLOP of whole recurrent layers in one operator: cuDNN's and oneDNN's.

Each step of each sequence meets every weight matrix once; what the gates do elementwise is not
counted. ATen's own recurrent layers show as matrix products.
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


def _cudnn(
    x: torch.Tensor,
    weights: Sequence[torch.Tensor],
    _stride: int,
    _buffer: Any,
    _hx: Any,
    _cx: Any,
    _mode: int,
    _hidden: int,
    _projected: int,
    _layers: int,
    _batch_first: bool,
    _dropout: float,
    _train: bool,
    _bidirectional: bool,
    packed: Sequence[int],
    *_: Any,
    **__: Any,
) -> int:
    return 2 * _steps(x, packed) * _matrices(weights)


def _cudnn_backward(
    x: torch.Tensor,
    weights: Sequence[torch.Tensor],
    stride: int,
    _buffer: Any,
    hx: torch.Tensor,
    _cx: Any,
    _output: Any,
    _grad_output: Any,
    _grad_hy: Any,
    _grad_cy: Any,
    _mode: int,
    _hidden: int,
    _projected: int,
    _layers: int,
    _batch_first: bool,
    _dropout: float,
    _train: bool,
    bidirectional: bool,
    packed: Sequence[int],
    _dropout_state: Any,
    _reserve: Any,
    wanted: Sequence[bool],
    **_: Any,
) -> int:
    """The gradients of what enters a product and of its weight each cost what the product did.

    Two products have a gradient that may not be wanted: that of the first layer with its input,
    at every step, and that of the first step's with the initial state. ``wanted`` names input,
    initial state, initial cell state and weights; ``stride`` is the number of tensors of a layer
    and direction, the first two its input's and its state's matrices.
    """
    steps, every = _steps(x, packed), _matrices(weights)
    flop = 2 * steps * every * (1 + wanted[3])
    if not wanted[0]:
        flop -= 2 * steps * sum(w.numel() for w in weights[: stride * (1 + bidirectional) : stride])
    if not wanted[1]:
        flop -= 2 * hx.shape[1] * sum(w.numel() for w in weights[1::stride])
    return flop


def _onednn(x: torch.Tensor, *weights: Any, **_: Any) -> int:
    """One layer in one direction: the two weight matrices follow the input (time, batch, ...)."""
    return 2 * prod(x.shape[:2]) * _matrices(weights[:2])


def _onednn_backward(x: torch.Tensor, *weights: Any, **_: Any) -> int:
    """All gradients, the input's and the initial state's too: it returns them, wanted or not."""
    return 2 * _onednn(x, *weights)


FORMULAS: dict[str, Callable[..., int | None]] = {
    "aten._cudnn_rnn": _cudnn,
    "aten._cudnn_rnn_backward": _cudnn_backward,
    "aten.mkldnn_rnn_layer": _onednn,
    "aten.mkldnn_rnn_layer_backward": _onednn_backward,
}
"""Called with the operator's own arguments and ``out=``."""
