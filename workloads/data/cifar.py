"""CIFAR-10's Python batches, read without executing anything in their pickles.

A pickle can name any function and have it called. The batches need only four names, with which
numpy pickles an array. Here these names map to classes that just keep the bytes; any other name is
refused before it is looked up.
"""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .folder import broken, wrong_shape

FOLDER = "cifar-10-batches-py"
FILES = [f"data_batch_{number}" for number in range(1, 6)]
PIXELS = 3 * 32 * 32
LARGEST_FILE = 128 << 20


class ForbiddenName(pickle.UnpicklingError):
    """A pickle refers to a name that no array needs."""


class _ArrayBytes:
    """Stand-in for an array: its shape, type and bytes."""

    shape: tuple[int, ...] = ()
    dtype: Any = None
    content: Any = b""

    def __init__(self, *_: Any) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        _, self.shape, self.dtype, _, self.content = state


class _ArrayType:
    """Stand-in for a numpy data type: its short name (``u1``)."""

    def __init__(self, name: Any, *_: Any) -> None:
        self.name = name

    def __setstate__(self, state: Any) -> None:
        pass


def _latin1(text: str, encoding: str = "latin1") -> bytes:
    """Bytes as pickled by Python 3 for Python 2."""
    if encoding != "latin1":
        raise ForbiddenName(f"encoding {encoding}")
    return text.encode("latin1")


_ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _ArrayBytes,
    ("numpy._core.multiarray", "_reconstruct"): _ArrayBytes,
    ("numpy", "ndarray"): _ArrayBytes,
    ("numpy", "dtype"): _ArrayType,
    ("_codecs", "encode"): _latin1,
}


class BatchUnpickler(pickle.Unpickler):
    """Reads dictionaries, lists, numbers, text, bytes and numpy arrays only."""

    def find_class(self, module: str, name: str) -> Any:
        """The stand-in for one of numpy's names. Raises `ForbiddenName` for any other name."""
        try:
            return _ALLOWED[module, name]
        except KeyError:
            raise ForbiddenName(f"it names {module}.{name}, which no array needs") from None


def read_cifar10(folder: Path) -> tuple[Tensor, Tensor]:
    """Training images, uint8 (N, 3, 32, 32), and labels, int64 (N,), of the batches present.

    ``folder`` holds ``data_batch_1`` to ``data_batch_5`` (at least the first), or the folder
    ``cifar-10-batches-py`` with them.

    Raises:
        UsageFailure: the batches are missing, invalid, or refer to anything but arrays.
    """
    place = folder / FOLDER if (folder / FOLDER).is_dir() else folder
    paths = [place / name for name in FILES if (place / name).is_file()]
    if not paths:
        raise wrong_shape(
            folder,
            f"CIFAR-10's Python batches ({FOLDER}/data_batch_1 to 5)",
            f"fetch CIFAR-10 with --data {folder} --download",
        )
    parts = [_read_batch(path) for path in paths]
    return torch.cat([images for images, _ in parts]), torch.cat([labels for _, labels in parts])


def _read_batch(path: Path) -> tuple[Tensor, Tensor]:
    if path.stat().st_size > LARGEST_FILE:
        raise broken(path, "is far larger than a batch of CIFAR-10")
    try:
        batch = BatchUnpickler(io.BytesIO(path.read_bytes()), encoding="bytes").load()
    except ForbiddenName as error:
        raise broken(path, f"is refused, nothing in it was run: {error}") from error
    except Exception as error:  # a hostile pickle can make the reader fail in any way
        raise broken(
            path, f"is not a batch of CIFAR-10 ({type(error).__name__}: {error})"
        ) from error
    if not isinstance(batch, dict):
        raise broken(path, "is not a batch of CIFAR-10: it holds no dictionary")
    array, labels = batch.get(b"data"), batch.get(b"labels")
    content = _bytes_of(array)
    if content is None or not isinstance(labels, list) or not labels:
        raise broken(path, "is not a batch of CIFAR-10: no bytes under 'data', no list in 'labels'")
    if len(content) != PIXELS * len(labels):
        raise broken(path, f"holds {len(content)} bytes for {len(labels)} labels of {PIXELS} each")
    if not all(isinstance(label, int) and 0 <= label < 10 for label in labels):
        raise broken(path, "holds labels that are not 0 to 9")
    images = torch.frombuffer(bytearray(content), dtype=torch.uint8).view(-1, 3, 32, 32)
    return images, torch.tensor(labels)


def _bytes_of(array: Any) -> bytes | None:
    if not isinstance(array, _ArrayBytes) or not isinstance(array.dtype, _ArrayType):
        return None
    if array.dtype.name not in ("u1", b"u1") or not isinstance(array.content, bytes):
        return None
    return array.content
