"""Images with one folder per class: an ImageFolder tree, or tiny-imagenet-200 as distributed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch.utils.data import Dataset

from .folder import wrong_shape

MEAN = (0.485, 0.456, 0.406)
DEVIATION = (0.229, 0.224, 0.225)


def read_pictures(folder: Path, size: int, classes: int) -> tuple[Dataset[Any], int, str]:
    """The training images, their number, and a description.

    ``folder`` has a folder per class, or a ``train`` with them; images may be at any depth below a
    class's folder (tiny-imagenet-200 has ``train/CLASS/images/*.JPEG``). Each image is randomly
    cropped to ``size`` x ``size``, randomly mirrored and normalised, as in torch's ImageNet
    example.

    Raises:
        UsageFailure: there are no such images, or more classes than the model has.
    """
    from torchvision import datasets, transforms

    root = folder / "train" if (folder / "train").is_dir() else folder
    expected = "a folder of images for each class, in it or in its train/"
    hint = "give an ImageNet-like folder or an unpacked tiny-imagenet-200"
    augment = transforms.Compose(
        [
            transforms.RandomResizedCrop(size),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize(MEAN, DEVIATION),
        ]
    )
    try:
        dataset = datasets.ImageFolder(str(root), augment)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise wrong_shape(folder, expected, hint) from error
    if len(dataset.classes) > classes:
        raise wrong_shape(folder, f"at most {classes} classes, not {len(dataset.classes)}", hint)
    name = "tiny-imagenet-200" if (folder / "wnids.txt").is_file() else "image folder"
    text = (
        f"{name}: {len(dataset)} images, {len(dataset.classes)} classes, cropped to {size} x {size}"
    )
    return dataset, len(dataset), text
