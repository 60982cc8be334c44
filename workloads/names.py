"""The names of the workloads, without torch."""

from __future__ import annotations

from dataclasses import dataclass

TORCHVISION = "torchvision:"
"""Name prefix for any of torchvision's classification models."""


BATCHES = 15
"""Timed steps of the ImageNet-like workloads."""
COMMON_SIZE = 224
"""Edge of most torchvision models' images, in pixels."""
_LOW_RATE = ("alexnet", "vgg", "squeezenet")


@dataclass(frozen=True)
class Defaults:
    """Defaults of a workload's flags.

    ``batch_size`` None: the data is one batch, and ``--batch-size`` is refused. ``steps`` None: the
    epochs decide. ``image_size`` None: the image size is fixed.
    """

    batch_size: int | None
    epochs: int
    lr: float
    steps: int | None = None
    workers: int = 0
    image_size: int | None = None


@dataclass(frozen=True)
class Entry:
    """A built-in workload: a module of ``tasks``, and a one-line description."""

    module: str
    summary: str
    defaults: Defaults


def _pictures(model: str) -> Defaults:
    rate = 0.01 if model.startswith(_LOW_RATE) else 0.1
    return Defaults(64, epochs=90, lr=rate, steps=BATCHES, workers=2, image_size=COMMON_SIZE)


BUILT_IN: dict[str, Entry] = {
    "mnist-cnn": Entry(
        "mnist_cnn",
        "small convolutional network on 512 MNIST digits",
        Defaults(batch_size=64, epochs=1, lr=1.0, workers=1),
    ),
    "sentiment-rnn": Entry(
        "sentiment_rnn",
        "recurrent network on 1,000 film reviews",
        Defaults(batch_size=64, epochs=1, lr=1e-3),
    ),
    "cifar10-cnn": Entry(
        "cifar10_cnn",
        "small convolutional network on CIFAR-10",
        Defaults(batch_size=32, epochs=3, lr=1e-3),
    ),
    "gcn": Entry(
        "gcn",
        "graph convolutional network on the Cora citations, full batch",
        Defaults(batch_size=None, epochs=200, lr=0.01),
    ),
    "resnet18": Entry("imagenet", "ResNet-18 on ImageNet-like images", _pictures("resnet18")),
    "resnet50": Entry("imagenet", "ResNet-50 on ImageNet-like images", _pictures("resnet50")),
    "alexnet": Entry("imagenet", "AlexNet on ImageNet-like images", _pictures("alexnet")),
}


_OF_TORCHVISION = """
    convnext_base convnext_large convnext_small convnext_tiny densenet121 densenet161
    densenet169 densenet201 efficientnet_b0 efficientnet_b1 efficientnet_b2 efficientnet_b3
    efficientnet_b4 efficientnet_b5 efficientnet_b6 efficientnet_b7 efficientnet_v2_l
    efficientnet_v2_m efficientnet_v2_s googlenet inception_v3 maxvit_t mnasnet0_5 mnasnet0_75
    mnasnet1_0 mnasnet1_3 mobilenet_v2 mobilenet_v3_large mobilenet_v3_small regnet_x_16gf
    regnet_x_1_6gf regnet_x_32gf regnet_x_3_2gf regnet_x_400mf regnet_x_800mf regnet_x_8gf
    regnet_y_128gf regnet_y_16gf regnet_y_1_6gf regnet_y_32gf regnet_y_3_2gf regnet_y_400mf
    regnet_y_800mf regnet_y_8gf resnet101 resnet152 resnet34 resnext101_32x8d resnext101_64x4d
    resnext50_32x4d shufflenet_v2_x0_5 shufflenet_v2_x1_0 shufflenet_v2_x1_5 shufflenet_v2_x2_0
    squeezenet1_0 squeezenet1_1 swin_b swin_s swin_t swin_v2_b swin_v2_s swin_v2_t vgg11
    vgg11_bn vgg13 vgg13_bn vgg16 vgg16_bn vgg19 vgg19_bn vit_b_16 vit_b_32 vit_h_14 vit_l_16
    vit_l_32 wide_resnet101_2 wide_resnet50_2
"""
"""torchvision's models that are not built in; a run's torchvision may have more."""


def known() -> dict[str, str]:
    """One-line descriptions of the built-in workloads by name."""
    return {name: entry.summary for name, entry in BUILT_IN.items()}


def defaults(name: str) -> Defaults:
    """Defaults of a workload that `check` accepts.

    ``torchvision:MODEL`` has the common ``image_size`` here: only torchvision knows its own.
    """
    entry = BUILT_IN.get(name)
    return entry.defaults if entry else _pictures(name.removeprefix(TORCHVISION))


def suggest(name: str) -> list[str]:
    """Names close to ``name``: an almost identical torchvision model first, then up to three
    built-in ones, the closest first."""
    from difflib import get_close_matches

    models = get_close_matches(name.lower(), _OF_TORCHVISION.split(), n=1, cutoff=0.9)
    close = get_close_matches(name.lower(), BUILT_IN, n=3, cutoff=0.5)
    return [*(TORCHVISION + model for model in models), *close]


def check(name: str) -> str:
    """Return ``name`` if it is a built-in workload or has the form ``torchvision:MODEL``.

    Only the environment's torchvision knows whether it has that model.

    Raises:
        ValueError: any other name; the message suggests close names.
    """
    if name in BUILT_IN or (name.startswith(TORCHVISION) and len(name) > len(TORCHVISION)):
        return name
    close = suggest(name)
    hint = f"did you mean {' or '.join(close)}?" if close else f"known: {', '.join(BUILT_IN)}"
    raise ValueError(f"no workload is named {name!r}: {hint}; or {TORCHVISION}MODEL")


def module_of(name: str) -> str:
    """The module of ``tasks`` that defines a workload that `check` accepts."""
    return BUILT_IN[name].module if name in BUILT_IN else "imagenet"
