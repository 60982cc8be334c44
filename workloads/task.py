"""The parts of a workload for the training loop: settings, data and task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from .names import Defaults

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.optim import Optimizer
    from torch.optim.lr_scheduler import LRScheduler
    from torch.utils.data import Dataset

Scored = tuple[torch.Tensor, "torch.Tensor | None", "torch.Tensor | None"]
"""Loss (scalar); scores, samples x classes or, for two classes, each sample's logit; labels."""


@dataclass(frozen=True)
class Settings:
    """The settings of one run, with every default filled in."""

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
    nproc: int = 1
    size: str | None = None
    mode: str = "train"
    attention: str = "auto"
    compile: str = "none"
    checkpointing: bool = False
    accumulate: int = 1
    memory_format: str = "contiguous"


@dataclass(frozen=True)
class Data:
    """Training samples, with a description for readers of the run.

    ``dataset`` returns pairs of one sample's input and target. ``batch`` instead is all data as one
    batch of inputs and target, which is moved to the device once.
    """

    kind: str
    """``synthetic`` or ``real``."""
    text: str
    samples: int
    dataset: Dataset[Any] | None = None
    batch: tuple[tuple[Tensor, ...], Tensor] | None = None
    path: Path | None = None


@dataclass(frozen=True)
class Generation:
    """How a language model infers: tokens of each prompt, and tokens generated after it.

    The model has a method ``cache(samples, length)``, and called with tokens and that cache it
    returns the logits after the last token, (samples, 1, vocabulary).
    """

    prompt: int
    new: int


def predict(model: nn.Module, inputs: tuple[Tensor, ...]) -> Any:
    """Call the model with the inputs."""
    return model(*inputs)


@dataclass(frozen=True)
class Task:
    """A model and its training."""

    model: nn.Module
    text: str
    """One-line description of the model."""
    data: Data
    objective: Callable[[nn.Module, tuple[Tensor, ...], Tensor], Scored]
    optimizer: Callable[..., Optimizer]
    """Of the parameters; with ``fused=True`` on a GPU, where it takes that."""
    scheduler: Callable[[Optimizer], LRScheduler] | None = None
    """Creates the scheduler that changes the learning rate after each epoch."""
    predict: Callable[[nn.Module, tuple[Tensor, ...]], Any] = predict
    """A step of inference: from the inputs of a batch to anything, without a loss."""
    generation: Generation | None = None
    """For ``--mode infer``: generate tokens, instead of ``predict``."""
    sparse: bool = False
    """Whether inputs contain sparse tensors, so that work is counted on real copies."""


class Extent(NamedTuple):
    """How large a model is: its parameters, and numbers in the cache of a sample's generation."""

    parameters: int
    cache: int = 0


@dataclass(frozen=True)
class Definition:
    """A workload: its defaults, and the function that creates its task for a run's settings.

    Every module of ``tasks`` has a function ``definition(name)`` that returns one. ``make`` takes
    all randomness from torch's default generator, which the caller has seeded. ``extent`` is known
    by size before the model is made, which an Adam trains: one too large is refused.
    """

    defaults: Defaults
    make: Callable[[Settings], Task]
    extent: Callable[[str], Extent] | None = None
