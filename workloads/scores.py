"""Losses and accuracies of finished steps, read in one go, off the path of the training.

Reading a number from a GPU stops its queue. So the steps' results stay where they are until the
step is known to be over; then a stream of its own computes and fetches them for many steps at
once, while the training's stream goes on.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor

TOP5_CLASSES = 5
"""The fewest classes with which a top-5 accuracy means anything."""


@dataclass(frozen=True)
class Result:
    """What a step left behind, still on its device: see `task.Scored`."""

    loss: Tensor
    scores: Tensor | None
    labels: Tensor | None


@dataclass(frozen=True)
class Score:
    """A step's loss, and the shares of right top-1 and top-5 predictions (0 to 1)."""

    loss: float
    acc1: float | None
    acc5: float | None


class ScoreReader:
    """Turns the results of finished steps into numbers."""

    def __init__(self, device: torch.device) -> None:
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None

    def read(self, results: Sequence[Result]) -> list[Score]:
        """The scores of steps, in their order. All of them must be over."""
        if not results:
            return []
        context: contextlib.AbstractContextManager[object] = contextlib.nullcontext()
        if self._stream is not None:
            context = torch.cuda.stream(self._stream)
        with context, torch.no_grad():
            losses = torch.stack([result.loss.detach() for result in results]).float().tolist()
            accuracies = accuracy(results)
        return [
            Score(loss, acc1, acc5) for loss, (acc1, acc5) in zip(losses, accuracies, strict=True)
        ]


def accuracy(results: Sequence[Result]) -> list[tuple[float | None, float | None]]:
    """Top-1 and top-5 accuracy of each step; None where they mean nothing.

    The steps share their number of classes; their numbers of samples may differ.
    """
    scores = [result.scores for result in results if result.scores is not None]
    labels = [result.labels for result in results if result.labels is not None]
    if len(scores) < len(results) or len(labels) < len(results):
        return [(None, None)] * len(results)
    sizes = [len(label) for label in labels]
    ranks = label_ranks(torch.cat(scores), torch.cat(labels))
    classes = scores[0].shape[1] if scores[0].ndim > 1 else 2
    right = torch.stack((ranks < 1, ranks < TOP5_CLASSES), 1).long().cumsum(0)
    ends = torch.tensor(sizes).cumsum(0) - 1
    totals = right[ends.to(right.device)].tolist()
    accuracies: list[tuple[float | None, float | None]] = []
    before = [0, 0]
    for size, total in zip(sizes, totals, strict=True):
        acc5 = (total[1] - before[1]) / size if classes >= TOP5_CLASSES else None
        accuracies.append(((total[0] - before[0]) / size, acc5))
        before = total
    return accuracies


def label_ranks(scores: Tensor, labels: Tensor) -> Tensor:
    """How many classes each sample's model puts before the right one.

    ``scores`` is samples x classes, or the samples' logits of the second of two classes. Of equal
    scores the lower class comes first; where scores are NaN, nothing is right.
    """
    labels = labels.long()
    if scores.ndim == 1:
        scores = torch.stack((torch.zeros_like(scores), scores), 1)
    own = scores.gather(1, labels[:, None])
    classes = torch.arange(scores.shape[1], device=scores.device)
    behind = (scores < own) | ((scores == own) & (classes >= labels[:, None]))
    return scores.shape[1] - behind.sum(1)
