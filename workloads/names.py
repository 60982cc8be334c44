"""The names of the workloads, without torch."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

TORCHVISION = "torchvision:"
"""Name prefix for any of torchvision's classification models."""


BATCHES = 15
"""Timed steps of the ImageNet-like workloads."""
COMMON_SIZE = 224
"""Edge of most torchvision models' images, in pixels."""
_LOW_RATE = ("alexnet", "vgg", "squeezenet")


@dataclass(frozen=True)
class Defaults:
    """Defaults of a workload's flags, and which of them it has.

    ``batch_size`` None: the data is one batch, and ``--batch-size`` is refused. ``steps`` None: the
    epochs decide. ``image_size`` None: the image size is fixed. ``sizes``: those of the model, the
    default first; empty: it has one. ``checkpointing``: its blocks can be computed again.
    ``sparse``: it has sparse products, which are in float32 alone and not compiled. ``text``:
    ``--data`` is a text, not a folder. ``float8``: its linear layers can be in fp8. ``generates``:
    with ``--mode infer`` it generates tokens. ``convolves``: images, for ``--memory-format``.
    ``downloads``: it can fetch its data. ``routes``: which layers a token passes depends on it.
    ``attends``: it has attention, for ``--attention``.
    """

    batch_size: int | None
    epochs: int
    lr: float
    steps: int | None = None
    workers: int = 0
    image_size: int | None = None
    sizes: tuple[str, ...] = ()
    checkpointing: bool = False
    sparse: bool = False
    text: bool = False
    generates: bool = False
    float8: bool = False
    convolves: bool = True
    downloads: bool = False
    routes: bool = False
    attends: bool = False


@dataclass(frozen=True)
class Entry:
    """A built-in workload: a module of ``tasks``, and a one-line description."""

    module: str
    summary: str
    defaults: Defaults


def _pictures(model: str) -> Defaults:
    rate = 0.01 if model.startswith(_LOW_RATE) else 0.1
    return Defaults(64, 90, rate, BATCHES, workers=2, image_size=COMMON_SIZE)


def _language(*sizes: str, batch_size: int = 8, lr: float = 3e-4, **more: bool) -> Defaults:
    flags = {"text": True, "attends": True, "convolves": False, **more}
    return Defaults(batch_size, 1, lr, BATCHES, sizes=sizes, **flags)


BUILT_IN: dict[str, Entry] = {
    "mnist-cnn": Entry(
        "mnist_cnn",
        "small convolutional network on 512 MNIST digits",
        Defaults(64, epochs=1, lr=1.0, workers=1, downloads=True),
    ),
    "sentiment-rnn": Entry(
        "sentiment",
        "recurrent network on 1,000 film reviews",
        Defaults(64, epochs=1, lr=1e-3, convolves=False),
    ),
    "cifar10-cnn": Entry(
        "cifar10_cnn",
        "small convolutional network on CIFAR-10",
        Defaults(32, epochs=3, lr=1e-3, downloads=True),
    ),
    "gcn": Entry(
        "gcn",
        "graph convolutional network on the Cora citations, full batch",
        Defaults(batch_size=None, epochs=200, lr=0.01, sparse=True, convolves=False),
    ),
    "sentiment-lstm": Entry(
        "sentiment",
        "LSTM on 1,000 film reviews",
        Defaults(32, epochs=1, lr=1e-3, convolves=False),
    ),
    "sentiment-gru": Entry(
        "sentiment",
        "GRU on 1,000 film reviews",
        Defaults(32, epochs=1, lr=1e-3, convolves=False),
    ),
    "transformer-lm": Entry(
        "transformer_lm",
        "decoder like Llama's, 260 k to 7 B parameters",
        _language(
            *("15m", "260k", "42m", "110m", "1b", "3b", "7b"),
            checkpointing=True,
            generates=True,
            float8=True,
        ),
    ),
    "moe-lm": Entry(
        "transformer_lm",
        "decoder with a mixture of experts, 1.3 M to 47 B parameters",
        _language("43m", "1m", "1b", "7b", "47b", checkpointing=True, generates=True, routes=True),
    ),
    "bert": Entry(
        "bert",
        "BERT's encoder, which predicts masked tokens",
        _language(
            *("small", "tiny", "mini", "medium", "base", "large"), lr=1e-4, checkpointing=True
        ),
    ),
    "attention": Entry(
        "transformer_lm",
        "one layer of causal attention, 512 to 16,384 tokens",
        _language("1k", "512", "2k", "4k", "8k", "16k", batch_size=1),
    ),
    "unet-diffusion": Entry(
        "unet_diffusion",
        "DDPM's U-Net, which predicts the noise of CIFAR-10's images",
        Defaults(
            *(8, 1, 2e-4, BATCHES),
            sizes=("small", "ddpm"),
            checkpointing=True,
            downloads=True,
            attends=True,
        ),
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


GROUP = "gpuwatch.workloads"
"""Entry point group of workloads of other packages: NAME = MODULE:DEFINITION."""
_IN_A_FILE = re.compile(r"(.+\.py):([A-Za-z_]\w*)")


def program(name: str) -> str | None:
    """Where a workload that is not built in is defined, ``/PATH/mine.py:NAME``; else None.

    ``name`` is in that form, or an entry point's name. Nothing of the package is imported.
    """
    if name in BUILT_IN or name.startswith(TORCHVISION):
        return None
    if match := _IN_A_FILE.fullmatch(name):
        return f"{Path(match[1]).expanduser().absolute()}:{match[2]}"
    from importlib.metadata import entry_points
    from importlib.util import find_spec

    for entry in entry_points(group=GROUP, name=name):
        first, *rest = entry.module.split(".")
        spec = find_spec(first)
        if spec is None or spec.origin is None:
            continue
        path = Path(spec.origin)
        if rest:
            path = path.parent.joinpath(*rest)
            path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        return f"{path}:{entry.attr}"
    return None


def short(name: str) -> str:
    """A workload's name for people: of one in a file without the folder, ``mine.py:NAME``."""
    match = _IN_A_FILE.fullmatch(name)
    return f"{Path(match[1]).name}:{match[2]}" if match else name


def defaults(name: str) -> Defaults:
    """Defaults of a built-in workload, or one of torchvision's.

    ``torchvision:MODEL`` has the common ``image_size`` here: only torchvision knows its own.
    """
    entry = BUILT_IN.get(name)
    return entry.defaults if entry else _pictures(name.removeprefix(TORCHVISION))


def suggest(name: str) -> list[str]:
    """Names close to ``name``: an almost identical torchvision model first, then up to three
    built-in ones, the closest first."""
    from difflib import get_close_matches

    models = get_close_matches(name.lower(), _OF_TORCHVISION.split(), n=1, cutoff=0.9)
    close = get_close_matches(name.lower(), BUILT_IN, n=3)
    return [*(TORCHVISION + model for model in models), *close]


def check(name: str) -> str:
    """Return ``name`` if it is a built-in workload, has the form ``torchvision:MODEL`` or
    ``FILE.py:NAME``, or is an entry point's.

    Only the environment's torchvision knows whether it has that model, and only the file's own
    torch whether it defines that name.

    Raises:
        ValueError: any other name, or there is no such file; the message suggests close names.
    """
    if name in BUILT_IN or (name.startswith(TORCHVISION) and len(name) > len(TORCHVISION)):
        return name
    if (place := program(name)) is not None:
        path = place.rpartition(":")[0]
        if not Path(path).is_file():
            raise ValueError(f"the workload {name!r} is defined in {path}, and there is no file")
        return name
    close = suggest(name)
    hint = f"known: {', '.join(BUILT_IN)} and {TORCHVISION}MODEL"
    if close:
        hint = f"did you mean {' or '.join(close)}?"
    raise ValueError(f"no workload is named {name!r}: {hint}")


def module_of(name: str) -> str:
    """The module of ``tasks`` that defines a workload that `check` accepts."""
    if name in BUILT_IN:
        return BUILT_IN[name].module
    return "imagenet" if name.startswith(TORCHVISION) else "foreign"
