"""The period of a sampled signal, where it is plain: the iteration of a program without steps.

A period is plain if one frequency stands out of its neighbourhood in the spectrum of all samples,
and the same one in each third of them. Comparing with the neighbourhood, not with the mean, is what
a spectrum that falls with frequency needs, as that of a drift or of random steps does. How often it
errs: docs/measurement.md.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from gpuwatch.core.lazy_dataclass import dataclass

MOST, LEAST = 1_500, 150
"""Samples that are looked at, the newest, and that are needed."""
_SHORTEST, _CYCLES = 2, 10
"""Shortest period, in intervals between samples, and periods that the samples must cover."""
_PEAK, _PEAK_OF_PART = 12.0, 3.0
"""Power over its neighbourhood's: noise passes the first once in 160,000 frequencies, e^-12."""
_PARTS = 3
_OCTAVE = 1.6
"""The neighbourhood of f is from f / 1.6 to 1.6 f."""
_PLACES = 64
"""Frequencies at which the neighbourhood is looked at; between them it is interpolated."""
_FINENESS = 4
"""Frequencies per resolution, which is one over the time covered."""
_FASTEST = 4
"""Highest frequency that is looked at, in periods an interval."""
_DIVISORS = (5, 4, 3, 2)
_T = 4.303
"""Student's t for 95 % and three values."""


@dataclass(frozen=True)
class Period:
    """Seconds, with a 95 % interval."""

    seconds: float
    low: float
    high: float


def period_of(t: np.ndarray, values: np.ndarray) -> Period | None:
    """The plain period of ``values`` (n,), sampled at ``t`` (n,), seconds, which rise.

    It is between two intervals and a tenth of the time covered. Of a signal with equal parts in
    its period it is the part's; of one that differs in every k-th period, k periods may be given.
    """
    t, values = t[-MOST:], values[-MOST:]
    if t.size < LEAST or np.ptp(values) == 0:
        return None
    span, interval = float(t[-1] - t[0]), float(np.quantile(np.diff(t), 0.5))
    lowest, highest = _CYCLES / span, 1 / (_SHORTEST * interval)
    if lowest * 2 > highest:
        return None
    frequencies = np.arange(lowest, highest, 1 / (_FINENESS * span))
    power = _power(t, values, frequencies)
    ratios = _over_neighbourhood(frequencies, power)
    best = int(np.argmax(ratios))
    if ratios[best] < _PEAK:
        return None
    best = _fundamental(frequencies, ratios, best)
    frequency = _vertex(frequencies, ratios, best)
    if _faster(t, values, highest, frequency, float(power[best])):
        return None
    parts = [_period_of_part(*part, frequency) for part in _split(t, values)]
    periods = [each for each in parts if each is not None]
    if len(periods) < _PARTS:
        return None
    half = max(
        _T * float(np.std(periods, ddof=1)) / math.sqrt(_PARTS), 0.25 / (frequency**2 * span)
    )
    return Period(1 / frequency, max(0.0, 1 / frequency - half), 1 / frequency + half)


def _power(t: np.ndarray, values: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
    """Power (f,) at evenly spaced ``frequencies`` (f,), Hz, of values at any times, with a Hann
    window."""
    place = (t - t[0]) / (t[-1] - t[0])
    window = np.sin(np.pi * place) ** 2
    wave = window * (values - np.average(values, weights=window))
    wave = wave * np.exp(-2j * np.pi * frequencies[0] * (t - t[0]))
    turn = np.exp(-2j * np.pi * (frequencies[1] - frequencies[0]) * (t - t[0]))
    power = np.empty(frequencies.size)
    for at in range(frequencies.size):
        power[at] = abs(wave.sum()) ** 2
        wave *= turn
    return power


def _over_neighbourhood(frequencies: np.ndarray, power: np.ndarray) -> np.ndarray:
    """Each power over the mean of its neighbourhood, which its median tells: of noise, ln 2."""
    places = np.geomspace(frequencies[0], frequencies[-1], _PLACES)
    first = np.searchsorted(frequencies, places / _OCTAVE)
    last = np.searchsorted(frequencies, places * _OCTAVE, side="right")
    medians = [float(np.quantile(power[a:b], 0.5)) for a, b in zip(first, last, strict=True)]
    level = np.maximum(np.interp(frequencies, places, medians), np.finfo(float).tiny)
    ratios: np.ndarray = math.log(2) * power / level
    return ratios


def _fundamental(frequencies: np.ndarray, ratios: np.ndarray, best: int) -> int:
    """The lowest frequency that stands out and of which ``best`` is a multiple."""
    for divisor in _DIVISORS:
        near = np.flatnonzero(
            np.abs(frequencies - frequencies[best] / divisor)
            <= (frequencies[1] - frequencies[0]) * _FINENESS / divisor
        )
        if near.size and ratios[near].max() >= _PEAK:
            return int(near[np.argmax(ratios[near])])
    return best


def _faster(
    t: np.ndarray, values: np.ndarray, highest: float, frequency: float, power: float
) -> bool:
    """Whether a frequency above ``highest`` has more than ``power``, multiples apart.

    Samples once an interval make a faster signal look slow. Since their moments are random, it has
    its full power at its own frequency only.
    """
    span, interval = t[-1] - t[0], float(np.quantile(np.diff(t), 0.5))
    fast = np.arange(highest, _FASTEST / interval, 0.5 / span)
    off = np.abs(fast - frequency * np.round(fast / frequency))
    return bool((_power(t, values, fast)[off > 2 / span] > power).any())


def _vertex(frequencies: np.ndarray, power: np.ndarray, at: int) -> float:
    """Where the parabola through a peak and its neighbours is highest, in Hz."""
    if not 0 < at < frequencies.size - 1:
        return float(frequencies[at])
    left, middle, right = (float(power[at + offset]) for offset in (-1, 0, 1))
    bend = left - 2 * middle + right
    shift = 0.5 * (left - right) / bend if bend < 0 else 0.0
    step = float(frequencies[1] - frequencies[0])
    return float(frequencies[at]) + max(-0.5, min(0.5, shift)) * step


def _split(t: np.ndarray, values: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    edges = np.linspace(0, t.size, _PARTS + 1).astype(int)
    return [(t[a:b], values[a:b]) for a, b in pairwise(edges)]


def _period_of_part(t: np.ndarray, values: np.ndarray, frequency: float) -> float | None:
    """The period of a part near ``1 / frequency``; ``None`` unless it stands out there too."""
    span = float(t[-1] - t[0])
    frequencies = np.arange(
        max(frequency / _OCTAVE, 2 / span), frequency * _OCTAVE, 1 / (_FINENESS * span)
    )
    power = _power(t, values, frequencies)
    near = np.flatnonzero(np.abs(frequencies - frequency) <= 1 / span)
    if not near.size:
        return None
    at = int(near[np.argmax(power[near])])
    if math.log(2) * power[at] < _PEAK_OF_PART * float(np.quantile(power, 0.5)):
        return None
    return 1 / _vertex(frequencies, power, at)
