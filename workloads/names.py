"""The names of the workloads, without torch."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

TORCHVISION = "torchvision:"
"""Prefix of a name that asks for any of torchvision's classification models."""


@dataclass(frozen=True)
class Entry:
    """Where a built-in workload is defined: a module of ``tasks``, and what it is in one line."""

    module: str
    summary: str


BUILT_IN: dict[str, Entry] = {
    "mnist-cnn": Entry("mnist_cnn", "small convolutional network on 512 MNIST digits"),
    "sentiment-rnn": Entry("sentiment_rnn", "recurrent network on 1,000 film reviews"),
    "cifar10-cnn": Entry("cifar10_cnn", "small convolutional network on CIFAR-10"),
    "gcn": Entry("gcn", "graph convolutional network on the Cora citations, full batch"),
    "resnet18": Entry("imagenet", "ResNet-18 on ImageNet-like images"),
    "resnet50": Entry("imagenet", "ResNet-50 on ImageNet-like images"),
    "alexnet": Entry("imagenet", "AlexNet on ImageNet-like images"),
}


def known() -> dict[str, str]:
    """Every built-in workload's name with what it is, in one line."""
    return {name: entry.summary for name, entry in BUILT_IN.items()}


def suggest(name: str) -> list[str]:
    """Built-in names close to ``name``, the closest first; at most three."""
    return difflib.get_close_matches(name.lower(), BUILT_IN, n=3, cutoff=0.5)


def check(name: str) -> str:
    """``name``, if it is a built-in workload or has the form ``torchvision:MODEL``.

    Whether torchvision has that model is known only where torchvision is: in the environment.

    Raises:
        ValueError: for any other name, with a sentence that says which names are close.
    """
    if name in BUILT_IN or (name.startswith(TORCHVISION) and len(name) > len(TORCHVISION)):
        return name
    close = suggest(name)
    hint = f"did you mean {' or '.join(close)}?" if close else f"known: {', '.join(BUILT_IN)}"
    raise ValueError(f"no workload is named {name!r}: {hint}; or {TORCHVISION}MODEL")


def module_of(name: str) -> str:
    """The module of ``tasks`` that defines a workload which `check` accepts."""
    return BUILT_IN[name].module if name in BUILT_IN else "imagenet"
