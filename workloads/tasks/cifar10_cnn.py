"""``cifar10-cnn``: the CNN of PyTorch's introductory tutorial, on CIFAR-10."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ..data import synthetic
from ..data.cifar import FILES, FOLDER, read_cifar10
from ..data.folder import fetch
from ..names import defaults
from ..task import Data, Definition, Scored, Settings, Task

SAMPLES = 50_000
POOL = 2_000


def network() -> nn.Sequential:
    """Two convolutions and three fully connected layers: (N, 3, 32, 32) to (N, 10) logits."""
    return nn.Sequential(
        nn.Conv2d(3, 6, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(400, 120),
        nn.ReLU(),
        nn.Linear(120, 84),
        nn.ReLU(),
        nn.Linear(84, 10),
    )


def objective(model: nn.Module, inputs: tuple[Tensor, ...], target: Tensor) -> Scored:
    """Cross entropy of (N, 10) scores with int64 (N,) classes."""
    scores = model(*inputs)
    return cross_entropy(scores, target), scores, target


def data(settings: Settings) -> Data:
    """CIFAR-10's training images, float32 (3, 32, 32) from -1 to 1."""
    if settings.data is None:
        pixels, labels = synthetic.images(POOL, 3, 32, 10)
        dataset = synthetic.Repeated(pixels, labels, SAMPLES)
        text = f"{SAMPLES} images of CIFAR-10's shape, 32x32x3, 10 classes, {POOL} distinct"
        return Data("synthetic", text, SAMPLES, dataset)
    if settings.download and not (settings.data / FOLDER / FILES[-1]).is_file():
        fetch("CIFAR10", settings.data)
    pixels, labels = read_cifar10(settings.data)
    text = f"{len(labels)} training images of CIFAR-10"
    dataset = synthetic.Repeated(pixels, labels)
    return Data("real", text, len(labels), dataset, path=settings.data)


def make(settings: Settings) -> Task:
    """The task with these settings."""
    return Task(
        model=network(),
        text="2 convolutions (6, 16) with pooling, 3 fully connected (120, 84, 10)",
        data=data(settings),
        objective=objective,
        optimizer=partial(torch.optim.SGD, lr=settings.lr, momentum=0.9),
    )


def definition(name: str) -> Definition:
    """The workload."""
    return Definition(defaults(name), make)
