"""MNIST's IDX files: a magic number, the sizes, the bytes (format: see MNIST's own page)."""

from __future__ import annotations

import gzip
import struct
import zlib
from math import prod
from pathlib import Path

import torch
from torch import Tensor

from .folder import broken, wrong_shape

UNSIGNED_BYTE = 8
IMAGES = "train-images-idx3-ubyte"
LABELS = "train-labels-idx1-ubyte"
SIDE = 28


def read_mnist(folder: Path, count: int) -> tuple[Tensor, Tensor]:
    """The first ``count`` images, uint8 (count, 1, 28, 28), and their labels, int64 (count,).

    The two files are in ``folder`` or in its ``MNIST/raw``, either plain or as ``.gz``.

    Raises:
        UsageFailure: the files are missing, or are not MNIST's.
    """
    images_path, labels_path = _find(folder, IMAGES), _find(folder, LABELS)
    images, labels = read_idx(images_path, count), read_idx(labels_path, count)
    if images.shape[1:] != (SIDE, SIDE):
        raise broken(images_path, f"holds images of shape {list(images.shape[1:])}, not 28 x 28")
    if labels.ndim != 1 or len(labels) != len(images) or not len(labels):
        raise broken(labels_path, f"does not hold one label for each of the {len(images)} images")
    if int(labels.max()) > 9:
        raise broken(labels_path, "holds labels that are not digits")
    return images[:, None], labels.long()


def read_idx(path: Path, count: int) -> Tensor:
    """The first ``count`` items of an IDX file of unsigned bytes, plain or gzip: (count, ...).

    Raises:
        UsageFailure: the file has another format, or ends early.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            zeros, kind, dimensions = struct.unpack(">HBB", file.read(4))
            if zeros or kind != UNSIGNED_BYTE or not 1 <= dimensions <= 3:
                raise broken(path, "is not an IDX file of unsigned bytes")
            shape = struct.unpack(f">{dimensions}I", file.read(4 * dimensions))
            items = min(count, shape[0])
            size = items * prod(shape[1:])
            if size > 1 << 30:
                raise broken(path, f"claims items of shape {list(shape[1:])}")
            content = file.read(size)
    except (OSError, EOFError, struct.error, zlib.error) as error:
        raise broken(path, f"cannot be read ({error})") from error
    if len(content) < size or not size:
        raise broken(path, f"ends early: {len(content)} of {size} bytes")
    return torch.frombuffer(bytearray(content), dtype=torch.uint8).view(items, *shape[1:])


def _find(folder: Path, name: str) -> Path:
    for place in (folder, folder / "MNIST" / "raw"):
        for path in (place / name, place / f"{name}.gz"):
            if path.is_file():
                return path
    raise wrong_shape(
        folder,
        f"{IMAGES} and {LABELS} (or .gz) in it or in its MNIST/raw",
        f"fetch MNIST with --data {folder} --download",
    )
