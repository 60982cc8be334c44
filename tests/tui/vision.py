"""Colours as seen with colour blindness, their distance and their contrast.

Machado, Oliveira and Fernandes, A Physiologically-based Model for Simulation of Color Vision
Deficiency (2009), at full severity; CIE 1976 L*a*b* under D65; contrast as WCAG 2 defines it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

Colour = tuple[float, float, float]

VISIONS: dict[str, tuple[Colour, Colour, Colour]] = {
    "usual": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
_XYZ = (
    (0.4124564, 0.3575761, 0.1804375),
    (0.2126729, 0.7151522, 0.0721750),
    (0.0193339, 0.1191920, 0.9503041),
)
_WHITE = (0.95047, 1.0, 1.08883)


def contrast(first: str, second: str) -> float:
    """Contrast of two colours ``#rrggbb``, from 1 to 21."""
    low, high = sorted(_dot(_XYZ[1], _linear(each)) for each in (first, second))
    return (high + 0.05) / (low + 0.05)


def distance(first: str, second: str, vision: str) -> float:
    """Distance of two colours for a kind of colour ``vision``, in units of L*a*b*."""
    return math.dist(_lab(first, vision), _lab(second, vision))


def _lab(colour: str, vision: str) -> Colour:
    seen = _linear(colour)
    seen = _each(min(1.0, max(0.0, _dot(row, seen))) for row in VISIONS[vision])
    x, y, z = (_root(_dot(row, seen) / white) for row, white in zip(_XYZ, _WHITE, strict=True))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def _linear(colour: str) -> Colour:
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return _each(c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)


def _each(values: Iterable[float]) -> Colour:
    first, second, third = values
    return first, second, third


def _dot(row: Colour, values: Colour) -> float:
    return sum(a * b for a, b in zip(row, values, strict=True))


def _root(t: float) -> float:
    return t ** (1 / 3) if t > 216 / 24389 else (24389 / 27 * t + 16) / 116
