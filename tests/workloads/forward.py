"""The work of a model's forward pass alone, which no run counts."""

from __future__ import annotations

import torch
from torch import nn

from gpuwatch.workloads.flop.counting import copy_model
from gpuwatch.workloads.flop.operators import OperatorCounter, Work


def count_forward(model: nn.Module, *inputs: torch.Tensor) -> Work:
    """Work of one forward pass in the model's current mode (train or eval), on shapes alone."""
    copied, counter = copy_model(model, _shape_of), OperatorCounter()
    with counter:
        copied(*map(_shape_of, inputs))
    return counter.work


def _shape_of(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().to("meta")
