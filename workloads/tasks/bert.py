"""``bert``: BERT's encoder (arXiv:1810.04805), trained to predict masked tokens."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, gelu
from torch.utils.checkpoint import checkpoint

from ..data.text import text_data
from ..names import defaults
from ..task import Definition, Extent, Scored, Settings, Task

VOCABULARY, POSITIONS, SEGMENTS = 30_522, 512, 2
LENGTH = 128
HEAD_WIDTH = 64
MASK, FIRST_BYTE = 103, 1_000
"""Token that hides another, and the token of the byte 0."""
IGNORED = -100
SHARE = 0.15
"""Share of the tokens to predict: of these 80 % are masked, 10 % random, 10 % as they are."""

LAYOUTS = {
    "small": (4, 512),
    "tiny": (2, 128),
    "mini": (4, 256),
    "medium": (8, 512),
    "base": (12, 768),
    "large": (24, 1_024),
}
"""Layers and width by size (arXiv:1908.08962, table 1; base and large: arXiv:1810.04805)."""


class Bert(nn.Module):
    """Tokens, int64 (N, length), to logits, (N, length, 30522); the last layer is the embedding."""

    def __init__(self, layers: int, width: int, checkpointing: bool = False) -> None:
        super().__init__()
        self.checkpointing = checkpointing
        self.embedding = nn.Embedding(VOCABULARY, width)
        self.positions = nn.Embedding(POSITIONS, width)
        self.segments = nn.Embedding(SEGMENTS, width)
        self.norm = nn.LayerNorm(width, 1e-12)
        self.dropout = nn.Dropout(0.1)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                width,
                width // HEAD_WIDTH,
                4 * width,
                dropout=0.1,
                activation="gelu",
                layer_norm_eps=1e-12,
                batch_first=True,
            )
            for _ in range(layers)
        )
        self.transform = nn.Linear(width, width)
        self.last_norm = nn.LayerNorm(width, 1e-12)
        self.last = nn.Linear(width, VOCABULARY)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)
        self.last.weight = self.embedding.weight

    def encode(self, tokens: Tensor) -> Tensor:
        """Tokens (N, length) to the encoder's output, (N, length, width), all in one segment."""
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x: Tensor = self.embedding(tokens) + self.positions(places) + self.segments.weight[0]
        x = self.dropout(self.norm(x))
        for layer in self.layers:
            if self.checkpointing and self.training:
                x = checkpoint(layer, x, use_reentrant=False)
            else:
                x = layer(x)
        return x

    def forward(self, tokens: Tensor) -> Tensor:
        logits: Tensor = self.last(self.last_norm(gelu(self.transform(self.encode(tokens)))))
        return logits


def objective(model: nn.Module, inputs: tuple[Tensor, ...], target: Tensor) -> Scored:
    """Cross entropy of the tokens to predict, 15 % of (N, length), chosen anew in every step."""
    (tokens,) = inputs
    draw = torch.rand(tokens.shape, device=tokens.device)
    random = torch.randint_like(tokens, VOCABULARY)
    shown = torch.where(draw < 0.8 * SHARE, MASK, tokens)
    shown = torch.where((draw >= 0.8 * SHARE) & (draw < 0.9 * SHARE), random, shown)
    wanted = torch.where(draw < SHARE, tokens, IGNORED)
    logits = model(shown)
    loss = cross_entropy(logits.flatten(0, 1), wanted.flatten(), ignore_index=IGNORED)
    return loss, None, None


def make(settings: Settings) -> Task:
    """The task with these settings."""
    size = settings.size or "small"
    layers, width = LAYOUTS[size]
    return Task(
        model=Bert(layers, width, settings.checkpointing),
        text=f"BERT {size}: {layers} layers of {width}, {LENGTH} tokens, 15 % of them to predict",
        data=text_data(settings, LENGTH, FIRST_BYTE),
        objective=objective,
        optimizer=partial(torch.optim.AdamW, lr=settings.lr),
    )


def extent(size: str) -> Extent:
    """The parameters of a size."""
    layers, width = LAYOUTS[size]
    tokens = (VOCABULARY + POSITIONS + SEGMENTS + 2) * width
    head = width * (width + 3) + VOCABULARY
    return Extent(tokens + layers * width * (12 * width + 13) + head)


def definition(name: str) -> Definition:
    """The workload."""
    return Definition(defaults(name), make, extent)
