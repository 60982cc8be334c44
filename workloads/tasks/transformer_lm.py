"""``transformer-lm``: a decoder as Llama's (arXiv:2307.09288), which predicts the next token.

``moe-lm`` is that with a mixture of experts in each block, ``attention`` one layer of causal
attention at growing lengths, and little else beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, scaled_dot_product_attention, silu
from torch.utils.checkpoint import checkpoint

from ..data.text import text_data
from ..names import defaults
from ..task import Definition, Extent, Generation, Scored, Settings, Task

ROTARY_BASE = 10_000.0
EPSILON = 1e-5
PROMPT, NEW = 192, 64
"""Tokens of a prompt, and tokens generated after it, with ``--mode infer``."""


@dataclass(frozen=True)
class Layout:
    """The layout of a published model; ``tied`` uses the embedding as the last layer too."""

    source: str
    layers: int
    width: int
    heads: int
    key_heads: int
    """Heads of keys and values; several heads of queries share one (arXiv:2305.13245)."""
    hidden: int
    vocabulary: int
    context: int
    tied: bool
    experts: int = 1
    """SwiGLU layers of a block, of which a router chooses some for each token."""
    chosen: int = 1

    @property
    def extent(self) -> Extent:
        """Its parameters, and numbers in the cache of a generation."""
        cache = self.layers * 2 * self._keys * (PROMPT + NEW)
        return Extent(self._parameters(self.experts), cache)

    @property
    def active(self) -> int:
        """Parameters that a token uses."""
        return self._parameters(self.chosen)

    @property
    def _keys(self) -> int:
        return self.width * self.key_heads // self.heads

    def _parameters(self, experts: int) -> int:
        router = self.experts if self.experts > 1 else 0
        products = 2 * self.width + 2 * self._keys + experts * 3 * self.hidden + router
        blocks = self.layers * self.width * (products + 2)
        tokens = self.vocabulary * self.width * (1 if self.tied else 2)
        return blocks + tokens + self.width


LAYOUTS = {
    "15m": Layout("stories15M", 6, 288, 6, 6, 768, 32_000, 256, tied=True),
    "260k": Layout("stories260K", 5, 64, 8, 4, 172, 512, 512, tied=True),
    "42m": Layout("stories42M", 8, 512, 8, 8, 1_376, 32_000, 1_024, tied=True),
    "110m": Layout("stories110M", 12, 768, 12, 12, 2_048, 32_000, 1_024, tied=True),
    "1b": Layout("TinyLlama 1.1B", 22, 2_048, 32, 4, 5_632, 32_000, 2_048, tied=False),
    "3b": Layout("OpenLLaMA 3B", 26, 3_200, 32, 32, 8_640, 32_000, 2_048, tied=False),
    "7b": Layout("Llama 2 7B", 32, 4_096, 32, 32, 11_008, 32_000, 4_096, tied=False),
}
"""Sizes by name. The stories are those of llama2.c."""
MIXTURES = {
    "43m": Layout("stories15M, with 8 experts", 6, 288, 6, 6, 768, 32_000, 256, True, 8, 2),
    "1m": Layout("stories260K, with 8 experts", 5, 64, 8, 4, 172, 512, 512, True, 8, 2),
    "1b": Layout("Granite 3.0 1B-A400M", 24, 1_024, 16, 8, 512, 49_155, 4_096, True, 32, 8),
    "7b": Layout("OLMoE 1B-7B", 16, 2_048, 16, 16, 1_024, 50_304, 4_096, False, 64, 8),
    "47b": Layout("Mixtral 8x7B", 32, 4_096, 32, 8, 14_336, 32_000, 4_096, False, 8, 2),
}
"""Sizes of ``moe-lm`` by all their parameters; of each ``Layout.active`` work on a token."""
_LENGTHS = {"1k": 1_024, "512": 512, "2k": 2_048, "4k": 4_096, "8k": 8_192, "16k": 16_384}
ATTENTIONS = {
    name: Layout("one block with a small SwiGLU", 1, 1_024, 16, 16, 64, 256, length, True)
    for name, length in _LENGTHS.items()
}
"""Sizes of ``attention`` by their length."""


class Cache:
    """Keys and values of the tokens so far: (layers, 2, samples, key heads, length, head width)."""

    def __init__(self, layout: Layout, samples: int, length: int, like: Tensor) -> None:
        head = layout.width // layout.heads
        shape = (layout.layers, 2, samples, layout.key_heads, length, head)
        self.tensor = like.new_empty(shape)
        self.used = 0

    def extend(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Store a layer's new keys and values, (samples, key heads, new, head width) each; returns
        all of them, with the earlier ones."""
        end = self.used + keys.shape[2]
        stored = self.tensor[layer]
        stored[0, :, :, self.used : end] = keys
        stored[1, :, :, self.used : end] = values
        return stored[0, :, :, :end], stored[1, :, :, :end]


def rotate(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Rotary position embedding (arXiv:2104.09864) of (samples, heads, length, head width);
    ``cosine``, ``sine``: (length, head width / 2)."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cosine - second * sine, second * cosine + first * sine), dim=-1)


class SwiGLU(nn.Module):
    """Two layers with a gate between them (arXiv:2002.05202): (..., width) to the same."""

    def __init__(self, layout: Layout) -> None:
        super().__init__()
        self.gate = nn.Linear(layout.width, layout.hidden, bias=False)
        self.up = nn.Linear(layout.width, layout.hidden, bias=False)
        self.down = nn.Linear(layout.hidden, layout.width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        hidden: Tensor = self.down(silu(self.gate(x)) * self.up(x))
        return hidden


class Experts(nn.Module):
    """Several `SwiGLU`, of which each token uses the likeliest, weighted; none has a limit of
    tokens (arXiv:2401.04088): (N, length, width) to the same."""

    def __init__(self, layout: Layout) -> None:
        super().__init__()
        self.chosen = layout.chosen
        self.router = nn.Linear(layout.width, layout.experts, bias=False)
        self.experts = nn.ModuleList(SwiGLU(layout) for _ in range(layout.experts))

    def forward(self, x: Tensor) -> Tensor:
        tokens = x.flatten(0, 1)
        scores, experts = self.router(tokens).topk(self.chosen)
        order = experts.flatten().argsort(stable=True)
        by_expert = torch.split(tokens[order // self.chosen], self._counts(experts))
        # In training each takes part, also without a token: ranks wait for all gradients.
        pairs = zip(self.experts, by_expert, strict=True)
        found = torch.cat([run(part) for run, part in pairs if self.training or part.shape[0]])
        found = found[order.argsort()].view(*experts.shape, -1)
        mixed: Tensor = (found * scores.softmax(-1)[..., None]).sum(1)
        return mixed.view_as(x)

    def _counts(self, experts: Tensor) -> list[int]:
        """Tokens of each expert; where there are shapes alone (the count of a step's work, whose
        tensors are on ``meta`` or of a class of their own), as many for each as for others."""
        if type(experts) is Tensor and not experts.is_meta:
            counts: list[int] = experts.flatten().bincount(minlength=len(self.experts)).tolist()
            return counts
        each, left = divmod(experts.numel(), len(self.experts))
        return [each + (place < left) for place in range(len(self.experts))]


class Block(nn.Module):
    """Causal attention and a SwiGLU layer, or several of them, each after an RMS norm: (N, length,
    width) to the same."""

    def __init__(self, layout: Layout, number: int) -> None:
        super().__init__()
        self.number = number
        self.head = layout.width // layout.heads
        keys = layout.key_heads * self.head
        self.attention_norm = nn.RMSNorm(layout.width, EPSILON)
        self.query = nn.Linear(layout.width, layout.width, bias=False)
        self.key = nn.Linear(layout.width, keys, bias=False)
        self.value = nn.Linear(layout.width, keys, bias=False)
        self.out = nn.Linear(layout.width, layout.width, bias=False)
        self.hidden_norm = nn.RMSNorm(layout.width, EPSILON)
        self.hidden = SwiGLU(layout) if layout.experts == 1 else Experts(layout)

    def forward(self, x: Tensor, cosine: Tensor, sine: Tensor, cache: Cache | None) -> Tensor:
        x = x + self._attention(self.attention_norm(x), cosine, sine, cache)
        out: Tensor = x + self.hidden(self.hidden_norm(x))
        return out

    def _attention(self, x: Tensor, cosine: Tensor, sine: Tensor, cache: Cache | None) -> Tensor:
        samples, length, width = x.shape
        query, keys, values = (
            part.view(samples, length, -1, self.head).transpose(1, 2)
            for part in (self.query(x), self.key(x), self.value(x))
        )
        query, keys = rotate(query, cosine, sine), rotate(keys, cosine, sine)
        if cache is not None:
            keys, values = cache.extend(self.number, keys, values)
        attended = scaled_dot_product_attention(
            query, keys, values, is_causal=length > 1, enable_gqa=query.shape[1] != keys.shape[1]
        )
        out: Tensor = self.out(attended.transpose(1, 2).reshape(samples, length, width))
        return out


class Decoder(nn.Module):
    """Tokens, int64 (N, length), to logits, (N, length, vocabulary).

    With a cache the tokens follow those in it, and the logits are those after the last token
    alone, (N, 1, vocabulary).
    """

    cosine: Tensor
    sine: Tensor

    def __init__(self, layout: Layout, checkpointing: bool = False) -> None:
        super().__init__()
        self.layout = layout
        self.checkpointing = checkpointing
        self.embedding = nn.Embedding(layout.vocabulary, layout.width)
        self.blocks = nn.ModuleList(Block(layout, number) for number in range(layout.layers))
        self.norm = nn.RMSNorm(layout.width, EPSILON)
        self.last = nn.Linear(layout.width, layout.vocabulary, bias=False)
        for name, parameter in self.named_parameters():
            if "norm" not in name:
                nn.init.normal_(parameter, std=0.02)
        if layout.tied:
            self.last.weight = self.embedding.weight
        head = layout.width // layout.heads
        speed = ROTARY_BASE ** (-torch.arange(0, head, 2) / head)
        angles = torch.arange(layout.context)[:, None] * speed
        self.register_buffer("cosine", angles.cos(), persistent=False)
        self.register_buffer("sine", angles.sin(), persistent=False)

    def forward(self, tokens: Tensor, cache: Cache | None = None) -> Tensor:
        start = 0 if cache is None else cache.used
        end = start + tokens.shape[1]
        cosine, sine = self.cosine[start:end], self.sine[start:end]
        x = self.embedding(tokens)
        for block in self.blocks:
            if self.checkpointing and self.training:
                x = checkpoint(block, x, cosine, sine, cache, use_reentrant=False)
            else:
                x = block(x, cosine, sine, cache)
        if cache is not None:
            cache.used = end
            x = x[:, -1:]
        logits: Tensor = self.last(self.norm(x))
        return logits

    def cache(self, samples: int, length: int) -> Cache:
        """An empty cache for ``length`` tokens of ``samples`` sequences."""
        return Cache(self.layout, samples, length, self.embedding.weight)


def objective(model: nn.Module, inputs: tuple[Tensor, ...], target: Tensor) -> Scored:
    """Cross entropy of every next token, int64 (N, length)."""
    logits = model(*inputs)
    return cross_entropy(logits.flatten(0, 1), target.flatten()), None, None


def make(layouts: Mapping[str, Layout], settings: Settings) -> Task:
    """The task with these settings, its layout one of these."""
    layout = layouts[settings.size or next(iter(layouts))]
    inferring = settings.mode == "infer" and defaults(settings.workload).generates
    length = PROMPT if inferring else layout.context
    experts = (
        f", {layout.chosen} of {layout.experts} experts for each token, "
        f"{layout.active:,} of {layout.extent.parameters:,} parameters active"
    )
    return Task(
        model=Decoder(layout, settings.checkpointing),
        text=(
            f"decoder laid out as {layout.source}: {layout.layers} layers of {layout.width}, "
            f"{layout.heads} heads, vocabulary {layout.vocabulary}"
            f"{experts if layout.experts > 1 else ''}"
        ),
        data=text_data(settings, length, 0),
        objective=objective,
        optimizer=partial(torch.optim.AdamW, lr=settings.lr),
        generation=Generation(PROMPT, NEW) if inferring else None,
    )


def definition(name: str) -> Definition:
    """The workload."""
    own = defaults(name)
    layouts = {"moe-lm": MIXTURES, "attention": ATTENTIONS}.get(name, LAYOUTS)

    def extent(size: str) -> Extent:
        whole = layouts[size].extent
        return whole if own.generates else whole._replace(cache=0)

    return Definition(own, partial(make, layouts), extent)
