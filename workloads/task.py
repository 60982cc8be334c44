"""What a workload is made of: its settings, its data and its training, as the loop needs them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from .names import Defaults

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.optim import Optimizer
    from torch.optim.lr_scheduler import LRScheduler
    from torch.utils.data import Dataset

Scored = tuple[torch.Tensor, "torch.Tensor | None", "torch.Tensor | None"]
"""Loss (a scalar); scores, samples x classes or, for two classes, the samples' logits; labels."""


@dataclass(frozen=True)
class Settings:
    """What one run does, with every default filled in."""

    workload: str
    batch_size: int
    epochs: int
    steps: int | None
    warmup: int | None
    lr: float
    dtype: str
    device: str
    data: Path | None
    download: bool
    image_size: int | None
    workers: int
    seed: int


@dataclass(frozen=True)
class Data:
    """Samples to train on, and what a reader of the run should know about them.

    ``dataset`` gives pairs of one sample's input and target; ``batch`` instead is the data as the
    one batch it is, inputs and target, which is moved to the device once.
    """

    kind: str
    """``synthetic`` or ``real``."""
    text: str
    samples: int
    dataset: Dataset[Any] | None = None
    batch: tuple[tuple[Tensor, ...], Tensor] | None = None
    path: Path | None = None


@dataclass(frozen=True)
class Task:
    """A model and how it is trained."""

    model: nn.Module
    text: str
    """The model in one line."""
    data: Data
    objective: Callable[[nn.Module, tuple[Tensor, ...], Tensor], Scored]
    optimizer: Callable[[Iterable[nn.Parameter]], Optimizer]
    scheduler: Callable[[Optimizer], LRScheduler] | None = None
    """Makes what changes the learning rate after each epoch."""
    sparse: bool = False
    """The inputs hold sparse tensors: the work is counted on real copies of them."""


@dataclass(frozen=True)
class Definition:
    """A workload: its defaults, and what makes its task from the settings of a run.

    Every module of ``tasks`` has a function ``definition(name)`` that returns one. ``make`` draws
    all randomness from torch's default generator, which the caller has seeded.
    """

    defaults: Defaults
    make: Callable[[Settings], Task]
    needs_torchvision: bool = False
