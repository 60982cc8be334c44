"""What an hour costs of machines, by their device."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpuwatch.core.errors import UsageError

if TYPE_CHECKING:
    from gpuwatch.analysis.summary.summary import Summary

VARIABLE = "GPUWATCH_PRICES"


def price(text: str) -> float:
    """Parse EUR an hour."""
    if not re.fullmatch(r"\d+(\.\d+)?", text) or not float(text):
        raise argparse.ArgumentTypeError(f"invalid price {text!r}: write EUR, such as 3.20")
    return float(text)


def by_device() -> tuple[tuple[str, float], ...]:
    """Words of devices' names and EUR an hour, of the variable: ``H200=3.20, A100=1.10``.

    Raises:
        UsageError: it holds something else.
    """
    found = []
    for part in filter(str.strip, os.environ.get(VARIABLE, "").split(",")):
        word, _, value = map(str.strip, part.partition("="))
        with contextlib.suppress(argparse.ArgumentTypeError):
            if word:
                found.append((word, price(value)))
                continue
        raise UsageError(
            f"{VARIABLE} has {part.strip()!r}", "write DEVICE=EUR, such as H200=3.20,A100=1.10"
        )
    return tuple(found)


def price_of(session: Summary, prices: Sequence[tuple[str, float]]) -> float | None:
    """EUR an hour of the machine that ``session`` ran on, by the longest word that names one of its
    devices; ``None``: nobody said."""
    from gpuwatch.analysis.summary.identity import device_names

    names = " ".join(device_names(session)).casefold()
    found = [(len(word), each) for word, each in prices if word.casefold() in names]
    return max(found)[1] if found else None
