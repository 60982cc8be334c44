"""``unet-diffusion``: the U-Net of DDPM (arXiv:2006.11239), which predicts an image's noise."""

from __future__ import annotations

import math
from functools import partial
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate, mse_loss, scaled_dot_product_attention, silu
from torch.utils.checkpoint import checkpoint

from ..names import defaults
from ..task import Definition, Scored, Settings, Task
from .cifar10_cnn import data

WIDTHS = {"small": 32, "ddpm": 128}
"""Channels of the first level by size; DDPM's network for CIFAR-10 has 128."""
MULTIPLES = (1, 2, 2, 2)
BLOCKS = 2
ATTENTION_LEVEL = 1
"""The level of 16 x 16 pixels."""
TIMES = 1_000
GROUPS = 32


def time_embedding(times: Tensor, width: int) -> Tensor:
    """Sines and cosines of the times, int64 (N,), as (N, width)."""
    half = width // 2
    places = torch.arange(half, device=times.device)
    angles = times[:, None] * torch.exp(-math.log(10_000) / (half - 1) * places)
    return torch.cat((angles.sin(), angles.cos()), dim=1)


class Residual(nn.Module):
    """Two convolutions with the time between them, beside a shortcut: (N, channels, height, width)
    and the time's embedding, (N, time), to (N, out, height, width)."""

    def __init__(self, channels: int, out: int, time: int) -> None:
        super().__init__()
        self.first_norm = nn.GroupNorm(GROUPS, channels)
        self.first = nn.Conv2d(channels, out, 3, padding=1)
        self.time = nn.Linear(time, out)
        self.second_norm = nn.GroupNorm(GROUPS, out)
        self.dropout = nn.Dropout(0.1)
        self.second = nn.Conv2d(out, out, 3, padding=1)
        self.shortcut = nn.Identity() if channels == out else nn.Conv2d(channels, out, 1)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        hidden = self.first(silu(self.first_norm(x))) + self.time(silu(time))[:, :, None, None]
        hidden = self.second(self.dropout(silu(self.second_norm(hidden))))
        out: Tensor = self.shortcut(x) + hidden
        return out


class Attention(nn.Module):
    """Attention of one head between all pixels of (N, channels, height, width)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(GROUPS, channels)
        self.parts = nn.Conv2d(channels, 3 * channels, 1)
        self.out = nn.Conv2d(channels, channels, 1)

    def forward(self, x: Tensor, _time: Tensor) -> Tensor:
        pixels = self.parts(self.norm(x)).flatten(2).transpose(1, 2)
        attended = scaled_dot_product_attention(*pixels.unsqueeze(1).chunk(3, dim=-1))
        out: Tensor = self.out(attended.squeeze(1).transpose(1, 2).reshape(x.shape))
        return x + out


class Upsample(nn.Module):
    """Twice the height and width of (N, channels, height, width), by repeated pixels and a
    convolution."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.convolution(interpolate(x, scale_factor=2.0))
        return out


class UNet(nn.Module):
    """Noisy images, (N, 3, 32, 32), and times, int64 (N,), to noise, (N, 3, 32, 32)."""

    def __init__(self, width: int, checkpointing: bool = False) -> None:
        super().__init__()
        self.width = width
        self.checkpointing = checkpointing
        time = 4 * width
        self.time = nn.Sequential(nn.Linear(width, time), nn.SiLU(), nn.Linear(time, time))
        self.first = nn.Conv2d(3, width, 3, padding=1)
        channels = [width * multiple for multiple in MULTIPLES]
        skipped = [width]
        self.down, self.shrink = nn.ModuleList(), nn.ModuleList()
        for level, (before, own) in enumerate(pairwise([width, *channels])):
            for block in range(BLOCKS):
                self.down.append(_block(own if block else before, own, time, level))
                skipped.append(own)
            if level + 1 < len(channels):
                self.shrink.append(nn.Conv2d(own, own, 3, stride=2, padding=1))
                skipped.append(own)
        last = channels[-1]
        self.middle = nn.ModuleList(
            [Residual(last, last, time), Attention(last), Residual(last, last, time)]
        )
        self.up, self.grow = nn.ModuleList(), nn.ModuleList()
        before = last
        for level in reversed(range(len(channels))):
            own = channels[level]
            for _ in range(BLOCKS + 1):
                self.up.append(_block(before + skipped.pop(), own, time, level))
                before = own
            if level:
                self.grow.append(Upsample(own))
        self.last_norm = nn.GroupNorm(GROUPS, width)
        self.last = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, images: Tensor, times: Tensor) -> Tensor:
        time = self.time(time_embedding(times, self.width).to(images.dtype))
        x = self.first(images)
        skipped = [x]
        for level in range(len(MULTIPLES)):
            for block in self.down[level * BLOCKS : (level + 1) * BLOCKS]:
                x = self._run(block, x, time)
                skipped.append(x)
            if level + 1 < len(MULTIPLES):
                x = self.shrink[level](x)
                skipped.append(x)
        for block in self.middle:
            x = self._run(block, x, time)
        for place in range(len(MULTIPLES)):
            for block in self.up[place * (BLOCKS + 1) : (place + 1) * (BLOCKS + 1)]:
                x = self._run(block, torch.cat((x, skipped.pop()), dim=1), time)
            if place + 1 < len(MULTIPLES):
                x = self.grow[place](x)
        noise: Tensor = self.last(silu(self.last_norm(x)))
        return noise

    def _run(self, block: nn.Module, x: Tensor, time: Tensor) -> Tensor:
        if self.checkpointing and self.training:
            recomputed: Tensor = checkpoint(block, x, time, use_reentrant=False)
            return recomputed
        out: Tensor = block(x, time)
        return out


class Attended(nn.Module):
    """A residual block with attention after it."""

    def __init__(self, residual: Residual, attention: Attention) -> None:
        super().__init__()
        self.residual = residual
        self.attention = attention

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        out: Tensor = self.attention(self.residual(x, time), time)
        return out


def _block(channels: int, out: int, time: int, level: int) -> nn.Module:
    residual = Residual(channels, out, time)
    return Attended(residual, Attention(out)) if level == ATTENTION_LEVEL else residual


def noisy(images: Tensor, times: Tensor, noise: Tensor) -> Tensor:
    """The images, (N, 3, 32, 32), after ``times``, (N,), steps of ``noise``, shaped like them, by
    the cosine schedule (arXiv:2102.09672)."""
    angle = (times / TIMES + 0.008) / 1.008 * (math.pi / 2)
    angle = angle[:, None, None, None]
    return angle.cos() * images + angle.sin() * noise


def objective(model: nn.Module, inputs: tuple[Tensor, ...], _target: Tensor) -> Scored:
    """Mean squared error of the noise, at a random time of each image."""
    (images,) = inputs
    times = torch.randint(TIMES, (images.shape[0],), device=images.device)
    noise = torch.randn_like(images)
    return mse_loss(model(noisy(images, times, noise), times), noise), None, None


def predict(model: nn.Module, inputs: tuple[Tensor, ...]) -> Tensor:
    """The noise, (N, 3, 32, 32), of one step of denoising, from the middle of the way: a sampler
    takes many like it."""
    (images,) = inputs
    times = torch.full((images.shape[0],), TIMES // 2, device=images.device)
    noise: Tensor = model(images, times)
    return noise


def make(settings: Settings) -> Task:
    """The task with these settings."""
    width = WIDTHS[settings.size or "small"]
    return Task(
        model=UNet(width, settings.checkpointing),
        text=f"DDPM's U-Net for 32 x 32 pixels, {width} channels at the first of 4 levels",
        data=data(settings),
        objective=objective,
        optimizer=partial(torch.optim.Adam, lr=settings.lr),
        predict=predict,
    )


def definition(name: str) -> Definition:
    """The workload."""
    return Definition(defaults(name), make)
