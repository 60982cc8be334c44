"""Linear layers whose products are in fp8: e4m3 forward, e5m2 for gradients (arXiv:2209.05433).

Each tensor is scaled by its largest value, anew in every step. Everything else of the model is in
bfloat16, by autocast.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

LEAST_CAPABILITY = (8, 9)
"""The first GPUs with products in fp8: Ada and Hopper."""
_MULTIPLE = 16
"""Rows and columns of weights that the products take are multiples of it."""
_WEIGHTS, _GRADIENTS = torch.float8_e4m3fn, torch.float8_e5m2


def available() -> bool:
    """Whether this torch has scaled products."""
    return hasattr(functional, "scaled_mm")


def with_float8(model: nn.Module) -> nn.Module:
    """The model, its linear layers in fp8 where their sizes fit, but the last one.

    The last layer decides between tokens, and stays in bfloat16, as is usual.
    """
    for parent in list(model.modules()):
        for name, layer in list(parent.named_children()):
            if not isinstance(layer, nn.Linear) or layer.bias is not None or name == "last":
                continue
            if layer.in_features % _MULTIPLE or layer.out_features % _MULTIPLE:
                continue
            replaced = Float8Linear(
                layer.in_features, layer.out_features, bias=False, device="meta"
            )
            replaced.weight = layer.weight
            setattr(parent, name, replaced)
    return model


class Float8Linear(nn.Linear):
    """`nn.Linear` without bias: (..., in) to (..., out), both in bfloat16."""

    def forward(self, input: Tensor) -> Tensor:
        flat = input.flatten(0, -2)
        product: Tensor = _Product.apply(flat, self.weight)
        return product.view(*input.shape[:-1], self.out_features)


class _Product(torch.autograd.Function):
    """``input @ weight.t()`` of (N, in) and (out, in); N must be a multiple of 16 for gradients."""

    @staticmethod
    def forward(ctx: Any, input: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(input, weight)
        return scaled_product(input, weight.t(), _WEIGHTS)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        input, weight = ctx.saved_tensors
        (gradient,) = gradients
        of_input = scaled_product(gradient, weight, _GRADIENTS)
        of_weight = scaled_product(gradient.t(), input, _GRADIENTS)
        return of_input.to(input.dtype), of_weight.to(weight.dtype)


def scaled_product(one: Tensor, other: Tensor, dtype: torch.dtype) -> Tensor:
    """``one @ other``, (N, K) and (K, M), in bfloat16 (N, M): ``one`` in ``dtype``, ``other`` in
    e4m3, each with its scale."""
    left, left_scale = _scaled(one, dtype)
    right, right_scale = _scaled(other.t(), _WEIGHTS)
    whole = functional.ScalingType.TensorWise
    product: Tensor = functional.scaled_mm(
        left.contiguous(),
        right.contiguous().t(),
        left_scale,
        whole,
        right_scale,
        whole,
        output_dtype=torch.bfloat16,
    )
    return product


def _scaled(tensor: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """The tensor in ``dtype``, its largest value the type's, and the scale to multiply with."""
    scale = tensor.detach().abs().amax().float().clamp(min=1e-12) / torch.finfo(dtype).max
    return (tensor.float() / scale).to(dtype), scale
