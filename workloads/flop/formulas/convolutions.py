"""FLOP of convolutions, forward and backward."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import torch


def _flop(x: torch.Tensor, w: torch.Tensor, out: torch.Tensor, transposed: bool) -> int:
    """Each output position (input position, if transposed) is multiplied by the whole weight.

    The weight's second dimension is already divided by the groups. Padding is not subtracted.
    """
    positions = x.shape[2:] if transposed else out.shape[2:]
    return 2 * x.shape[0] * prod(positions) * w.numel()


def _convolution(*arguments: Any, out: torch.Tensor, **__: Any) -> int:
    x, w, _bias, _stride, _padding, _dilation, transposed, *_ = arguments
    return _flop(x, w, out, transposed)


def _plain(x: torch.Tensor, w: torch.Tensor, *_: Any, out: torch.Tensor, **__: Any) -> int:
    return _flop(x, w, out, transposed=False)


def _transposed(x: torch.Tensor, w: torch.Tensor, *_: Any, out: torch.Tensor, **__: Any) -> int:
    return _flop(x, w, out, transposed=True)


def _conv_tbc(_x: Any, w: torch.Tensor, *_: Any, out: torch.Tensor, **__: Any) -> int:
    """Output (time, batch, channels), weight (width, channels in, channels out)."""
    return 2 * prod(out.shape[:2]) * w.numel()


def _backward(*arguments: Any, **__: Any) -> int:
    """The gradients of input and weight each cost as much as the forward, groups or not."""
    grad, x, w, _bias_sizes, _stride, _padding, _dilation, transposed, *more = arguments
    _output_padding, _groups, wanted = more
    gradients: int = wanted[0] + wanted[1]
    return gradients * _flop(x, w, grad, transposed)


FORMULAS: dict[str, Callable[..., int | None]] = {
    "aten.convolution": _convolution,
    "aten._convolution": _convolution,
    "aten.convolution_overrideable": _convolution,
    "aten.convolution_backward": _backward,
    "aten.cudnn_convolution": _plain,
    "aten.cudnn_convolution_relu": _plain,
    "aten.cudnn_convolution_add_relu": _plain,
    "aten.cudnn_convolution_transpose": _transposed,
    "aten.mkldnn_convolution": _plain,
    "aten._conv_depthwise2d": _plain,
    "aten.conv_depthwise3d": _plain,
    "aten._slow_conv2d_forward": _plain,
    "aten.slow_conv3d_forward": _plain,
    "aten.slow_conv_dilated2d": _plain,
    "aten.slow_conv_dilated3d": _plain,
    "aten.slow_conv_transpose2d": _transposed,
    "aten.slow_conv_transpose3d": _transposed,
    "aten.conv_tbc": _conv_tbc,
}
"""Called with the operator's own arguments and ``out=``."""
