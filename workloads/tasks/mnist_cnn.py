"""``mnist-cnn``: PyTorch's MNIST example on the first 512 digits."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.functional import nll_loss

from ..data import synthetic
from ..data.folder import fetch
from ..data.idx import read_mnist
from ..names import defaults
from ..task import Data, Definition, Scored, Settings, Task

SAMPLES = 512
MEAN, DEVIATION = 0.1307, 0.3081


def network() -> nn.Sequential:
    """Two convolutions and two fully connected layers: (N, 1, 28, 28) to (N, 10) log-odds."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 3),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Dropout(0.25),
        nn.Flatten(),
        nn.Linear(9216, 128),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(128, 10),
        nn.LogSoftmax(1),
    )


def objective(model: nn.Module, inputs: tuple[Tensor, ...], target: Tensor) -> Scored:
    """Negative log-likelihood of (N, 10) log-odds with int64 (N,) digits."""
    scores = model(*inputs)
    return nll_loss(scores, target), scores, target


def data(settings: Settings) -> Data:
    """512 digits, float32 (1, 28, 28), normalised with MNIST's mean and deviation."""
    if settings.data is None:
        pixels, labels = synthetic.images(SAMPLES, 1, 28, 10)
        kind, text = "synthetic", f"{SAMPLES} images of MNIST's shape, 28x28x1, 10 classes"
    else:
        if settings.download:
            fetch("MNIST", settings.data)
        pixels, labels = read_mnist(settings.data, SAMPLES)
        kind, text = "real", f"the first {len(labels)} training images of MNIST"
    images = (pixels.float() / 255 - MEAN) / DEVIATION
    dataset = synthetic.Repeated(images, labels)
    return Data(kind, text, len(labels), dataset, path=settings.data)


def make(settings: Settings) -> Task:
    """The task with these settings."""
    return Task(
        model=network(),
        text="2 convolutions (32, 64), 2 dropouts, 2 fully connected (128, 10), log-softmax",
        data=data(settings),
        objective=objective,
        optimizer=partial(torch.optim.Adadelta, lr=settings.lr),
        scheduler=lambda optimizer: torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.7),
    )


def definition(name: str) -> Definition:
    """The workload."""
    return Definition(defaults(name), make)
