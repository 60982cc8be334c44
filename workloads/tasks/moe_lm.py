"""``moe-lm``: the decoder of ``transformer-lm`` with a mixture of experts in each block."""

from __future__ import annotations

from ..task import Definition
from . import transformer_lm
from .transformer_lm import Layout

LAYOUTS = {
    "43m": Layout("stories15M, with 8 experts", 6, 288, 6, 6, 768, 32_000, 256, True, 8, 2),
    "1m": Layout("stories260K, with 8 experts", 5, 64, 8, 4, 172, 512, 512, True, 8, 2),
    "1b": Layout("Granite 3.0 1B-A400M", 24, 1_024, 16, 8, 512, 49_155, 4_096, True, 32, 8),
    "7b": Layout("OLMoE 1B-7B", 16, 2_048, 16, 16, 1_024, 50_304, 4_096, False, 64, 8),
    "47b": Layout("Mixtral 8x7B", 32, 4_096, 32, 8, 14_336, 32_000, 4_096, False, 8, 2),
}
"""Sizes by all their parameters; of each ``Layout.active`` work on a token."""


def definition(name: str) -> Definition:
    """The workload."""
    return transformer_lm.definition(name, LAYOUTS)
