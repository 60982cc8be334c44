"""How high a load or a temperature is: a colour, and a mark for whoever does not see it."""

from __future__ import annotations

from gpuwatch.tui.feed.snapshot import DeviceNow

Sign = tuple[str, str]
"""A mark of one cell, and the role of its colour."""

_LEVELS: tuple[Sign, ...] = ((" ", "good"), ("•", "warn"), ("▲", "bad"))
_NO_LEVEL: Sign = (" ", "strong")
_UTILIZATION, _MEMORY = (0.10, 0.75), (0.10, 0.80)
"""From which shares on they are medium and high: those of nvitop."""


def utilization(share: float | None) -> Sign:
    """Of a share of time."""
    return _level(share, *_UTILIZATION)


def memory(share: float | None) -> Sign:
    """Of a share of the memory."""
    return _level(share, *_MEMORY)


def temperature(gpu: DeviceNow) -> Sign:
    """Medium above what the card is made for, high where it slows itself down; no level where the
    driver tells neither."""
    limits = (gpu.attribute(f"temperature.{name}") for name in ("operating.max", "slowdown"))
    return _level(gpu.value("hw.gpu.temperature"), *limits)


def _level(value: float | None, medium: float | None, high: float | None) -> Sign:
    if value is None or (medium is None and high is None):
        return _NO_LEVEL
    if high is not None and value >= high:
        return _LEVELS[2]
    return _LEVELS[medium is not None and value >= medium]
