"""torchvision's classification models, trained as in PyTorch's ImageNet example."""

from __future__ import annotations

import difflib
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torchvision
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import Dataset
from torchvision import datasets, transforms

from ..data import synthetic
from ..data.folder import wrong_shape
from ..failures import UsageFailure
from ..names import COMMON_SIZE, TORCHVISION, defaults
from ..task import Data, Definition, Scored, Settings, Task

CLASSES = 1000
SAMPLES, SAMPLE_CLASSES, POOL = 100_000, 200, 128
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
AUXILIARY_WEIGHTS = {"inception_v3": 0.4, "googlenet": 0.3}
"""Weights of the auxiliary classifiers' losses, from the papers (arXiv:1512.00567, 1409.4842)."""


class Objective:
    """Cross entropy, including the weighted losses of auxiliary classifiers."""

    def __init__(self, auxiliary_weight: float) -> None:
        self._weight = auxiliary_weight

    def __call__(self, model: nn.Module, inputs: tuple[Tensor, ...], target: Tensor) -> Scored:
        output = model(*inputs)
        if isinstance(output, Tensor):
            return cross_entropy(output, target), output, target
        scores, *auxiliary = output
        loss = cross_entropy(scores, target)
        for other in auxiliary:
            if other is not None:
                loss = loss + self._weight * cross_entropy(other, target)
        return loss, scores, target


def classification_models() -> list[str]:
    """Names of torchvision's classification models."""
    names: list[str] = torchvision.models.list_models(module=torchvision.models)
    return names


def check_model(model: str) -> None:
    """Refuse anything but a classification model of torchvision, suggesting close names.

    Raises:
        UsageFailure: the model is unknown, or is for detection, segmentation, video ...
    """
    names = classification_models()
    if model in names:
        return
    if model in torchvision.models.list_models():
        raise UsageFailure(
            f"{TORCHVISION}{model} is not an image classification model",
            f"choose a classification model, such as {TORCHVISION}resnet50",
        )
    close = difflib.get_close_matches(model.lower(), names, n=3, cutoff=0.5)
    raise UsageFailure(
        f"torchvision {torchvision.__version__} has no model {model!r}",
        f"did you mean {' or '.join(TORCHVISION + name for name in close)}?"
        if close
        else f"choose one of: {', '.join(names)}",
    )


def own_size(model: str) -> int:
    """Edge in pixels of the images for the model's ImageNet weights; 224 by default."""
    for weights in torchvision.models.get_model_weights(model):
        if weights.name == "IMAGENET1K_V1":
            crop = weights.transforms().crop_size
            return int(crop[0] if isinstance(crop, (list, tuple)) else crop)
    return COMMON_SIZE


def build_model(model: str, size: int) -> nn.Module:
    """The model without weights, for images of ``size`` x ``size``, with 1,000 classes.

    Raises:
        UsageFailure: the model does not support that size.
    """
    options: dict[str, Any] = {}
    if model in AUXILIARY_WEIGHTS:
        options = {"init_weights": True, "aux_logits": True}
    elif model.startswith("vit_"):
        options = {"image_size": size}
    elif model.startswith("maxvit"):
        options = {"input_size": (size, size)}
    try:
        built: nn.Module = torchvision.models.get_model(model, weights=None, **options)
    except (AssertionError, ValueError, RuntimeError) as error:
        raise UsageFailure(
            f"{model} does not accept images of {size} x {size} pixels: {error}",
            f"use --image-size {own_size(model)}",
        ) from error
    return built


def read_pictures(folder: Path, size: int, classes: int) -> tuple[Dataset[Any], int, str]:
    """The training images, their number, and a description.

    ``folder`` has a folder per class, or a ``train`` with them; images may be at any depth below a
    class's folder (tiny-imagenet-200 has ``train/CLASS/images/*.JPEG``). Each image is randomly
    cropped to ``size`` x ``size``, randomly mirrored and normalised, as in torch's ImageNet
    example.

    Raises:
        UsageFailure: there are no such images, or more classes than the model has.
    """
    root = folder / "train" if (folder / "train").is_dir() else folder
    expected = "a folder of images for each class, in it or in its train/"
    hint = "give an ImageNet-like folder or an unpacked tiny-imagenet-200"
    augment = transforms.Compose(
        [
            transforms.RandomResizedCrop(size),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize(MEAN, DEVIATION),
        ]
    )
    try:
        dataset = datasets.ImageFolder(str(root), augment)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise wrong_shape(folder, expected, hint) from error
    if len(dataset.classes) > classes:
        raise wrong_shape(folder, f"at most {classes} classes, not {len(dataset.classes)}", hint)
    name = "tiny-imagenet-200" if (folder / "wnids.txt").is_file() else "image folder"
    text = (
        f"{name}: {len(dataset)} images, {len(dataset.classes)} classes, cropped to {size} x {size}"
    )
    return dataset, len(dataset), text


def data(settings: Settings, size: int) -> Data:
    """Images, float32 (3, size, size), normalised."""
    if settings.data is not None:
        dataset, samples, text = read_pictures(settings.data, size, CLASSES)
        return Data("real", text, samples, dataset, path=settings.data)
    pixels, labels = synthetic.images(POOL, 3, size, SAMPLE_CLASSES)
    text = (
        f"{SAMPLES} images of {size}x{size}x3, {SAMPLE_CLASSES} classes, as many as "
        f"tiny-imagenet-200 has, {POOL} distinct"
    )
    return Data("synthetic", text, SAMPLES, synthetic.Repeated(pixels, labels, SAMPLES))


def definition(name: str) -> Definition:
    """The workload ``resnet18``, ``torchvision:vit_b_16`` ...; raises UsageFailure if unknown."""
    model = name.removeprefix(TORCHVISION)
    check_model(model)

    def make(settings: Settings) -> Task:
        size = settings.image_size or COMMON_SIZE
        return Task(
            model=build_model(model, size),
            text=f"torchvision's {model}, {CLASSES} classes, images of {size} x {size}",
            data=data(settings, size),
            objective=Objective(AUXILIARY_WEIGHTS.get(model, 0.0)),
            optimizer=partial(torch.optim.SGD, lr=settings.lr, momentum=0.9, weight_decay=1e-4),
            scheduler=lambda optimizer: torch.optim.lr_scheduler.StepLR(optimizer, 30, gamma=0.1),
        )

    own_defaults = replace(defaults(name), image_size=own_size(model))
    return Definition(own_defaults, make)
