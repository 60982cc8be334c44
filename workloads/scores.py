"""Losses and accuracies of finished steps, read in batches beside the training.

Reading a number from a GPU stalls its queue. So the steps' results stay there until the step is
known to be over. Then a separate stream computes and fetches them for many steps at once, while
the training's stream continues.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

TOP5_CLASSES = 5
"""The fewest classes for which a top-5 accuracy makes sense."""


class Result(NamedTuple):
    """A step's result, detached and still on its device; see `task.Scored`.

    A step of inference has no loss.
    """

    loss: Tensor | None
    scores: Tensor | None
    labels: Tensor | None


class Score(NamedTuple):
    """A step's loss, if any, and the shares of correct top-1 and top-5 predictions (0 to 1)."""

    loss: float | None
    acc1: float | None
    acc5: float | None


class ScoreReader:
    """Converts the results of finished steps to numbers."""

    def __init__(self, device: torch.device) -> None:
        self._stream: Any = None
        if device.type == "cuda":
            self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def read(self, results: Sequence[Result]) -> list[Score]:
        """The scores of steps, in order. All steps must be over."""
        if not results:
            return []
        context: contextlib.AbstractContextManager[object] = contextlib.nullcontext()
        if self._stream is not None:
            context = torch.cuda.stream(self._stream)
        with context, torch.no_grad():
            found = [result.loss for result in results if result.loss is not None]
            losses = torch.stack(found).tolist() if found else [None] * len(results)
            accuracies = accuracy(results)
        return [
            Score(loss, acc1, acc5) for loss, (acc1, acc5) in zip(losses, accuracies, strict=True)
        ]


def accuracy(results: Sequence[Result]) -> list[tuple[float | None, float | None]]:
    """Top-1 and top-5 accuracy of each step; None where it makes no sense.

    All steps have the same number of classes; their numbers of samples may differ.
    """
    scores = [result.scores for result in results if result.scores is not None]
    labels = [result.labels for result in results if result.labels is not None]
    if len(scores) < len(results) or len(labels) < len(results):
        return [(None, None)] * len(results)
    sizes = [len(label) for label in labels]
    places = hits(torch.cat(scores), torch.cat(labels))
    if len(set(sizes)) == 1:
        totals = places.view(len(sizes), sizes[0], -1).sum(1).tolist()
    else:
        totals = torch.stack([part.sum(0) for part in torch.split(places, sizes)]).tolist()
    top5 = scores[0].ndim > 1 and scores[0].shape[1] >= TOP5_CLASSES
    return [
        (total[0] / size, sum(total) / size if top5 else None)
        for size, total in zip(sizes, totals, strict=True)
    ]


def hits(scores: Tensor, labels: Tensor) -> Tensor:
    """Whether the correct class is the first, second, ... fifth prediction of a sample.

    ``scores`` is samples x classes, or for two classes each sample's logit of the second; the
    result is bool, samples x min(5, classes), or samples x 1.
    """
    if scores.ndim == 1:
        return ((scores > 0) == (labels > 0)).unsqueeze(1)
    best = scores.topk(min(TOP5_CLASSES, scores.shape[1])).indices
    return best == labels.unsqueeze(1)
