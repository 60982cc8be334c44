"""Synthetic data with the real data's shapes, cheap to make and reproducible from the seed.

Samples of one class are alike, so a falling loss shows that training works. All randomness comes
from torch's default generator.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset


class Repeated(Dataset[Any]):
    """The requested number of samples, from a smaller pool that repeats.

    ``inputs`` and ``targets`` are the pool; integer inputs are pixels (0 to 255) and are returned
    in float32 from -1 to 1.
    """

    def __init__(self, inputs: Tensor, targets: Tensor, samples: int | None = None) -> None:
        self._inputs = inputs
        self._targets = targets
        self._samples = len(inputs) if samples is None else samples

    def __len__(self) -> int:
        return self._samples

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        if not 0 <= index < self._samples:
            raise IndexError(index)
        place = index % len(self._inputs)
        sample = self._inputs[place]
        if sample.dtype == torch.uint8:
            sample = sample.float().mul_(2 / 255).sub_(1)
        return sample, self._targets[place]


def images(count: int, channels: int, size: int, classes: int) -> tuple[Tensor, Tensor]:
    """Pixels, uint8 (count, channels, size, size), and labels, int64 (count,).

    Each image is its class's coarse pattern of 4 x 4 patches plus noise.
    """
    labels = torch.randint(classes, (count,))
    patterns = torch.rand(classes, channels, 4, 4)
    coarse = torch.nn.functional.interpolate(patterns[labels], size=(size, size))
    noise = torch.rand(count, channels, size, size)
    return (coarse.mul_(0.5).add_(noise, alpha=0.5) * 255).to(torch.uint8), labels


def reviews(count: int, length: int, vocabulary: int) -> tuple[Tensor, Tensor]:
    """Tokens, int64 (count, length), and sentiments, float32 (count,), half of them 1.

    Token 0 pads on the left, 1 is the unknown word; each sentiment prefers one half of the words.
    """
    sentiments = torch.arange(count) % 2
    words = torch.randint(2, vocabulary // 2 + 1, (count, length))
    leaning = torch.rand(count, length) < 0.75
    upper = leaning == (sentiments == 1)[:, None]
    tokens = words + upper * (vocabulary // 2)
    padding = torch.randint(0, length // 2, (count, 1))
    tokens[torch.arange(length)[None] < padding] = 0
    return tokens, sentiments.float()


def graph(
    nodes: int, edges: int, features: int, classes: int, words: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Features, float32 0/1 (nodes, features); edges, int64 (2, edges); labels, int64 (nodes,).

    Each node has about ``words`` features, most of them its class's own. Four out of five edges
    join nodes of one class. There are no duplicate edges, in either direction, and no self-loops.
    """
    labels = torch.randint(classes, (nodes,))
    chance = torch.full((classes, features), 0.5 * words / features)
    own_features = torch.arange(features)[None] % classes == torch.arange(classes)[:, None]
    chance[own_features] = 0.5 * words * classes / features
    x = torch.bernoulli(chance[labels])
    order = labels.argsort()
    place = order.argsort()
    unique = torch.empty(2, 0, dtype=torch.long)
    while unique.shape[1] < edges:
        first = torch.randint(nodes, (2 * edges,))
        near = order[(place[first] + torch.randint(1, 40, (2 * edges,))) % nodes]
        other = torch.where(torch.rand(2 * edges) < 0.8, near, torch.randint(nodes, (2 * edges,)))
        pairs = torch.stack((torch.minimum(first, other), torch.maximum(first, other)))
        unique = torch.unique(torch.cat((unique, pairs[:, pairs[0] != pairs[1]]), 1), dim=1)
    return x, unique[:, torch.randperm(unique.shape[1])[:edges]], labels
