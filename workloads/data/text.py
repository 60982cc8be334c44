"""Text for language models: the bytes of a file, or synthetic tokens that can be predicted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset

from ..failures import UsageFailure
from ..task import Data, Settings
from .folder import broken
from .synthetic import Repeated

LARGEST = 256 << 20
"""Bytes of a text that are read; the rest is left out."""
POOL, SAMPLES = 64, 10_000
_USED = 256
"""Tokens that synthetic text uses: as many as there are bytes."""


class Windows(Dataset[Any]):
    """A text in pieces of ``length`` bytes, each with the same piece one byte later.

    ``text`` is uint8; its bytes become the tokens ``first`` to ``first + 255``.
    """

    def __init__(self, text: Tensor, length: int, first: int) -> None:
        self._text = text
        self._length = length
        self._first = first

    def __len__(self) -> int:
        return (len(self._text) - 1) // self._length

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        if not 0 <= index < len(self):
            raise IndexError(index)
        start = index * self._length
        tokens = self._text[start : start + self._length + 1].long() + self._first
        return tokens[:-1], tokens[1:]


def read_text(path: Path, least: int) -> Tensor:
    """The bytes of a file, uint8 (N,), at most 256 MiB of them.

    Raises:
        UsageFailure: it is no file, cannot be read, or has fewer than ``least`` bytes.
    """
    if not path.is_file():
        found = "a folder" if path.is_dir() else "nothing that is a file"
        raise UsageFailure(
            f"--data {path}: expected a text file; found {found}",
            "give --data FILE.txt, or leave --data out for synthetic text",
        )
    try:
        with path.open("rb") as file:
            content = bytearray(file.read(LARGEST))
    except OSError as error:
        raise broken(path, f"cannot be read ({error.strerror})") from error
    if len(content) < least:
        raise UsageFailure(
            f"--data {path}: {len(content)} bytes are less than one sequence of {least}",
            "give a longer text, or leave --data out for synthetic text",
        )
    return torch.frombuffer(content, dtype=torch.uint8)


def synthetic_text(count: int, length: int, first: int) -> Tensor:
    """Tokens, int64 (count, length): three of four follow from the token before.

    Each of 256 tokens, from ``first`` on, has one usual successor.
    """
    successor = torch.randperm(_USED)
    usual = torch.rand(count, length) < 0.75
    tokens = torch.randint(_USED, (count, length))
    for place in range(1, length):
        followed = successor[tokens[:, place - 1]]
        tokens[:, place] = torch.where(usual[:, place], followed, tokens[:, place])
    return tokens + first


def text_data(settings: Settings, length: int, first: int) -> Data:
    """Sequences of ``length`` tokens, int64, each with the tokens that follow as the target.

    Raises:
        UsageFailure: the file of ``--data`` cannot be used.
    """
    if settings.data is None:
        tokens = synthetic_text(POOL, length + 1, first)
        dataset: Dataset[Any] = Repeated(tokens[:, :-1], tokens[:, 1:], SAMPLES)
        text = f"{SAMPLES} sequences of {length} tokens, {POOL} distinct"
        return Data("synthetic", text, SAMPLES, dataset)
    windows = Windows(read_text(settings.data, length + 1), length, first)
    text = f"{len(windows)} sequences of {length} bytes of {settings.data.name}"
    return Data("real", text, len(windows), windows, path=settings.data)
