"""How often each verdict is given, by effect, noise and blocks: tables of docs/statistics.md.

    python benchmarks/power.py [--studies 1000] [--margin 0.01] [--seed 1]

Simulates studies of two environments, log-normal noise of one run around one true ratio, and judges
them with gpuwatch's own code. A figure's standard error is 1.6 points or less at 1,000 studies.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

from gpuwatch.analysis.comparison.verdict import paired
from gpuwatch.analysis.results import Kind, Verdict

EFFECTS = (0.0, 0.005, 0.015, 0.02, 0.03, 0.05)
NOISES = (0.001, 0.003, 0.01, 0.03)
BLOCKS = (5, 7, 20)


def excludes_zero(verdict: Verdict) -> bool:
    """By Student's t, where the signed ranks agree or cannot speak."""
    return all(p is None or p <= 0.05 for p in (verdict.p_zero, verdict.p_rank))


COLUMNS: dict[str, Callable[[Verdict], bool]] = {
    "SAME": lambda verdict: verdict.kind is Kind.SAME,
    "SMALL": lambda verdict: verdict.kind is Kind.SMALL,
    "SLOWER": lambda verdict: verdict.kind is Kind.SLOWER,
    "FASTER": lambda verdict: verdict.kind is Kind.FASTER,
    "CAN'T TELL": lambda verdict: verdict.kind is Kind.CANT_TELL,
    "zero excluded": excludes_zero,
}


def simulate(
    studies: int, effect: float, noise: float, blocks: int, margin: float, rng: np.random.Generator
) -> dict[str, float]:
    """Share of the studies by what is said of them."""
    log_ratios = rng.normal(np.log1p(effect), noise * np.sqrt(2), (studies, blocks))
    found = [paired([list(row)], margin)[0] for row in log_ratios]
    return {name: sum(map(is_one, found)) / studies for name, is_one in COLUMNS.items()}


def main() -> None:
    """Print one Markdown table for each verdict."""
    parser = argparse.ArgumentParser(description="Power tables of the verdicts.")
    parser.add_argument("--studies", type=int, default=1000, help="studies of each kind")
    parser.add_argument("--margin", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    cases = [(noise, blocks) for noise in NOISES for blocks in BLOCKS]
    shares = {
        (effect, case): simulate(arguments.studies, effect, *case, arguments.margin, rng)
        for effect in EFFECTS
        for case in cases
    }
    print(
        f"Per cent of {arguments.studies} simulated studies, margin {arguments.margin:.1%}, "
        f"seed {arguments.seed}. Columns: noise of one run, blocks."
    )
    for name in COLUMNS:
        print(f"\n**{name}**\n")
        print("| true effect |", " | ".join(f"{noise:.1%}, {count}" for noise, count in cases), "|")
        print("| --- |", " | ".join("---:" for _ in cases), "|")
        for effect in EFFECTS:
            cells = (f"{100 * shares[effect, case][name]:.1f}" for case in cases)
            print(f"| {effect:+.1%} |", " | ".join(cells), "|")


if __name__ == "__main__":
    main()
