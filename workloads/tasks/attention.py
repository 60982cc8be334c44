"""``attention``: one layer of causal attention at growing lengths, and little else beside it."""

from __future__ import annotations

from ..task import Definition
from . import transformer_lm
from .transformer_lm import Layout

LENGTHS = {"1k": 1_024, "512": 512, "2k": 2_048, "4k": 4_096, "8k": 8_192, "16k": 16_384}
LAYOUTS = {
    name: Layout("one block with a small SwiGLU", 1, 1_024, 16, 16, 64, 256, length, True)
    for name, length in LENGTHS.items()
}


def definition(name: str) -> Definition:
    """The workload."""
    return transformer_lm.definition(name, LAYOUTS)
