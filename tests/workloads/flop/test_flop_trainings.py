"""FLOP and MFU of published trainings of language models, from our counter and our peaks.

Models are made and counted on the ``meta`` device with one layer and with two, from which any
number of layers follows, a sequence at a time: FLOP are proportional to sequences. What is
published has two or three digits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn
from torch.nn.functional import gelu, scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint, set_checkpoint_early_stop

from gpuwatch.analysis.hardware.efficiency import Efficiency
from gpuwatch.workloads.flop.counting import count_step
from gpuwatch.workloads.tasks.transformer_lm import Decoder, Layout, objective
from tests.analysis.sessions import CPU, summary

pytestmark = pytest.mark.torch

ONE_PERCENT = 0.01
LENGTH, VOCABULARY = 2_048, 51_200
"""Of all of Megatron-LM's models."""
A100 = {"compute.capability": "8.0", "core.count": 6_912, "clock.sm.max": 1.41e9}


class GptBlock(nn.Module):
    """Megatron-LM's: (N, length, width) to the same."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Any) -> Any:
        samples, length, width = x.shape
        parts = self.qkv(self.norms[0](x)).view(samples, length, 3, self.heads, -1)
        query, key, value = parts.transpose(1, 3).unbind(2)
        attended = scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(samples, length, width))
        return x + self.down(gelu(self.up(self.norms[1](x))))


class Gpt(nn.Module):
    """Tokens, int64 (N, length), to logits; the embedding is the last layer too, and every block
    is computed again in the backward pass."""

    def __init__(self, layers: int, width: int, heads: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, width)
        self.places = nn.Embedding(LENGTH, width)
        self.blocks = nn.ModuleList(GptBlock(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens: Any) -> Any:
        x = self.tokens(tokens) + self.places.weight
        with set_checkpoint_early_stop(False):  # Megatron-LM computes all of a block again
            for block in self.blocks:
                x = checkpoint(block, x, use_reentrant=False)
        return self.norm(x) @ self.tokens.weight.T


@dataclass(frozen=True)
class Counted:
    """Parameters of a model, and FLOP of a step of one sequence."""

    parameters: int
    model: int
    again: int
    pairs: int
    """Of the model's, those of products of tokens with each other."""


def counted(make: Callable[[int], nn.Module], layers: int, length: int) -> Counted:
    """A model of ``layers``, from those of one and two."""
    one, two = (_counted(make, few, length) for few in (1, 2))
    return Counted(*(a + (layers - 1) * (b - a) for a, b in zip(one, two, strict=True)))


def _counted(make: Callable[[int], nn.Module], layers: int, length: int) -> tuple[int, ...]:
    with torch.device("meta"):
        model, text = make(layers), torch.zeros(1, length, dtype=torch.long)
    work = count_step(model, (text,), text, objective, lambda of: torch.optim.SGD(of, lr=0.1))
    pairs = sum(each["flop"] or 0 for each in work.operators if each["name"] == "aten.bmm")
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return parameters, work.flop_per_step, work.flop_recomputed_per_step, pairs


@cache
def gpt(layers: int, width: int, heads: int) -> Counted:
    return counted(lambda few: Gpt(few, width, heads), layers, LENGTH)


def efficiency(folder: Path, name: str, flop: float, seconds: float) -> Efficiency:
    """Of a run in bfloat16 on one A100 whose step has ``flop`` and takes ``seconds``."""
    gpu = ("gpu0", "gpu", f"NVIDIA {name}", "GPU-1", A100)
    count = {"flop_per_step": round(flop)}
    path = folder / "a.gpuwatch"
    return summary(path, devices=(gpu, CPU), count=count, step_seconds=seconds).efficiency


MEGATRON = [
    (1.7, 24, 2_304, 24, 137, 44),
    (3.6, 32, 3_072, 30, 138, 44),
    (7.5, 32, 4_096, 36, 142, 46),
    (18.4, 48, 6_144, 40, 135, 43),
    (39.1, 64, 8_192, 48, 138, 44),
    (76.1, 80, 10_240, 60, 140, 45),
    (145.6, 96, 12_288, 80, 148, 47),
    (310.1, 128, 16_384, 96, 155, 50),
    (529.6, 128, 20_480, 105, 163, 52),
    (1008.0, 160, 25_600, 128, 163, 52),
]
"""Billions of parameters, heads, width, layers; TFLOP/s of one A100, and per cent of its peak:
Narayanan et al., arXiv:2104.04473, table 1."""


@pytest.mark.parametrize(("billions", "heads", "width", "layers", "tera", "share"), MEGATRON)
def test_megatrons_models_take_the_flop_of_its_formula_which_counts_recomputation(
    tmp_path: Path, billions: float, heads: int, width: int, layers: int, tera: int, share: int
) -> None:
    work = gpt(layers, width, heads)
    assert work.parameters / 1e9 == pytest.approx(billions, abs=0.06)
    attention, logits = LENGTH / (6 * width), VOCABULARY / (16 * layers * width)
    formula = 96 * LENGTH * layers * width**2 * (1 + attention + logits)  # its equation 3
    assert work.model + work.again == pytest.approx(formula, rel=ONE_PERCENT)
    found = efficiency(tmp_path, "A100-SXM4-80GB", tera * 1e12, 1.0)
    assert found.mfu.value is not None and round(100 * found.mfu.value) == share


ITERATIONS = [
    (64, 6_144, 48, 4, 8, 1.10, 41.5),
    (96, 12_288, 96, 64, 64, 13.75, 51.4),
    (128, 20_480, 105, 280, 280, 37.83, 56.0),
    (160, 25_600, 128, 512, 512, 71.49, 56.3),
]
"""Heads, width, layers, sequences in a step, A100s, seconds of a step, MFU in per cent: Korthikanti
et al., arXiv:2205.05198, table 5 (22, 175, 530 and 1,000 billion parameters, present work)."""


@pytest.mark.parametrize(
    ("heads", "width", "layers", "batch", "gpus", "seconds", "mfu"), ITERATIONS
)
def test_mfu_of_gpt_is_the_published_one(
    tmp_path: Path,
    heads: int,
    width: int,
    layers: int,
    batch: int,
    gpus: int,
    seconds: float,
    mfu: float,
) -> None:
    flop = gpt(layers, width, heads).model * batch / gpus
    found = efficiency(tmp_path, "A100-SXM4-80GB", flop, seconds).mfu
    assert found.value == pytest.approx(mfu / 100, rel=ONE_PERCENT)


def test_mfu_of_mt_nlg_is_that_of_palms_appendix(tmp_path: Path) -> None:
    """30.2 % with attention, at 65,430 tokens a second on 2,240 A100: arXiv:2204.02311, 4.1."""
    flop = gpt(105, 20_480, 128).model
    found = efficiency(tmp_path, "A100-SXM4-80GB", flop, LENGTH * 2_240 / 65_430).mfu
    assert found.value == pytest.approx(0.302, rel=ONE_PERCENT)


LLAMAS = {
    8_030_261_248: Layout("Llama 3 8B", 32, 4_096, 32, 8, 14_336, 128_256, 8_192, tied=False),
    70_553_706_496: Layout("Llama 3 70B", 80, 8_192, 64, 8, 28_672, 128_256, 8_192, tied=False),
    405_853_388_800: Layout(
        "Llama 3 405B", 126, 16_384, 128, 8, 53_248, 128_256, 8_192, tied=False
    ),
    1_100_048_384: Layout("TinyLlama", 22, 2_048, 32, 4, 5_632, 32_000, 2_048, tied=False),
}
"""By the number of parameters; layouts of arXiv:2407.21783, table 3, and TinyLlama's."""


@cache
def llama(parameters: int) -> Counted:
    layout = LLAMAS[parameters]
    return counted(lambda few: Decoder(replace(layout, layers=few)), layout.layers, layout.context)


def test_work_is_linear_in_layers() -> None:
    (layout,) = (each for each in LLAMAS.values() if each.source == "TinyLlama")
    whole = _counted(lambda few: Decoder(layout), layout.layers, layout.context)
    assert astuple(llama(1_100_048_384)) == whole


@pytest.mark.parametrize("parameters", LLAMAS)
def test_llamas_flop_a_token_are_palms_formula_without_the_embedding(parameters: int) -> None:
    layout, work = LLAMAS[parameters], llama(parameters)
    assert work.parameters == parameters
    products = parameters - layout.vocabulary * layout.width
    palm = 6 * products + 12 * layout.layers * layout.width * layout.context  # 6N + 12LHQT
    assert work.model / layout.context == pytest.approx(palm, rel=1e-4)


def test_llama_3s_3_8e25_flop_are_those_without_attention() -> None:
    """arXiv:2407.21783, 3.2.1: 405 B parameters and 15.6 T tokens by 6ND, which has the embedding
    and no products of tokens with each other: those add 8 %."""
    work, sequences = llama(405_853_388_800), 15.6e12 / 8_192
    assert (work.model - work.pairs) * sequences == pytest.approx(3.8e25, rel=ONE_PERCENT)
    assert work.model * sequences == pytest.approx(4.1e25, rel=ONE_PERCENT)


def test_mfu_of_tinyllama_is_the_published_one(tmp_path: Path) -> None:
    """56 % at 24,000 tokens a second on an A100-40G: its README."""
    flop = llama(1_100_048_384).model
    found = efficiency(tmp_path, "A100-SXM4-40GB", flop, 2_048 / 24e3)
    assert found.mfu.value == pytest.approx(0.56, rel=ONE_PERCENT)
