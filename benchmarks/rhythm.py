"""How often a period is found in noise, and in a signal: tables of docs/measurement.md.

    python -m benchmarks.rhythm [--runs 400] [--seed 1]

Signals are sampled at random moments, as a recorder samples them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial

import numpy as np

from gpuwatch.analysis.samples.rhythm import Period, period_of

INTERVAL = 0.1
LENGTHS = (200, 600, 1500)
PERIODS = (0.5, 1.2, 4.0)
FAST = (0.02, 0.05, 0.07, 0.09, 0.1, 0.11, 0.13, 0.15, 0.17, 0.19)
"""Seconds of iterations that are too fast for the interval: no period is to be found."""
JITTERS = (0.0, 0.02, 0.05, 0.1)
RATIOS = (0.25, 0.5, 1.0, 2.0)

Noise = Callable[[np.random.Generator, int], np.ndarray]


def moments(random: np.random.Generator, size: int) -> np.ndarray:
    """Seconds of ``size`` samples: one in each interval, which moves to its end and back."""
    strides = np.cumsum(random.uniform(0, 0.25, size))
    place = 1 - np.abs(1 - strides % 2)
    return (np.arange(size) + place) * INTERVAL


def white(random: np.random.Generator, size: int) -> np.ndarray:
    return random.normal(size=size)


def autoregressive(share: float, random: np.random.Generator, size: int) -> np.ndarray:
    """Each value is ``share`` of the one before, and new noise; 1 is a random walk."""
    values = random.normal(size=size)
    for at in range(1, size):
        values[at] += share * values[at - 1]
    return values


def levels(rate: float, random: np.random.Generator, size: int) -> np.ndarray:
    """A level that changes at ``rate`` of the samples, with noise of a fifth of its spread."""
    changes = np.cumsum(random.random(size) < rate)
    return random.normal(size=changes[-1] + 1)[changes] + 0.2 * random.normal(size=size)


def on_and_off(rate: float, random: np.random.Generator, size: int) -> np.ndarray:
    """Switches at ``rate`` of the samples, almost without noise."""
    return np.cumsum(random.random(size) < rate) % 2 + 0.02 * random.normal(size=size)


def spikes(random: np.random.Generator, size: int) -> np.ndarray:
    """One value in 100 is not zero."""
    return (random.random(size) < 0.01) * random.exponential(size=size)


NOISES: dict[str, Noise] = {
    "white": white,
    "AR(1), 0.5": partial(autoregressive, 0.5),
    "AR(1), 0.9": partial(autoregressive, 0.9),
    "AR(1), 0.99": partial(autoregressive, 0.99),
    "random walk": partial(autoregressive, 1.0),
    "a new level every 500 samples": partial(levels, 0.002),
    "a new level every 50 samples": partial(levels, 0.02),
    "a new level every 5 samples": partial(levels, 0.2),
    "on and off every 100 samples": partial(on_and_off, 0.01),
    "on and off every 10 samples": partial(on_and_off, 0.1),
    "spikes": spikes,
}


def iterations(
    random: np.random.Generator, size: int, period: float, jitter: float, ratio: float
) -> tuple[np.ndarray, np.ndarray, float]:
    """Moments and values of a load that is on for 70 % of each iteration, and their true mean.

    ``jitter``: standard deviation of an iteration's length, relative; ``ratio``: of the load's
    standard deviation to that of white noise.
    """
    t = moments(random, size)
    count = int(2 * t[-1] / period) + 3
    lengths = period * np.maximum(0.2, 1 + jitter * random.normal(size=count))
    starts = np.cumsum(lengths) - random.uniform(0, period) - period
    at = np.searchsorted(starts, t, side="right")
    begun = np.concatenate([[starts[0] - period], starts])[at]
    on = (t - begun) < 0.7 * np.concatenate([[period], lengths[1:], [period]])[at]
    inside = starts[(starts > t[0]) & (starts < t[-1])]
    values = ratio * (on - on.mean()) / max(float(on.std()), 1e-9)
    return t, values + random.normal(size=size), float(np.diff(inside).mean())


def found(random: np.random.Generator, noise: Noise, size: int) -> Period | None:
    """The period of noise alone."""
    return period_of(moments(random, size), noise(random, size))


def too_fast(random: np.random.Generator, size: int, period: float, runs: int) -> float:
    """How often iterations too fast for the interval look slow, with little noise and much."""
    wrong = 0
    for at in range(runs):
        jitter, ratio = JITTERS[at % 3], (1.0, 3.0, 50.0)[at // 3 % 3]
        t, values, _ = iterations(random, size, period, jitter, ratio)
        wrong += period_of(t, values) is not None
    return wrong / runs


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    flags = parser.parse_args()
    random = np.random.default_rng(flags.seed)
    print("| noise |", " | ".join(f"{size} samples" for size in LENGTHS), "|")
    for name, noise in NOISES.items():
        shares = [
            sum(found(random, noise, size) is not None for _ in range(flags.runs)) / flags.runs
            for size in LENGTHS
        ]
        print(
            f"| {name} |", " | ".join(f"{100 * share:.1f} %" for share in shares), "|", flush=True
        )
    runs = max(1, flags.runs // 4)
    for period in FAST:
        shares = [too_fast(random, size, period, runs) for size in LENGTHS]
        print(f"| {period} s |", " | ".join(f"{share:.1%}" for share in shares), "|", flush=True)
    for size in LENGTHS:
        for period in PERIODS:
            if size * INTERVAL < 12 * period:
                continue
            for jitter in JITTERS:
                cells = []
                for ratio in RATIOS:
                    right = covered = wrong = 0
                    for _ in range(runs):
                        t, values, true = iterations(random, size, period, jitter, ratio)
                        if (got := period_of(t, values)) is None:
                            continue
                        near = abs(got.seconds / true - 1) < 0.05
                        right, wrong = right + near, wrong + (not near)
                        covered += got.low <= true <= got.high
                    cells.append(f"{right / runs:.2f} {wrong / runs:.2f} {covered / runs:.2f}")
                print(f"| {size} | {period} s | {jitter:.0%} |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
