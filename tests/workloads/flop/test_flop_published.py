"""Counted FLOP of torchvision's models against the figures that it publishes with their weights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest

torch = pytest.importorskip("torch")
torchvision = pytest.importorskip("torchvision")

from torch import nn
from torch.nn import functional as F
from torchvision.models import regnet

from gpuwatch.workloads.flop.counting import count_step
from tests.workloads.forward import count_forward

pytestmark = pytest.mark.torch

WEIGHTS = [
    weights
    for name in torchvision.models.list_models(module=torchvision.models)
    for weights in torchvision.models.get_model_weights(name)
]

FAMILIES = [
    "alexnet",
    "convnext_tiny",
    "densenet121",
    "efficientnet_b0",
    "efficientnet_v2_s",
    "googlenet",
    "inception_v3",
    "maxvit_t",
    "mnasnet0_5",
    "mobilenet_v2",
    "mobilenet_v3_small",
    "regnet_x_400mf",
    "regnet_y_400mf",
    "resnet18",
    "resnet50",
    "resnext50_32x4d",
    "shufflenet_v2_x0_5",
    "squeezenet1_1",
    "swin_t",
    "swin_v2_t",
    "vgg11_bn",
    "vit_b_32",
    "wide_resnet50_2",
]

CONSTANT_INPUTS = {"swin_v2_t": 12 * 2 * 225 * 2 * 512}
"""FLOP of the other products whose input is no variable: each of Swin V2's twelve blocks
derives its position bias from a constant table of 15 x 15 offsets of two numbers, by a layer of
512."""


@contextmanager
def widths_with_data() -> Iterator[None]:
    """RegNets compute their widths with tensors, which on ``meta`` have no values to read."""
    own = regnet.BlockParams.from_init_params

    def on_the_cpu(**parameters: Any) -> Any:
        with torch.device("cpu"):
            return own(**parameters)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(regnet.BlockParams, "from_init_params", on_the_cpu)
        yield


def shapes_alone(name: str, size: int, **options: Any) -> nn.Module:
    """A model of torchvision on ``meta``, for images of this size."""
    if name.startswith("vit"):
        options["image_size"] = size
    if name in ("googlenet", "inception_v3"):
        options["init_weights"] = False
    with widths_with_data(), torch.device("meta"):
        return torchvision.models.get_model(name, **options)


@cache
def multiply_accumulates(name: str, size: int) -> float:
    """Half the counted FLOP of one image's forward, in eval mode."""
    image = torch.empty(1, 3, size, size, device="meta")
    return count_forward(shapes_alone(name, size).eval(), image).flop / 2


def test_every_classification_model_has_a_published_figure_to_compare_with() -> None:
    assert len(WEIGHTS) >= 115
    assert all("_ops" in weights.meta for weights in WEIGHTS)


@pytest.mark.parametrize("weights", WEIGHTS, ids=str)
def test_the_forward_is_twice_the_published_multiply_accumulates(weights: Any) -> None:
    name = type(weights).__name__.removesuffix("_Weights").lower()
    counted = multiply_accumulates(name, weights.transforms().crop_size[0]) / 1e9
    published = weights.meta["_ops"]
    half_a_digit = 0.0005
    assert counted == pytest.approx(published, abs=max(0.01 * published, half_a_digit))


def objective(model: nn.Module, inputs: Any, target: Any) -> Any:
    scores = model(*inputs)
    return F.cross_entropy(scores, target), scores, target


@pytest.mark.parametrize("name", FAMILIES)
def test_the_backward_is_twice_the_forward_less_the_gradient_of_what_is_no_variable(
    name: str,
) -> None:
    options = {"aux_logits": False} if name in ("googlenet", "inception_v3") else {}
    size = 96 if name == "inception_v3" else 224 if name == "maxvit_t" else 64
    model = shapes_alone(name, size, **options)
    images = torch.empty(2, 3, size, size, device="meta")
    labels = torch.zeros(2, dtype=torch.long)
    work = count_step(
        model, (images,), labels, objective, lambda p: torch.optim.SGD(p, lr=0.1, foreach=False)
    )
    first = next(module for module in model.modules() if isinstance(module, nn.Conv2d))
    assert all(parameter.requires_grad for parameter in model.parameters())
    without = count_forward(first, images).flop + CONSTANT_INPUTS.get(name, 0)
    assert work.flop_backward_per_step == 2 * work.flop_forward_per_step - without
    assert work.flop_per_step == work.flop_forward_per_step + work.flop_backward_per_step
    assert work.flop_per_step == sum(row["flop"] or 0 for row in work.operators)
    assert work.bytes_per_step == sum(row["bytes"] for row in work.operators)
