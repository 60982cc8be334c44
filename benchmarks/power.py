"""How often each verdict is given, by effect, noise and blocks: tables of docs/statistics.md.

    python -m benchmarks.power [--studies 1000] [--margin 0.01] [--seed 1]

Simulates studies of two environments, with normal noise of a run's level around one true ratio and
nothing else, and judges them with gpuwatch's own code. A figure's standard error is 1.6 points or
less at 1,000 studies.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
from collections import Counter
from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.disturbances import Pattern, Runs, simulate, verdicts
from gpuwatch.analysis.results import Kind, Verdict

EFFECTS = (0.0, 0.005, 0.015, 0.02, 0.03, 0.05)
NOISES = (0.001, 0.003, 0.01, 0.03)
BLOCKS = (5, 7, 10, 20)


def excludes_zero(verdict: Verdict) -> bool:
    """Whether an interval does, of the typical step or of all steps."""
    changes = [each.change for each in (verdict, verdict.total) if each is not None]
    return any(change is not None and change.low * change.high > 0 for change in changes)


TABLES: dict[str, Callable[[Verdict], bool]] = {
    "SAME": lambda verdict: verdict.kind is Kind.SAME,
    "SMALL": lambda verdict: verdict.kind is Kind.SMALL,
    "SLOWER": lambda verdict: verdict.kind is Kind.SLOWER,
    "FASTER": lambda verdict: verdict.kind is Kind.FASTER,
    "zero excluded": excludes_zero,
}
RARE = "FASTER"
"""Too rare for a table."""
Case = tuple[float, int]
"""Noise and blocks."""


def simulated(case: Case, studies: int, margin: float, seed: int) -> dict[float, Counter[str]]:
    """By effect, how many studies each table counts."""
    noise, blocks = case
    runs = Runs(np.random.default_rng([seed, round(noise * 1e4), blocks]), studies, blocks, 2)
    found = simulate(Pattern("noise", noise=lambda each: each.noise(noise)), runs)
    return {
        effect: Counter(
            name
            for (verdict,) in verdicts(found, effect, margin)
            for name, counts in TABLES.items()
            if counts(verdict)
        )
        for effect in EFFECTS
    }


def main() -> None:
    """Print a Markdown table for each verdict but FASTER, and CAN'T TELL, which is the rest."""
    parser = argparse.ArgumentParser(description="Power tables of the verdicts.")
    parser.add_argument("--studies", type=int, default=1000, help="studies of each kind")
    parser.add_argument("--margin", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    cases = [(noise, blocks) for noise in NOISES for blocks in BLOCKS]
    one = partial(simulated, studies=given.studies, margin=given.margin, seed=given.seed)
    with multiprocessing.Pool(os.cpu_count()) as pool:
        found = dict(zip(cases, pool.map(one, cases, chunksize=1), strict=True))
    print(
        f"Per cent of {given.studies} simulated studies, margin {given.margin:.1%}, "
        f"seed {given.seed}, with {' / '.join(map(str, BLOCKS))} blocks. Columns: noise of one run."
    )
    for name in (name for name in TABLES if name != RARE):
        print(f"\n| {name}, at a true |", " | ".join(f"{noise:.1%}" for noise in NOISES), "|")
        print("| --- |", " | ".join("---:" for _ in NOISES), "|")
        for effect in EFFECTS:
            cells = (
                " / ".join(
                    f"{100 * found[noise, blocks][effect][name] / given.studies:.1f}"
                    for blocks in BLOCKS
                )
                for noise in NOISES
            )
            print(f"| {effect:+.1%} |", " | ".join(cells), "|")
    most = max(counts[RARE] for by_effect in found.values() for counts in by_effect.values())
    print(f"\n{RARE}: at most {100 * most / given.studies:.1f} %.")


if __name__ == "__main__":
    main()
