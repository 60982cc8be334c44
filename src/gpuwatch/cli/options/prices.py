"""What an hour costs of machines, by their device."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from gpuwatch.analysis.summary.identity import device_names
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.core.errors import UsageError

VARIABLE = "GPUWATCH_PRICES"
_PRICE = re.compile(r"\d+(\.\d+)?")


def by_device() -> tuple[tuple[str, float], ...]:
    """Words of devices' names and EUR an hour, of the variable: ``H200=3.20, A100=1.10``.

    Raises:
        UsageError: it holds something else.
    """
    found = []
    for part in filter(str.strip, os.environ.get(VARIABLE, "").split(",")):
        word, _, price = part.partition("=")
        if not word.strip() or not _PRICE.fullmatch(price.strip()) or not float(price):
            raise UsageError(
                f"{VARIABLE} has {part.strip()!r}", "write DEVICE=EUR, such as H200=3.20,A100=1.10"
            )
        found.append((word.strip(), float(price)))
    return tuple(found)


def price_of(session: Summary, prices: Sequence[tuple[str, float]]) -> float | None:
    """EUR an hour of the machine that ``session`` ran on, by the longest word that names one of its
    devices; ``None``: nobody said."""
    names = " ".join(device_names(session)).casefold()
    found = [(len(word), price) for word, price in prices if word.casefold() in names]
    return max(found)[1] if found else None
